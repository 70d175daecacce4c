// Package cutoff says of a JSON text whether it is whole, cut off or broken,
// where, and what stood last: by parsing, never by the last character.
//
// It reads with the scanner of internal/content, the one package of its floor
// that it imports: one scanner of JSON, not two.
//
// It repairs nothing.
package cutoff

import "io"

// State of a JSON text.
type State string

// The states.
const (
	Whole  State = "whole"
	Cut    State = "cut"    // it ends before its value does
	Broken State = "broken" // something stands where it may not
	Empty  State = "empty"
)

// Report says where a JSON or NDJSON text breaks off. Texts are at most 4 KiB each.
//
// An element is an element of an array, a member of an object, or, in a text of several values, one of
// them. Which ones are counted, and which was last, is asked of the outermost sequence that has a complete one: of the
// values of the text if one is complete, else of the outermost open array, else of the outermost open object. Of a whole text
// with one value these are the elements of that value.
type Report struct {
	State              State
	Values             int64  // complete top-level values
	Offset             int64  // byte where it breaks off, from 0; of a whole text its length
	Pointer            string // JSON Pointer of the innermost open value ("" at the top); with several values its first token is the record
	Inside             string // "string", "number", "literal", "object", "array", "key", "between values"
	Reason             string // for Broken: what was wrong, for people
	Elements           int64  // complete elements of the outermost open array (or members of the object)
	LastPointer        string // JSON Pointer of the last complete element
	LastStart, LastEnd int64  // its bytes; both 0 where there is none
	Last               string // the last complete element, clipped in the middle
	Piece              string // the cut-off piece as it is: from the end of the last complete element; clipped in the middle
	PieceStart         int64
}

// Check reads r to its end.
func Check(r io.Reader) (Report, error) {
	c := NewChecker()
	if _, err := io.CopyBuffer(c, struct{ io.Reader }{r}, make([]byte, 64<<10)); err != nil {
		return Report{}, err
	}
	return c.Close(), nil
}
