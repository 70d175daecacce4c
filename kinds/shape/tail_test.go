package shape

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// TestTail: the report of the last records is that of the whole.
func TestTail(t *testing.T) {
	texts := []string{
		"\xef\xbb\xbf" + `{"a":1}` + "\n" + `{"a":[1,{"b":"x"}],"c":"é"}` + "\n" + `"s"` + "\n12\n" + `{"k":{"l":{}}}` +
			"\nnull\n",
		`{"a":1}` + "\n" + `{"a":` + "\n" + `{"a":3}` + "\n" + `{"a":4}`,
		`{"a":1}` + "\n" + `{"a":2}` + "\noops\n" + `{"a":3}` + "\n",
		`{"a":1} {"a":2}{"a":3}[4]` + "\n  {\n  \"a\": 5\n}\n",
		"{}\n[1,2\n",
	}
	var long strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, `{"id":%d,"text":%q}`+"\n", i, strings.Repeat("x", i*i*20))
	}
	r := rand.New(rand.NewPCG(1, 2))
	check := func(text string, most int) {
		c := jsontrunc.NewChecker()
		_, _ = c.Write([]byte(text))
		d := NewDocument(content.NDJSON)
		for p := text; len(p) > 0; {
			n := min(len(p), 1+r.IntN(most))
			if len(p) == len(text) {
				n = max(n, min(len(p), 3)) // a byte order mark comes whole
			}
			d.Add([]byte(p[:n]))
			p = p[n:]
		}
		if diff := cmp.Diff(c.Close(), d.tail.close()); diff != "" {
			t.Errorf("%.300q in pieces of up to %d (-whole +tail)\n%s", text, most, diff)
		}
	}
	for _, text := range texts {
		for n := range len(text) + 1 {
			for _, most := range []int{1, 3, 1000} {
				check(text[:n], most)
			}
		}
	}
	for range 60 {
		check(long.String()[:r.IntN(long.Len())], 4000)
	}
	big := long.String() + `{"id":99,"text":"` + strings.Repeat("y", 2*tailBytes)
	check(big, 30_000)
	check(big+`"}`+"\n"+`{"id":100}`+"\n"+`{"id":`, 30_000)
}
