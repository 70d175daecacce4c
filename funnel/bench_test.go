package funnel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// kinds are the real inputs a receipt is made of.
var kinds = []struct {
	name string
	text func() []byte
}{
	{"text", corpus.WarAndPeace},
	{"json", corpus.JSON1MB},
	{"json-5MB", func() []byte { return corpus.JSON5MB() }},
	{"json-one-line", func() []byte { return corpus.JSON1MBMinified() }},
	{"ndjson-rare-key", func() []byte { return corpus.RareKey9k() }},
	{"diff", func() []byte { return corpus.WarAndPeaceDiff() }},
	{"log", func() []byte { return corpus.PanicLog() }},
	{"csv", func() []byte { return corpus.CSV20k() }},
	{"cjk", func() []byte { return corpus.CJK() }},
	{"binary", func() []byte { return corpus.Random(64 << 10) }},
	{"json-cut", func() []byte { return corpus.JSON1MB()[:700_003] }},
	{"json-broken", func() []byte { // an array closed twice
		whole := corpus.JSON1MB()
		at := 500_000 + bytes.Index(whole[500_000:], []byte("},\n"))
		return slices.Concat(whole[:at+1], []byte("]]"), whole[at+1:])
	}},
	{"diff-merge", diffOfAMerge},
	{"diff-cut", func() []byte { // within a hunk
		whole := corpus.WarAndPeaceDiff()
		return whole[:600_000+bytes.Index(whole[600_000:], []byte("\n@@ "))+120]
	}},
	{"diff-many-files", diffOfManyFiles},
	{"markdown", markdown},
}

// diffOfAMerge is a combined diff, as git show has it of a merge, of many files.
func diffOfAMerge() []byte {
	var b bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&b, "diff --cc src/part%d/file%d.go\nindex 1111111,2222222..3333333\n--- a/src/part%[1]d/file%[2]d.go\n+++ b/src/part%[1]d/file%[2]d.go\n", i%7, i)
		fmt.Fprintf(&b, "@@@ -%[1]d,4 -%[1]d,4 +%[1]d,5 @@@ func f%[1]d() {\n  \tcommon := 1\n- \tours := 2\n -\ttheirs := 3\n++\tboth := %[1]d\n++\tmore := 4\n  \tend := 5\n  }\n", i+1)
	}
	return b.Bytes()
}

func diffOfManyFiles() []byte {
	var b bytes.Buffer
	for i := range 90 {
		name := fmt.Sprintf("internal/some/folder/with/a/long/name/number%d/of_many_files_%d.go", i%9, i)
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\nindex 1111111..2222222 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,3 +1,3 @@\n one\n-two %[2]d\n+zwei %[2]d\n three\n", name, i)
	}
	return b.Bytes()
}

func markdown() []byte {
	var b bytes.Buffer
	b.WriteString("# A manual\n\nWhat it is about, in a sentence or two of ordinary prose.\n")
	for i := range 80 {
		fmt.Fprintf(&b, "\n## Chapter %d, which has a longer heading\n\nSome words that follow the heading, and [a link](https://example.org/%d).\n\n### Part %d\n\n- one\n- two\n\n```go\nfunc f%d() {}\n```\n", i, i, i, i)
	}
	b.WriteString("\n```sh\nthis block never ends\n")
	return b.Bytes()
}

// viewsOfKinds are the kinds after the pass, read once for all tests.
var viewsOfKinds = sync.OnceValue(func() (views []*view) {
	f, err := New(Options{})
	if err != nil {
		panic(err)
	}
	for _, k := range kinds {
		views = append(views, viewOf(f, k.text()))
	}
	return views
})

// viewOf is the view of an output that has gone through the pass, without a tool.
func viewOf(f *Funnel, written []byte) *view {
	c := newCall(context.Background(), f, Request{Tool: tools.Tool{Name: "fetch", Toolset: tools.Core}})
	c.out = &output{ctx: c.ctx, pass: newPass(c.limits, f.o.Counter, f.o.Mask, c.holdLimit()), page: newPage(4000, f.o.Counter.Count, f.o.Mask)}
	c.out.pass.write(written)
	s := c.out.pass.close()
	return &view{call: c, seen: s, size: Size{Bytes: s.bytes}, outcome: outcome{status: success}}
}

// BenchmarkFit is what choosing a receipt's content costs, the pass not counted.
func BenchmarkFit(b *testing.B) {
	for i, v := range viewsOfKinds() {
		b.Run(kinds[i].name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.draft(OK).fit(v.f.o.Counter.Count, 600)
			}
		})
	}
}

// BenchmarkReceipt is a whole call with a large output: pass, masker, store, receipt.
func BenchmarkReceipt(b *testing.B) { benchReceipt(b, secrets.New()) }

// BenchmarkUnmasked is the same without the masker, for what that costs.
func BenchmarkUnmasked(b *testing.B) { benchReceipt(b, nil) }

func benchReceipt(b *testing.B, mask *secrets.Masker) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			s := storeIn(b, observations.Options{})
			f := funnelOf(b, Options{Store: s, Mask: mask})
			in := k.text()
			r := Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, writes(in))}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				a, err := f.Call(b.Context(), r)
				if err != nil || !a.Receipts[0].Kept {
					b.Fatalf("%v %+v", err, a.Receipts)
				}
				b.StopTimer()
				if err := s.Remove(observations.Local, observations.ID(a.Receipts[0].ObservationID)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkShown is what makes a page of a foreign text fit to be shown: masked, visible, fenced.
func BenchmarkShown(b *testing.B) {
	mask := secrets.New()
	for name, in := range map[string][]byte{"text": corpus.WarAndPeace()[:16<<10], "json": corpus.JSON1MB()[:16<<10], "log": corpus.PanicLog()[:16<<10]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				s, _ := mask.String(string(in))
				foreign(s, name == "json", inRow)
			}
		})
	}
}

// BenchmarkSmall is a call whose output is passed on: what every call costs at least.
func BenchmarkSmall(b *testing.B) {
	f := funnelOf(b, Options{Store: storeIn(b, observations.Options{})})
	r := Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, writes([]byte("one line of output\nand another\n")))}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Call(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEdges is the counting of lines and chars alone.
func BenchmarkEdges(b *testing.B) {
	in := corpus.WarAndPeace()
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		e := newEdges(10, 5)
		for at := 0; at < len(in); at += chunk {
			_, _ = e.Write(in[at:min(at+chunk, len(in))])
		}
		e.close()
	}
}

// BenchmarkWritePath is the pass over text, written in pieces as small as a line.
func BenchmarkWritePath(b *testing.B) {
	f := funnelOf(b, Options{})
	in := corpus.WarAndPeace()
	for _, piece := range []int{64, 4 << 10, 1 << 20} {
		b.Run(map[int]string{64: "64B", 4 << 10: "4KiB", 1 << 20: "1MiB"}[piece], func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				p := newPass(f.o.Limits, f.o.Counter, f.o.Mask, 64<<10)
				for at := 0; at < len(in); at += piece {
					p.write(in[at:min(at+piece, len(in))])
				}
				p.close()
			}
		})
	}
}
