package observations

import (
	"fmt"
	"path/filepath"
	"testing"
)

func BenchmarkList(b *testing.B) {
	s := temporary(OpenStore)(b, Options{Dir: filepath.Join(scratch(b), "store")})
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
	s := temporary(OpenStore)(b, Options{})
	for range 1000 {
		keep(b, s, Provenance{}, []byte("x"))
	}
	for b.Loop() {
		again := value(OpenStore(roomy(Options{Dir: s.Dir()})))
		_ = again.Close()
	}
}
