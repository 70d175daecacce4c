// Package jsontrunc reports whether a JSON text is whole, truncated or broken, at which byte, and its last complete
// element. It parses the text with the scanner of text/content, and never guesses from the last character.
package jsontrunc

// State of a JSON text.
type State string

// The states.
const (
	Whole  State = "whole"
	Cut    State = "cut"    // the text ends within a value
	Broken State = "broken" // the text has a syntax error
	Empty  State = "empty"
)

// The states that only [Check] finds.
const (
	Trailing  State = "trailing"  // text follows a value on its line
	Ambiguous State = "ambiguous" // a number at the end of the text, outside of containers: more digits may follow
	TooDeep   State = "too deep"  // nested deeper than this package reads: nothing is known
)

// Report describes where a JSON or NDJSON text ends or breaks. Each of its texts has at most 4 KiB.
//
// An element is an element of an array, a member of an object, or one of several top-level values. Elements are
// counted in the outermost sequence with a complete element: the top-level values if one is complete, else the
// outermost open array, else the outermost open object. In a whole text with one value, the elements of that value
// are counted.
type Report struct {
	State  State
	Values int64 // complete top-level values
	Offset int64 // byte at which the text ends or breaks, from 0
	// JSON Pointer of the innermost open value ("" at the top). In a text of several values its first token is the
	// index of the value.
	Pointer            string
	Inside             string // "string", "number", "literal", "object", "array", "key", "between values"
	Reason             string // for Broken: the syntax error, for people
	Elements           int64  // number of complete elements, see above
	LastPointer        string // JSON Pointer of the last complete element
	LastStart, LastEnd int64  // byte range of the last complete element; both 0 if there is none
	Last               string // the last complete element, clipped in the middle
	Piece              string // the text after the last complete element, clipped in the middle
	PieceStart         int64

	// Set by [Check] only.
	Line       int64 // line of Offset, from 1
	Duplicates int64 // names that occur again in their object, in objects of about a million names in all
}
