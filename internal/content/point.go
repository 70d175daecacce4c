package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrNoValue is wrapped by the error of [Point] if the pointer leads to no value.
var ErrNoValue = errors.New("no value")

// maxKeysTold is the maximum number of an object's keys that the error of [Point] lists.
const maxKeysTold = 12

// Point returns the range of the value at an RFC 6901 JSON Pointer. "" is the whole text; in NDJSON the first token
// is the record number, counted as by [LineValues].
//
// Of several members with the same key the last one counts, as in jq. Therefore each object around the value is read
// to its end; an array around it is not. If the text is truncated after the value, the range is still correct. If
// there is no value, the error is ErrNoValue; it names the deepest existing container on the path and its type or
// keys.
func Point(ctx context.Context, r io.Reader, k Kind, pointer string) (Span, error) {
	tokens, err := splitPointer(pointer)
	if err != nil {
		return Span{}, err
	}
	if k == NDJSON && len(tokens) == 0 {
		return whole(ctx, r)
	}
	f := finder{tokens: tokens, records: k == NDJSON}
	if f.records {
		err = f.lines(ctx, r)
	} else {
		err = f.text(ctx, r)
	}
	if err != nil && ctx.Err() != nil {
		return Span{}, err
	}
	switch {
	case f.found:
		return f.target, nil
	case err != nil && f.reading:
		return Span{}, fmt.Errorf(
			"the value at %s begins at byte %d and is not complete: %w", told(pointer, 100), f.target.Start, err,
		)
	case err != nil:
		return Span{}, err
	}
	return Span{}, f.missing()
}

// told returns a pointer, or a part of one, for an error message: in one line of at most max bytes.
func told(pointer string, max int) string { return ClipBytes(VisibleLine(pointer), max) }

// splitPointer returns the unescaped tokens of a pointer.
func splitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("not a JSON Pointer: %s; it begins with \"/\", as in /items/0/name", told(pointer, 100))
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		if !strings.Contains(t, "~") {
			continue
		}
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, fmt.Errorf("not a JSON Pointer: in %s a ~ must be written ~0 (and a / in a key ~1)", told(t, 100))
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

func whole(ctx context.Context, r io.Reader) (Span, error) {
	var size int64
	_, err := pump(ctx, r, func(p []byte) (bool, error) { size += int64(len(p)); return false, nil })
	return Span{0, size}, err
}

// finder follows one pointer through a text. Its field on is the number of open containers on the path to the value;
// values outside the path cause no events.
//
//	{"a": [10, {"b": 1}]}     /a/1/b     on: 1 in the object, 2 in the array, 3 in the inner object
type finder struct {
	*Scanner
	tokens  []string
	records bool // the first token is the top-level value

	record  int64 // number of complete records
	on      int
	trail   []place
	next    bool   // the key just read is the current token
	key     []byte // the current key as written, truncated by keyRoom
	inKey   bool
	reading bool // within the value searched for
	found   bool
	target  Span
}

// place is an existing value on the path of the pointer.
type place struct {
	what  Event // start event of the value: its type
	count int64 // number of children begun
	keys  []string
}

// text searches a text of one value.
func (f *finder) text(ctx context.Context, r io.Reader) error {
	f.Scanner = &Scanner{Quiet: 1}
	ended, err := pump(ctx, r, f.window)
	if ended {
		var e Event
		if e, err = f.End(); err == nil { // else the text is truncated, and its last value may be incomplete
			f.event(e)
		}
	}
	return err
}

// lines searches NDJSON and skips invalid lines.
func (f *finder) lines(ctx context.Context, r io.Reader) error {
	l := lineReader{event: f.step}
	l.lost = func() {
		*f = finder{Scanner: f.Scanner, tokens: f.tokens, records: true, record: l.values, key: f.key}
		f.Quiet = 1
	}
	f.Scanner = &l.Scanner
	f.Quiet = 1
	err := l.read(ctx, r)
	var broken *SyntaxError
	if errors.As(err, &broken) && broken.Lines > 0 {
		return nil // only other lines are invalid
	}
	return err
}

// step processes event e; used are the bytes that the scanner consumed up to e.
func (f *finder) step(used []byte, e Event) (enough bool) {
	if f.inKey {
		f.key = append(f.key, used[:min(len(used), f.keyRoom())]...)
	}
	return f.event(e)
}

func (f *finder) window(p []byte) (enough bool, err error) {
	for len(p) > 0 {
		n, e := f.Scan(p)
		if f.step(p[:n], e) {
			return true, nil
		}
		if err := f.Err(); err != nil {
			return false, err
		}
		p = p[n:]
	}
	return false, nil
}

// keyRoom returns how many more bytes of the key to store: enough for the longest spelling of the token, in which
// each byte is escaped as \u0000, and at least 256 in total for the error message.
func (f *finder) keyRoom() int {
	return max(len("\\u0000")*len(f.token())+1, 256) - len(f.key)
}

// token returns the pointer's token for the innermost container on the path; "" if there is none.
func (f *finder) token() string {
	at := f.on
	if f.records {
		at++
	}
	if at <= 0 || at > len(f.tokens) {
		return ""
	}
	return f.tokens[at-1]
}

