package content

import (
	"fmt"
	"io"
)

// MaxDepth is how deep arrays and objects may be nested: the limit of
// encoding/json, so that what is scanned here can be decoded there.
const MaxDepth = 10_000

// SyntaxError says where a text is not what its kind says. It is
// [io.ErrUnexpectedEOF] to errors.Is where the text ends too early.
type SyntaxError struct {
	Offset int64  // of the first byte that may not stand there, or the end of a text that breaks off
	Reason string // "invalid character 'x' after a value"
	Cut    bool   // the text ends too early
	Lines  int64  // of NDJSON that are no JSON: this is the first, they were passed over, and what stands behind them was read

	Before *SyntaxError // the first of such lines, where the text is broken behind them too
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Is makes a text that breaks off recognisable without looking at its fields.
func (e *SyntaxError) Is(target error) bool { return e.Cut && target == io.ErrUnexpectedEOF }

// Event is what a [Scanner] has come to.
type Event uint8

// The events. A start is told when its first byte ('{', '[', '"', the first
// digit or letter) is used up, an end when the last byte is. The end of a number
// or literal is told only when the byte after it is seen, since nothing
// in it says that it is over; that byte is not used up.
const (
	More Event = iota // all of p is used up, or the text is broken
	ObjectStart
	ObjectEnd
	ArrayStart
	ArrayEnd
	KeyStart
	KeyEnd
	StringStart
	StringEnd
	NumberStart
	NumberEnd
	LiteralStart
	LiteralEnd
)

// Starts says whether a value begins with e (a key is not a value).
func (e Event) Starts() bool {
	return e == ObjectStart || e == ArrayStart || e == StringStart || e == NumberStart || e == LiteralStart
}

// Ends says whether a value ends with e.
func (e Event) Ends() bool {
	return e == ObjectEnd || e == ArrayEnd || e == StringEnd || e == NumberEnd || e == LiteralEnd
}

type step uint8

const (
	stepValue     step = iota // a value must follow; at the top, may
	stepFirstElem             // after '[': a value or ']'
	stepFirstKey              // after '{': a key or '}'
	stepKey                   // after ',' in an object
	stepColon
	stepAfter // after a value inside a container
	stepString
	stepEscape
	stepHex
	stepLiteral
	stepMinus
	stepZero
	stepInt
	stepPoint
	stepFrac
	stepExp
	stepExpSign
	stepExpDigits
)

// Scanner finds the structure of JSON in pieces of any size: RFC 8259, one value
// or several in a row, duplicate keys and invalid UTF-8 let pass. It keeps no text,
// only a bit for each open container, so that a value may be of any
// size. The zero value is ready.
//
//	for len(p) > 0 && s.Err() == nil {
//		n, e := s.Scan(p)
//		… p[:n] was used up on the way to e …
//		p = p[n:]
//	}
type Scanner struct {
	// Quiet is a depth: values nested as deep, or deeper, are checked but not told (nor their keys). 0: all are told.
	Quiet int

	off    int64
	depth  int
	object [(MaxDepth + 63) / 64]uint64 // a bit for each open container: an object
	step   step
	key    bool   // the string being read is a key
	hex    uint8  // digits of \u read
	word   string // rest of the literal being read
	err    *SyntaxError
}

// Offset is how many bytes were used up.
func (s *Scanner) Offset() int64 { return s.off }

// Depth is how many arrays and objects are open; one counts from its start event on, and no longer at its end event.
func (s *Scanner) Depth() int { return s.depth }

// Err says what was wrong; nil as long as the text is right so far. After an error nothing more is used up.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// InObject says whether the innermost open container is an object.
func (s *Scanner) InObject() bool { return s.depth > 0 && s.isObject(s.depth-1) }

func (s *Scanner) isObject(d int) bool { return s.object[d>>6]>>(d&63)&1 != 0 }

// BetweenValues is what [Scanner.Inside] says where no value is open.
const BetweenValues = "between values"

// Inside names what the text stands in now: "string", "key", "number", "literal", "object", "array", or [BetweenValues] at the top.
func (s *Scanner) Inside() string {
	switch {
	case s.step == stepString || s.step == stepEscape || s.step == stepHex:
		if s.key {
			return "key"
		}
		return "string"
	case s.step == stepLiteral:
		return "literal"
	case s.step >= stepMinus:
		return "number"
	case s.depth == 0:
		return BetweenValues
	case s.InObject():
		return "object"
	}
	return "array"
}

// End is called where the text ends: a number or literal that is complete ends there, and its end is the event
// (else More). What is still open then is a [SyntaxError] with Cut.
func (s *Scanner) End() (Event, error) {
	if s.err != nil {
		return More, s.err
	}
	e, inside := More, s.Inside() // before a number is closed that the text breaks off behind
	switch s.step {
	case stepZero, stepInt, stepFrac, stepExpDigits:
		e = NumberEnd
		s.ended()
	case stepLiteral:
		if s.word == "" {
			e = LiteralEnd
			s.ended()
		}
	}
	if s.depth == 0 && s.step == stepValue {
		return e, nil
	}
	return e, s.breaksOff(inside)
}

// breaksOff is the error of a text that ends here, inside something.
func (s *Scanner) breaksOff(inside string) *SyntaxError {
	return &SyntaxError{Offset: s.off, Reason: "the text ends inside " + article(inside), Cut: true}
}

func article(what string) string {
	switch what {
	case "object", "array":
		return "an " + what
	}
	return "a " + what
}

// ended sets what may follow a complete value.
func (s *Scanner) ended() {
	if s.depth == 0 {
		s.step = stepValue
	} else {
		s.step = stepAfter
	}
}

func (s *Scanner) fail(at int, reason string) (int, Event) {
	s.off += int64(at)
	s.err = &SyntaxError{Offset: s.off, Reason: reason}
	return at, More
}

func (s *Scanner) unexpected(p []byte, at int, where string) (int, Event) {
	return s.fail(at, fmt.Sprintf("invalid character %s %s", quoteByte(p[at]), where))
}

func quoteByte(b byte) string {
	if b < 0x80 {
		return fmt.Sprintf("%q", rune(b))
	}
	return fmt.Sprintf(`'\x%02x'`, b)
}

func (s *Scanner) told() bool { return s.Quiet == 0 || s.depth < s.Quiet }

// Scan uses up p as far as the next event and says how much that was.
func (s *Scanner) Scan(p []byte) (int, Event) {
	if s.err != nil {
		return 0, More
	}
	i := 0
	for i < len(p) {
		if s.step >= stepString {
			n, e, bad := s.within(p[i:])
			i += n
			if bad != "" {
				return s.unexpected(p, i, bad)
			}
			if e != More && s.told() {
				s.off += int64(i)
				return i, e
			}
			continue
		}
		c := p[i]
		if c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
			i++
			continue
		}
		switch { // the commonest two
		case c == ',' && s.step == stepAfter:
			s.step = stepValue
			if s.isObject(s.depth - 1) {
				s.step = stepKey
			}
			i++
			continue
		case c == ':' && s.step == stepColon:
			s.step = stepValue
			i++
			continue
		}
		e, bad := s.structure(c)
		if bad != "" {
			return s.unexpected(p, i, bad)
		}
		if s.depth > MaxDepth {
			s.depth--
			return s.fail(i, fmt.Sprintf("nested over %d deep", MaxDepth))
		}
		i++
		if e == More {
			continue
		}
		tell := s.told()
		if e == ObjectStart || e == ArrayStart {
			tell = s.Quiet == 0 || s.depth-1 < s.Quiet
		}
		if tell {
			s.off += int64(i)
			return i, e
		}
	}
	s.off += int64(i)
	return i, More
}

