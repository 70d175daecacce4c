package content

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// FuzzRecords has the records of any text found in order, one behind the other and inside it, the same whatever
// pieces the text comes in.
func FuzzRecords(f *testing.F) {
	kinds := []Kind{JSON, NDJSON}
	for i, s := range []string{
		`[1,{"a":[2]},"x"]`, "{\"a\":1}\n{\"a\":2}\n",
		"[", "\"\n", "[1,]", "\xff,\x00\n\r\r\n",
	} {
		f.Add(uint8(i), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		k := kinds[int(which)%len(kinds)]
		read := func(in io.Reader) (all []string, ok bool) {
			last, next := int64(0), int64(0)
			err := readRecords(t.Context(), in, k, func(index int64, at Span) bool {
				if index != next || at.Start < last || at.End < at.Start || at.End > int64(len(text)) {
					t.Errorf("%s: record %d at %v, after %d of %d bytes", k, index, at, last, len(text))
				}
				next, last = index+1, at.End
				all = append(all, fmt.Sprint(at))
				return true
			})
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return all, err == nil
		}
		whole, okWhole := read(bytes.NewReader(text))
		pieces, okPieces := read(iotest.OneByteReader(bytes.NewReader(text)))
		if okWhole != okPieces || !slices.Equal(whole, pieces) {
			t.Errorf("%s: %v %t\nin pieces %v %t", k, whole, okWhole, pieces, okPieces)
		}
		half, _ := read(iotest.HalfReader(bytes.NewReader(text)))
		expect.EqualList(t, whole, half, "%s, halves", k)
	})
}
