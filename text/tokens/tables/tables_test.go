package tables

import (
	"flag"
	"os"
	"slices"
	"testing"
	"unicode"

	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

var update = flag.Bool("update", false, "write the tables")

func ranksOf(t *testing.T, name string) map[string]int {
	t.Helper()
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
	expect.Must(t, err)
	return ranks
}

// The embedded bytes are what `go generate` would write now.
func TestTablesAreGenerated(t *testing.T) {
	promise.OrdinaryRun(t)
	check := func(name, embedded string, table []byte) {
		switch {
		case string(table) == embedded:
		case !*update:
			t.Errorf("%s.table needs updating: run go generate ./tokens/tables", name)
		default:
			expect.OK(t, os.WriteFile(name+".table", table, 0o644))
		}
	}
	for name, embedded := range map[string]string{"o200k_base": o200k, "cl100k_base": cl100k} {
		tokens, err := inOrder(ranksOf(t, name))
		expect.Must(t, err)
		table, err := buildTable(tokens)
		expect.Must(t, err, name)
		check(name, embedded, table)
	}
	check("classes", classes, buildClasses())
}

// What the rank files say, the tables say, and nothing more.
func TestLongest(t *testing.T) {
	promise.OrdinaryRun(t)
	for name, v := range map[string]*Vocabulary{"o200k_base": O200k(), "cl100k_base": CL100k()} {
		ranks := ranksOf(t, name)
		check := func(s []byte) {
			var want int
			n := min(len(s), longest)
			for ; n > 0; n-- {
				var ok bool
				if want, ok = ranks[string(s[:n])]; ok {
					break
				}
			}
			if rank, size := v.Longest(s); size != n || rank != uint32(want) {
				t.Fatalf("%s: the longest token of %q is %d of %d bytes, want %d of %d", name, s, rank, size, want, n)
			}
		}
		check(nil)
		for a := range 256 {
			for b := range 256 {
				check([]byte{byte(a), byte(b)})
			}
		}
		for token := range ranks {
			b := []byte(token)
			for _, near := range [][]byte{b, b[1:], b[:len(b)-1], append(slices.Clip(b), b[0]), append([]byte{'x'}, b...), append(slices.Clip(b), b...)} {
				check(near)
			}
		}
		check(make([]byte, 1<<20))
		ends := 0
		for at := range uint32(len(v.slots) / slotSize) {
			if numberOf(slotAt(v.slots, at)) != 0 {
				ends++
			}
		}
		expect.Equal(t, ends, len(ranks), "%s, nodes are ends", name)
	}
}

// A vocabulary that the way of counting is not right for is no table.
func TestBuildRefuses(t *testing.T) {
	bytes := make([]string, 256)
	for i := range bytes {
		bytes[i] = string([]byte{byte(i)})
	}
	for why, tokens := range map[string][]string{
		"a byte is missing":      append(slices.Clone(bytes[1:]), "ab"),
		"nothing":                append(slices.Clip(bytes), ""),
		"too long":               append(slices.Clip(bytes), string(make([]byte, longest+1))),
		"its parts are no token": append(slices.Clip(bytes), "abc"),
		"ranks that fall":        append(slices.Clip(bytes), "abc", "ab"),
		"":                       append(slices.Clip(bytes), "bc", "ab", "abc", "abcd"),
	} {
		if _, err := buildTable(tokens); (err == nil) != (why == "") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestClassOfEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got, want := ClassOf(r), classify(r); got != want {
			t.Fatalf("%U is %06b, want %06b", r, got, want)
		}
	}
}