// structure takes one byte that is not white space and stands outside strings, numbers and literals, and is no ',' or ':' in its place.
func (s *Scanner) structure(c byte) (Event, string) {
	switch s.step {
	case stepFirstElem:
		if c == ']' {
			return s.pop(ArrayEnd), ""
		}
		fallthrough
	case stepValue:
		return s.begin(c)
	case stepFirstKey:
		if c == '}' {
			return s.pop(ObjectEnd), ""
		}
		fallthrough
	case stepKey:
		if c != '"' {
			return More, "where a key must stand"
		}
		s.step, s.key = stepString, true
		return KeyStart, ""
	case stepColon:
		return More, "after a key, where ':' must stand"
	}
	// stepAfter
	switch object := s.isObject(s.depth - 1); {
	case object && c == '}':
		return s.pop(ObjectEnd), ""
	case object:
		return More, "after a value in an object, where ',' or '}' must stand"
	case c == ']':
		return s.pop(ArrayEnd), ""
	}
	return More, "after a value in an array, where ',' or ']' must stand"
}

// begin takes the first byte of a value.
func (s *Scanner) begin(c byte) (Event, string) {
	switch c {
	case '{':
		s.push(true)
		s.step = stepFirstKey
		return ObjectStart, ""
	case '[':
		s.push(false)
		s.step = stepFirstElem
		return ArrayStart, ""
	case '"':
		s.step, s.key = stepString, false
		return StringStart, ""
	case '-':
		s.step = stepMinus
		return NumberStart, ""
	case '0':
		s.step = stepZero
		return NumberStart, ""
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.step = stepInt
		return NumberStart, ""
	case 't':
		s.step, s.word = stepLiteral, "true"[1:]
		return LiteralStart, ""
	case 'f':
		s.step, s.word = stepLiteral, "false"[1:]
		return LiteralStart, ""
	case 'n':
		s.step, s.word = stepLiteral, "null"[1:]
		return LiteralStart, ""
	}
	if s.depth == 0 {
		return More, "where a value must stand"
	}
	return More, "where a value must stand in " + article(s.Inside())
}

func (s *Scanner) push(object bool) {
	if s.depth < MaxDepth {
		bit := uint64(1) << (s.depth & 63)
		if object {
			s.object[s.depth>>6] |= bit
		} else {
			s.object[s.depth>>6] &^= bit
		}
	}
	s.depth++
}

func (s *Scanner) pop(e Event) Event {
	s.depth--
	s.ended()
	return e
}
