package extract

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestRTF(t *testing.T) {
	for _, c := range expect.Table[struct{ Name, Text, Want string }](t, "testdata/rtf.tsv") {
		t.Run(c.Name, func(t *testing.T) {
			x, err := read(t, "rtf", []byte(c.Text))
			if got := show(x); err != nil || got != c.Want {
				t.Errorf("got %q, %v; want %q", got, err, c.Want)
			}
		})
	}
	for _, bad := range []string{"plain text", `{\rtf1 ` + strings.Repeat("{", 300)} {
		if _, err := read(t, "rtf", []byte(bad)); !errors.Is(err, ErrBroken) {
			t.Errorf("%.20q: got %v, want %v", bad, err, ErrBroken)
		}
	}
}
