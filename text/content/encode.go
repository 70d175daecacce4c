package content

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Encode returns a text as it is written in encoding e, without byte order mark, and the bytes of a code unit. The error
// says what cannot be written: a character that e does not have, one beyond ASCII where e is only a guess, or anything in
// an encoding whose characters have several lengths and cannot be told apart from their middle.
func (e Encoding) Encode(text string) (encoded []byte, unit int, err error) {
	if e == UTF8 || e == UTF8BOM {
		return []byte(text), 1, nil
	}
	enc, unit := e.table()
	_, single := enc.(*charmap.Charmap)
	switch {
	case e == NoText:
		return nil, 0, errors.New("it is binary, and only texts can be edited")
	case unit == 1 && !single:
		return nil, 0, fmt.Errorf("it is in the encoding %s, in which a part cannot be replaced safely", e)
	case strings.HasPrefix(string(e), perhaps) &&
		strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }):
		return nil, 0, fmt.Errorf("its encoding is not certain (%s), so only ASCII can be replaced by ASCII", e)
	}
	s, err := enc.NewEncoder().String(text)
	if err != nil {
		return nil, 0, fmt.Errorf("its encoding, %s, lacks a character of the text", e)
	}
	if unit > 1 && s != "" {
		s = s[unit:] // the mark
	}
	return []byte(s), unit, nil
}
