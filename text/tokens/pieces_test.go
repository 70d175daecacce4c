package tokens

import (
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens/tables"
)

// Every character that begins with two bytes of caselessFrom is a letter without case, of three bytes.
func TestCaselessLeads(t *testing.T) {
	seen := 0
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if s := []byte(string(r)); len(s) > 1 && s[1] >= caselessFrom[s[0]] {
			seen++
			if c := tables.ClassOf(r); c != letter|upper|lower || len(s) != 3 {
				t.Fatalf("%U is of class %06b and %d bytes", r, c, len(s))
			}
		}
	}
	expect.Equal(t, seen, 0xa000-0x4e00+0xd000-0xac00, "runes")
}
