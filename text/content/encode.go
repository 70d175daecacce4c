package content

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Encode returns a text as it is written in encoding e, without byte order mark, and the bytes of a code unit. The error
// says what cannot be written: a character that e does not have, one beyond ASCII where e is only a guess, or anything in
// an encoding whose characters have several lengths and cannot be told apart from their middle.
func (e Encoding) Encode(text string) (encoded []byte, unit int, err error) {
	var enc encoding.Encoding
	unit = 1
	switch e {
	case UTF8, UTF8BOM:
		return []byte(text), 1, nil
	case UTF16LE, UTF16BE:
		order := utf.LittleEndian
		if e == UTF16BE {
			order = utf.BigEndian
		}
		enc, unit = utf.UTF16(order, utf.IgnoreBOM), 2
	case UTF32LE, UTF32BE:
		order := utf32.LittleEndian
		if e == UTF32BE {
			order = utf32.BigEndian
		}
		enc, unit = utf32.UTF32(order, utf32.IgnoreBOM), 4
	default:
		if table, ok := e.legacy().(*charmap.Charmap); ok {
			enc = table
		}
	}
	switch {
	case enc == nil:
		return nil, 0, fmt.Errorf("it is in the encoding %s, in which a part cannot be replaced safely", e)
	case strings.HasPrefix(string(e), perhaps) &&
		strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }):
		return nil, 0, fmt.Errorf("its encoding is not certain (%s), so only ASCII can be replaced by ASCII", e)
	}
	s, err := enc.NewEncoder().String(text)
	if err != nil {
		return nil, 0, fmt.Errorf("its encoding, %s, lacks a character of the text", e)
	}
	return []byte(s), unit, nil
}
