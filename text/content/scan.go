package content

import (
	"fmt"
	"io"
)

// MaxDepth is the maximum nesting depth of arrays and objects. It is the limit of encoding/json, which can therefore
// decode any JSON that [Scanner] accepts.
const MaxDepth = 10_000

// SyntaxError reports where a text is not valid JSON or NDJSON. If the text is truncated, errors.Is matches
// [io.ErrUnexpectedEOF].
type SyntaxError struct {
	Offset int64  // of the first invalid byte, or the end of a truncated text
	Reason string // "invalid character 'x' after a value"
	Cut    bool   // the text is truncated
	// number of invalid lines of NDJSON, all of them skipped; the other fields describe the first
	Lines int64

	Before *SyntaxError // error of the first invalid line, if the text has a further error after the skipped lines
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Is makes errors.Is(err, io.ErrUnexpectedEOF) true for a truncated text.
func (e *SyntaxError) Is(target error) bool { return e.Cut && target == io.ErrUnexpectedEOF }

// Event is a start or an end of a JSON value or key, as returned by [Scanner.Scan].
type Event uint8

// The events. A start event is returned after the first byte of the value ('{', '[', '"', the first digit or letter)
// is consumed, an end event after the last byte. The end of a number or literal can be seen only from the next byte,
// so its event is returned when that byte arrives; the byte itself is not consumed.
const (
	More Event = iota // all input is consumed, or the text is invalid
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

// Opens reports whether e is the start of a container: an object or array.
func (e Event) Opens() bool { return e == ObjectStart || e == ArrayStart }

// Starts reports whether e is the start of a value; a key is not a value.
func (e Event) Starts() bool {
	return e.Opens() || e == StringStart || e == NumberStart || e == LiteralStart
}

// Ends reports whether e is the end of a value; a key is not a value.
func (e Event) Ends() bool {
	return e == ObjectEnd || e == ArrayEnd || e == StringEnd || e == NumberEnd || e == LiteralEnd
}

type step uint8

const (
	stepValue     step = iota // before a value; at the top level the value is optional
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

// Scanner finds the structure of JSON (RFC 8259) in a text that arrives in blocks of any size. It accepts one value
// or several in a row, and does not reject duplicate keys or invalid UTF-8. It stores no text, only one bit for each
// open container (array or object), so that a value may be of any size. The zero value is ready to use.
//
//	for len(p) > 0 && s.Err() == nil {
//		n, e := s.Scan(p)
//		… p[:n] was consumed up to event e …
//		p = p[n:]
//	}
type Scanner struct {
	// Quiet is a nesting depth: values inside at least that many containers are checked, but neither they nor their
	// keys cause events. 0 means events for all values.
	Quiet int

	off    int64
	depth  int
	object [(MaxDepth + 63) / 64]uint64 // one bit for each open container, set for an object
	step   step
	key    bool   // the string being read is a key
	hex    uint8  // number of hexadecimal digits read after \u
	word   string // unread rest of the current literal
	err    *SyntaxError
}

// Offset returns the number of bytes consumed so far.
func (s *Scanner) Offset() int64 { return s.off }

// Depth returns the number of open arrays and objects. At its start event a container is counted; at its end event it
// is not.
func (s *Scanner) Depth() int { return s.depth }

// Around returns the number of containers around the value of e, the last event.
func (s *Scanner) Around(e Event) int {
	if e.Opens() {
		return s.depth - 1
	}
	return s.depth
}

// Err returns the error of the text so far, or nil. After an error the scanner consumes nothing more.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// Resume forgets the error, as if the text ended before it.
func (s *Scanner) Resume() { s.err = nil }

// InObject reports whether the innermost open container is an object.
func (s *Scanner) InObject() bool { return s.depth > 0 && s.isObject(s.depth-1) }

func (s *Scanner) isObject(d int) bool { return s.object[d>>6]>>(d&63)&1 != 0 }

// BetweenValues is the result of [Scanner.Inside] if no value is open.
const BetweenValues = "between values"

// Inside returns the type of the innermost open value: "string", "key", "number", "literal", "object" or "array", or
// [BetweenValues] if none is open.
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

// End must be called at the end of the text. It returns the end event of a number or literal that the end of the text
// completes, else More. If a value is still open, the error is a [SyntaxError] with Cut.
func (s *Scanner) End() (Event, error) {
	if s.err != nil {
		return More, s.err
	}
	e, inside := More, s.Inside() // as it is before the number is closed below
	switch {
	case s.step.endsNumber():
		e = NumberEnd
		s.endValue()
	case s.step == stepLiteral && s.word == "":
		e = LiteralEnd
		s.endValue()
	}
	if s.depth == 0 && s.step == stepValue {
		return e, nil
	}
	return e, s.truncated(inside)
}

// truncated returns the error of a text that is truncated at the current offset, inside the named type of value.
func (s *Scanner) truncated(inside string) *SyntaxError {
	return &SyntaxError{Offset: s.off, Reason: "the text ends inside " + Article(inside), Cut: true}
}

// endValue sets the step after a complete value.
func (s *Scanner) endValue() {
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

// reports reports whether values inside depth containers cause events.
func (s *Scanner) reports(depth int) bool { return s.Quiet == 0 || depth < s.Quiet }

// Scan consumes p up to the next event and returns the number of consumed bytes and the event.
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
			if e != More && s.reports(s.depth) {
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
		switch { // the two most common bytes
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
		if i++; s.reports(s.Around(e)) {
			s.off += int64(i)
			return i, e
		}
	}
	s.off += int64(i)
	return i, More
}

// structure processes one byte outside strings, numbers and literals. Scan itself handles white space and each ',' or
// ':' that is allowed. The second result says what is wrong with the byte; "" if nothing.
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

// begin processes the first byte of a value.
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
	return More, "where a value must stand in " + Article(s.Inside())
}

func (s *Scanner) push(object bool) {
	if s.depth < MaxDepth {
		bit := uint64(1) << (s.depth & 63)
		s.object[s.depth>>6] &^= bit
		if object {
			s.object[s.depth>>6] |= bit
		}
	}
	s.depth++
}

func (s *Scanner) pop(e Event) Event {
	s.depth--
	s.endValue()
	return e
}