// last reports whether a value inside n containers on the path is the value searched for.
func (f *finder) last(n int) bool {
	if f.records {
		n++
	}
	return n == len(f.tokens)
}

// event processes one event. It returns true if the rest of the text cannot change the result.
func (f *finder) event(e Event) (enough bool) {
	switch {
	case e == More:
		return false
	case e == KeyStart:
		f.inKey, f.key = true, f.key[:0]
		return false
	case e == KeyEnd:
		f.keyEnd()
		return false
	case e.Starts():
		return f.starts(e)
	}
	return f.ends(e)
}

func (f *finder) keyEnd() {
	f.inKey = false
	here := &f.trail[f.on-1]
	whole := f.key[:max(len(f.key)-1, 0)]
	key := appendUnquoted(nil, whole)
	f.next = string(key) == f.token()
	if len(here.keys) < maxKeysTold {
		here.keys = append(here.keys, told(string(key), 40))
	}
	if f.next { // of several equal keys the last one counts
		f.found = false
		f.trail = f.trail[:f.on]
	}
}

func (f *finder) starts(e Event) (enough bool) {
	depth := f.Depth()
	if e == ObjectStart || e == ArrayStart {
		depth--
	}
	if depth != f.on {
		return false // inside the value searched for
	}
	on := f.next
	switch depth {
	case 0:
		on = true
		if f.records {
			on = isIndex(f.tokens[0], f.record)
		}
	default:
		here := &f.trail[f.on-1]
		if here.what == ArrayStart {
			on = isIndex(f.token(), here.count)
		}
		here.count++
	}
	f.next = false
	if !on {
		return false
	}
	f.trail = append(f.trail[:f.on], place{what: e})
	if f.last(f.on) {
		f.reading, f.target.Start = true, f.Offset()-1
		return false
	}
	if e == ObjectStart || e == ArrayStart {
		f.on++
		f.Quiet = f.on + 1
		return false
	}
	return false
}

func (f *finder) ends(e Event) (enough bool) {
	depth := f.Depth()
	if depth == 0 {
		f.record++
	}
	switch {
	case f.reading && depth == f.on:
		f.reading, f.found = false, true
		f.target.End = f.Offset()
	case depth < f.on:
		f.on--
		f.Quiet = f.on + 1
	default:
		// A value off the path, or a scalar with tokens left. At the top level nothing else can match.
		return depth == 0 && len(f.trail) > 0
	}
	// The value, or a container on the path to it, has ended.
	if f.records && depth > 0 { // the rest of the line may be invalid: then it is no record
		return false
	}
	for _, p := range f.trail[:f.on] {
		if p.what == ObjectStart {
			return false
		}
	}
	return true
}

// isIndex reports whether a token is the array index n: digits without a leading zero.
func isIndex(token string, n int64) bool {
	var b [20]byte
	return token == string(strconv.AppendInt(b[:0], n, 10))
}

// missing returns the [ErrNoValue] error with the deepest existing value on the path.
func (f *finder) missing() error {
	if len(f.trail) == 0 {
		if f.records {
			return fmt.Errorf(
				"%w: no record %s; there are %d (0-%d), and the first token of the pointer is the record", ErrNoValue,
				told(f.tokens[0], 40), f.record, max(f.record-1, 0),
			)
		}
		return fmt.Errorf("%w: the text is empty", ErrNoValue)
	}
	end := len(f.trail) - 1
	if f.records {
		end++
	}
	var deepest, token string
	for _, t := range f.tokens[:end] {
		deepest += "/" + tokenEscapes.Replace(t)
	}
	if end < len(f.tokens) {
		token = f.tokens[end]
	}
	deepest = told(deepest, 100)
	if deepest == "" {
		deepest = "the top level"
	}
	p := f.trail[len(f.trail)-1]
	switch p.what {
	case ArrayStart:
		if p.count == 0 {
			return fmt.Errorf("%w: %s is an empty array", ErrNoValue, deepest)
		}
		return fmt.Errorf(
			"%w: %s is an array of %d: give 0-%d, not %s", ErrNoValue, deepest, p.count, p.count-1, told(token, 40),
		)
	case ObjectStart:
		if p.count == 0 {
			return fmt.Errorf("%w: %s is an empty object", ErrNoValue, deepest)
		}
		return fmt.Errorf(
			"%w: %s is an object without %s; its keys: %s", ErrNoValue, deepest, ClipBytes(strconv.Quote(token), 60), keyList(p),
		)
	}
	return fmt.Errorf("%w: %s is %s: nothing stands below it", ErrNoValue, deepest, Article(map[Event]string{
		StringStart: "string", NumberStart: "number", LiteralStart: "literal",
	}[p.what]))
}

func keyList(p place) string {
	var b bytes.Buffer
	for i, k := range p.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k)
		if b.Len() > 120 {
			break
		}
	}
	if p.count > int64(len(p.keys)) || b.Len() > 120 {
		fmt.Fprintf(&b, ", … (%d in all)", p.count)
	}
	return b.String()
}
