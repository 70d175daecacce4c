package funnel

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// What is not UTF-8 is shown as the text it is, told, and kept byte for byte; however it was cut when it was written.
func TestOtherEncodingsAreShownDecodedAndKeptAsWritten(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	var long strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&long, "línea número %d de la canción\r\n", i)
	}
	for name, e := range map[string]encoding.Encoding{
		"utf-16le": unicode.UTF16(
			unicode.LittleEndian, unicode.UseBOM,
		), "utf-16be": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
		"latin-1": charmap.Windows1252,
	} {
		for _, text := range []string{"línea número 0\r\nla canción\r\n", long.String()} {
			stored, err := e.NewEncoder().Bytes([]byte(text))
			expect.Must(t, err)
			for _, step := range []int{7, 10_007, 1 << 20} {
				a := answered(t, f, Request{Keep: Always, Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
					for rest := stored; len(rest) > 0; {
						n := min(step, len(rest))
						if _, err := out.Write(rest[:n]); err != nil {
							return err
						}
						rest = rest[n:]
					}
					return nil
				})})
				shown, r := texted(a), a.Receipts[0]
				lines := int64(strings.Count(text, "\n"))
				if !strings.Contains(shown, "línea número 0") || !strings.Contains(shown, "note: decoded from "+name) ||
					r.Lines != lines || r.Bytes != int64(len(stored)) {
					t.Errorf("%s in steps of %d: %d lines, %d bytes\n%.600s", name, step, r.Lines, r.Bytes, shown)
				}
				if lines == 4000 && !strings.Contains(shown, "línea número 3999 de la canción") {
					t.Errorf("%s in steps of %d: its end is not shown\n%s", name, step, shown)
				}
				if !bytes.Equal(kept(t, s, r), stored) {
					t.Errorf("%s in steps of %d: what is kept is not what was written", name, step)
				}
			}
		}
	}
	// UTF-8, and what is no text at all, have no such note.
	for _, in := range [][]byte{[]byte("línea\n"), []byte("\x00\x01\x02\xff\xfe"), {}} {
		if a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(in))}); strings.Contains(texted(a), "decoded") {
			t.Errorf("%q: %s", in, texted(a))
		}
	}
}
