package jq

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Both ways answer the same on a real megabyte.
func TestSameAnswers(t *testing.T) {
	text := string(corpus.JSON1MB())
	for _, filter := range []string{
		"length", ".[0]", ".[] | .id", "group_by(.language) | map({language: .[0].language, n: length})", "[.[] | .version] | add / length", ".[-3:][] | .name",
		"map(select(.language == \"Sindhi\") | .name)", ".[] | select(.version > 9.9) | [.id, .name] | @csv", "first(.[] | select(.name | test(\"^Z\")))", "[.. | strings] | length", "to_entries | map(.key) | add",
	} {
		t.Run(filter, func(t *testing.T) {
			a, err := run(t, inWorker, text, m{"filter": filter})
			expect.Must(t, err)
			b, err := run(t, inProcess, text, m{"filter": filter})
			expect.Must(t, err)
			if joined(a.rows) != joined(b.rows) || a.total != b.total || len(a.rows) == 0 {
				t.Errorf("worker: %d of %d rows, in process: %d of %d", len(a.rows), a.total, len(b.rows), b.total)
			}
		})
	}
}

// A large array goes through an element at a time; what needs all of it at once is told the limit.
func TestLargeArray(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "in"))
	expect.Must(t, err)
	const n = 200_000
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(
			&b, "%s{\"id\":%d,\"name\":\"record number %d\",\"tags\":[\"a\",\"b\",{\"c\":null}]}",
			map[bool]string{true: "[", false: ",\n"}[i == 0], i, i,
		)
		if b.Len() > 1<<20 {
			if _, err := b.WriteTo(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.WriteString("]\n")
	if _, err := b.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	expect.Must(t, f.Close())
	root, err := tree.Open(dir)
	expect.Must(t, err)
	defer func() { _ = root.Close() }()
	from := source.Set{Roots: []*tree.Root{root}}
	tool := JQ(Options{Memory: 64 << 20})

	r, err := call(t.Context(), tool, from, m{"source": "in", "filter": ".[] | select(.id % 50000 == 49999) | .name"}, 100)
	expect.Must(t, err)
	if got := joined(r.rows); got != "\"record number 49999\"\n\"record number 99999\"\n\"record number 149999\"\n\"record number 199999\"" {
		t.Errorf("got %s", got)
	}
	if r.progressed == 0 {
		t.Error("no progress was told")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the hard memory limit is Linux: skipped")
	}
	_, err = call(t.Context(), tool, from, m{"source": "in", "filter": "reverse | map(.id) | add"}, 100)
	if err == nil || !strings.Contains(err.Error(), "needs more than 64 MiB of memory") ||
		!strings.Contains(err.Error(), "`.[] | …`") {
		t.Errorf("got %v", err)
	}
}

// An observation and a text that is not UTF-8 come through a pipe.
func TestStreamedSources(t *testing.T) {
	defer goleak.VerifyNone(t)
	store, err := observations.OpenStore(observations.Options{Dir: filepath.Join(t.TempDir(), "store"), MinFree: -1})
	expect.Must(t, err)
	rec, err := store.Record(observations.Provenance{Owner: observations.Local, Tool: "test"})
	expect.Must(t, err)
	big := bytes.Repeat([]byte("{\"a\":\"b\"}\n"), 100_000)
	if _, err := rec.Write(big); err != nil {
		t.Fatal(err)
	}
	o, err := rec.Commit(observations.Stats{Kind: "ndjson", Ext: "ndjson"})
	expect.Must(t, err)
	from := folder(t, map[string]string{"utf16": utf16LE("{\"a\":\"日本\"}\n{\"a\":2}"), "bom": "\xef\xbb\xbf[1]"})
	from.Places = []source.NamedPlace{source.Observations(store, observations.Local)}
	for _, w := range ways {
		for name, want := range map[string]string{"obs:" + string(o.ID): "100000", "utf16": "2", "bom": "1"} {
			r, err := call(t.Context(), w.tool, from, m{"source": name, "filter": "length", "slurp": true}, 10)
			if err != nil || joined(r.rows) != want {
				t.Errorf("%s, %s: %q, %v", w.name, name, r.rows, err)
			}
			if told := slices.Contains(r.notes, "utf16: decoded from utf-16le"); told != (name == "utf16") {
				t.Errorf("%s, %s: notes %q", w.name, name, r.notes)
			}
		}
		// The reader of a pipe that nobody reads to its end is let go.
		r, err := call(t.Context(), w.tool, from, m{"source": "obs:" + string(o.ID), "filter": "halt"}, 10)
		if err != nil || len(r.rows) > 0 {
			t.Errorf("%s, halt: %q, %v", w.name, r.rows, err)
		}
		r, err = call(t.Context(), w.tool, from, m{"source": "obs:" + string(o.ID), "filter": ".a", "save": true}, 10)
		if err != nil || r.Len() != 4*100_000 || r.origin[0] != "obs:"+string(o.ID) {
			t.Errorf("%s, save: %d bytes from %q, %v", w.name, r.Len(), r.origin, err)
		}
	}
}

func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, r := range s {
		b = binary.LittleEndian.AppendUint16(b, uint16(r))
	}
	return string(b)
}

func TestManyCallsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	from := folder(t, map[string]string{"in": `[1,2,3]`})
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			r, err := call(t.Context(), inWorker, from, m{"source": "in", "filter": fmt.Sprintf("map(. * %d)", i)}, 10)
			if err != nil || joined(r.rows) != fmt.Sprintf("[%d,%d,%d]", i, 2*i, 3*i) {
				t.Errorf("%d: %q, %v", i, r.rows, err)
			}
		})
	}
	all.Wait()
}

// The tool costs little of what the whole list may.
func TestListedTokens(t *testing.T) {
	listed, err := json.Marshal(map[string]any{
		"name": asItIs.Name, "title": asItIs.Title, "description": asItIs.Description, "inputSchema": asItIs.Schema,
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false, "title": asItIs.Title},
	})
	expect.Must(t, err)
	if n := tokens.New(tokens.O200k).Count(string(listed)); n > 275 {
		t.Errorf("%d tokens: %s", n, listed)
	} else {
		t.Logf("%d tokens: %s", n, listed)
	}
}
