package kinds

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestMemory: whatever is written, a digest holds a few MiB.
func TestMemory(t *testing.T) {
	promise.OrdinaryRun(t)
	const most = 8 << 20
	r := rand.New(rand.NewPCG(5, 6))
	word := func() string { return strconv.FormatUint(r.Uint64(), 36) }
	for name, c := range map[string]struct {
		kind  content.Kind
		begin string
		piece func(i int) string
	}{
		"one string": {content.JSON, `["`, func(int) string { return strings.Repeat("x", 4000) }},
		"new keys": {content.NDJSON, "", func(int) string {
			return `{"` + word() + `":{"` + word() + `":"` + word() +
				`","k":1}}` + "\n"
		}},
		"new keys, nested": {content.NDJSON, "", func(int) string {
			return strings.Repeat(`{"`+word()+`":[`, 20) +
				strings.Repeat(`]}`, 20) + "\n"
		}},
		"long keys": {content.NDJSON, "", func(int) string {
			return `{"` + strings.Repeat(word(), 20) + `":1}` +
				"\n"
		}},
		"wide": {content.JSON, "{", func(i int) string {
			return `"` + word() + `":{"a":"` + word() +
				`","b":[1,2]},`
		}},
		"files": {content.NDJSON, "", func(int) string {
			return `{"file":"` + strings.Repeat(word(), 5) + `"}` +
				"\n"
		}},
		"brackets": {content.JSON, "", func(int) string { return "[[[[[[[[" }},
		"log": {content.Log, "", func(int) string {
			return word() + " " + word() + " " + word() + " " + word() +
				"\n"
		}},
		"log of words": {content.Log, "", func(int) string {
			return strings.Map(
				letters, word()+" "+word()+" "+word()+" "+word(),
			) + "\n"
		}},
		"panics": {content.Log, "", func(int) string {
			return "panic: " + word() +
				"\n\ngoroutine 1 [running]:\n"
		}},
		"diff of files": {content.Diff, "", func(int) string {
			return "diff --git a/" + word() + " b/" + word() +
				"\n@@ -1 +1 @@\n-a\n+b\n"
		}},
		"one hunk": {content.Diff, "@@ -1,99999999 +1,99999999 @@\n", func(int) string {
			return "+" + word() + "\n-" +
				word() + "\n"
		}},
		"table": {content.Table, strings.Repeat("a,", 300) +
			"b\n", func(int) string { return strings.Repeat(word()+",", 300) + word() + "\n" }},
		"one row":  {content.Table, "a,b\n", func(int) string { return word() + "," }},
		"one cell": {content.Table, "a,b\n1,\"", func(int) string { return word() }},
		"headings": {content.Markdown, "", func(int) string { return "# " + word() + "\n\n" }},
		"titles":   {content.Text, "", func(int) string { return "\n" + strings.ToUpper(word()) + "\n\n" }},
		"one line": {content.Text, "", func(int) string { return word() }},
	} {
		t.Run(name, func(t *testing.T) {
			d := digestAs(c.kind, []byte(c.begin))
			_, _ = d.Write([]byte(c.begin))
			for i, size := 0, 0; size < 9<<20; i++ {
				p := c.piece(i)
				_, _ = d.Write([]byte(p))
				size += len(p)
			}
			held := heap() // with d
			s := d.Close()
			d = nil
			promises(t, s)
			if held -= heap(); held > most {
				t.Errorf("%d KiB held", held>>10)
			}
		})
	}
}

func letters(r rune) rune {
	if r >= '0' && r <= '9' {
		return r - '0' + 'g'
	}
	return r
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func FuzzDigest(f *testing.F) {
	for _, text := range digesttest.Cases(f) {
		f.Add(uint8(0), text[:min(len(text), 3000)])
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		d := New("")
		if kind > 0 {
			d = digestAs(kinds[int(kind-1)%len(kinds)], text)
		}
		half := len(text) / 2
		_, _ = d.Write(text[:half])
		_, _ = d.Write(text[half:])
		promises(t, d.Close())
	})
}
