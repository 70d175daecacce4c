package tables

import (
	"testing"
	"unicode"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The embedded bytes are what `go generate` would write now.
func TestTablesAreGenerated(t *testing.T) {
	for name, embedded := range map[string]string{"o200k_base": o200k, "cl100k_base": cl100k} {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := InOrder(ranks)
		if err != nil {
			t.Fatal(err)
		}
		if table, err := Build(tokens); err != nil || string(table) != embedded {
			t.Errorf("%s.table needs updating (%v): run go generate ./tokens/tables", name, err)
		}
	}
	if string(BuildClasses()) != classes {
		t.Error("classes.table needs updating: run go generate ./tokens/tables")
	}
}

// What the rank files say, the tables say, and nothing more.
func TestRanks(t *testing.T) {
	for name, v := range map[string]*Vocabulary{"o200k_base": O200k(), "cl100k_base": CL100k()} {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		check := func(token []byte) {
			want, ok := ranks[string(token)]
			if got := v.Rank(token); ok && got != uint32(want) || !ok && got != NoRank {
				t.Fatalf("%s: the rank of %q is %d, want %d, %v", name, token, got, want, ok)
			}
			if len(token) == 2 && v.Pair(token[0], token[1]) != v.Rank(token) {
				t.Fatalf("%s: the pair %q has rank %d", name, token, v.Pair(token[0], token[1]))
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
			for _, near := range [][]byte{b, b[1:], b[:len(b)-1], append(b[:len(b):len(b)], b[0]), append([]byte{'x'}, b...), append(b[:len(b):len(b)], b...)} {
				check(near)
			}
		}
		check(make([]byte, 1<<20))
		full := 0
		for at := uint32(0); at <= v.mask; at++ {
			if le32(v.slots, slotSize*at) != 0 {
				full++
			}
		}
		if full != len(ranks) {
			t.Errorf("%s: %d slots are taken by %d tokens", name, full, len(ranks))
		}
	}
}

func TestClassOfEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got, want := ClassOf(r), classify(r); got != want {
			t.Fatalf("%U is %06b, want %06b", r, got, want)
		}
		if r < 0x80 && ASCIIClass(byte(r)) != ClassOf(r) {
			t.Fatalf("%U is %06b among ASCII", r, ASCIIClass(byte(r)))
		}
	}
}
