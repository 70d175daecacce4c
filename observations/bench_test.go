package observations

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// Compares the write path with two peers in one run: writing the same bytes to a file (cat > file), and hashing them.
// Compare MB/s.
func BenchmarkWritePath(b *testing.B) {
	for _, in := range []struct {
		name string
		text []byte
		n    int // times over
	}{
		{"1MB JSON", corpus.JSON1MB(), 1},
		{"5MB JSON", corpus.JSON5MB(), 1},
		{"novel x20", corpus.WarAndPeace(), 20},
		{"CJK x20", corpus.CJK(), 20},
	} {
		const piece = 32 << 10 // as the funnel hands it on
		each := func(write func([]byte)) {
			for range in.n {
				for rest := in.text; len(rest) > 0; {
					n := min(piece, len(rest))
					write(rest[:n])
					rest = rest[n:]
				}
			}
		}
		total := int64(len(in.text) * in.n)
		b.Run(in.name+"/ours", func(b *testing.B) {
			s := open(b, Options{})
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Record(Provenance{Tool: "keep"})
				if err != nil {
					b.Fatal(err)
				}
				each(func(p []byte) { _, _ = r.Write(p) })
				o, err := r.Commit(Stats{})
				if err != nil || o.Dropped > 0 {
					b.Fatal(err, o.Cause)
				}
				b.StopTimer()
				_ = s.Remove(Local, o.ID)
				b.StartTimer()
			}
		})
		b.Run(in.name+"/file only", func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "file")
			b.SetBytes(total)
			for b.Loop() {
				f, err := os.Create(name)
				if err != nil {
					b.Fatal(err)
				}
				each(func(p []byte) { _, _ = f.Write(p) })
				_ = f.Close()
				b.StopTimer()
				_ = os.Remove(name)
				b.StartTimer()
			}
		})
		b.Run(in.name+"/sha256 only", func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				h := sha256.New()
				each(func(p []byte) { h.Write(p) })
				h.Sum(nil)
			}
		})
		b.Run(in.name+"/index only", func(b *testing.B) {
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				var x indexer
				each(func(b []byte) { _, _ = x.Write(b) })
				x.finish()
			}
		})
	}
}

// A call whose output stays in memory and is not stored, and one of 3 KB that is.
func BenchmarkSmall(b *testing.B) {
	text := corpus.WarAndPeace()[:3000]
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept %v", kept), func(b *testing.B) {
			s := open(b, Options{})
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Record(Provenance{Tool: "search", Args: []byte(`{"pattern":"Natasha"}`)})
				if err != nil {
					b.Fatal(err)
				}
				_, _ = r.Write(text)
				if !kept {
					_ = r.Discard()
					continue
				}
				if _, err := r.Commit(Stats{Ext: "txt", Receipt: "LARGE OUTPUT DETECTED"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	s := open(b, Options{})
	o := keep(b, s, Provenance{}, corpus.Random(100_000))
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.Open(Local, o.ID)
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Close()
	}
}

// The offset of a line and of a rune in the middle of 66 MB, with a cold index.
func BenchmarkOffsets(b *testing.B) {
	s := open(b, Options{})
	r, err := s.Record(Provenance{})
	if err != nil {
		b.Fatal(err)
	}
	for range 20 {
		_, _ = r.Write(corpus.WarAndPeace())
	}
	o, err := r.Commit(Stats{})
	if err != nil {
		b.Fatal(err)
	}
	for name, ask := range map[string]func(*Reader) error{
		"line": func(r *Reader) error { _, _, err := r.LineOffset(600_000); return err },
		"char": func(r *Reader) error { _, _, err := r.CharOffset(30_000_000); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Open(Local, o.ID)
				if err == nil {
					err = ask(r)
				}
				if err != nil {
					b.Fatal(err)
				}
				_ = r.Close()
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	s := open(b, Options{Dir: filepath.Join(scratch(b), "store")})
	n := 0
	for _, all := range []int{1000, 10_000} {
		for ; n < all; n++ {
			o := keep(b, s, Provenance{Tool: "search", Args: fmt.Appendf(nil, `{"pattern":"%d"}`, n)}, []byte("x"))
			if n%10 == 0 {
				must(b, s.Pin(Local, o.ID, true))
			}
		}
		b.Run(fmt.Sprint(all), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := s.List(Local, false); err != nil || len(list) != all {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}

// Opening a store of a thousand observations, which every start of the program does.
func BenchmarkOpenStore(b *testing.B) {
	s := open(b, Options{})
	for range 1000 {
		keep(b, s, Provenance{}, []byte("x"))
	}
	for b.Loop() {
		again, err := OpenStore(roomy(Options{Dir: s.Dir()}))
		if err != nil {
			b.Fatal(err)
		}
		_ = again.Close()
	}
}
