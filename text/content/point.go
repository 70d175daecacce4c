package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ErrNoValue is wrapped by the error of [Point] if the pointer leads to no value.
var ErrNoValue = errors.New("no value")

// maxKeysListed is the maximum number of an object's keys that the error of [Point] lists.
const maxKeysListed = 12

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
		var size int64
		_, err := pump(ctx, r, func(p []byte) (bool, error) { size += int64(len(p)); return false, nil })
		return Span{0, size}, err
	}
	f := finder{tokens: tokens}
	if k == NDJSON {
		f.top = 1
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
		return Span{}, fmt.Errorf("the value at %s begins at byte %d and is not complete: %w",
			clipLine(pointer, 100), f.target.Start, err)
	case err != nil:
		return Span{}, err
	}
	return Span{}, f.missing()
}

// clipLine returns a pointer, or a part of one, for an error message: in one line of at most max bytes.
func clipLine(pointer string, max int) string { return ClipBytes(VisibleLine(pointer), max) }

// splitPointer returns the unescaped tokens of a pointer.
func splitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("not a JSON Pointer: %s; it begins with \"/\", as in /items/0/name", clipLine(pointer, 100))
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		for _, after := range strings.Split(t, "~")[1:] {
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, fmt.Errorf("not a JSON Pointer: in %s a ~ must be written ~0 (and a / in a key ~1)", clipLine(t, 100))
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// finder follows one pointer through a text. Its field onPath is the number of open containers on the path to the
// value; values outside the path cause no events.
//
//	{"a": [10, {"b": 1}]}     /a/1/b     onPath: 1 in the object, 2 in the array, 3 in the inner object
type finder struct {
	*Scanner
	tokens []string
	top    int // number of tokens for the top-level value: 1 in NDJSON, else 0

	record  int64 // number of complete records
	onPath  int
	trail   []pathValue
	next    bool   // the key just read is the current token
	key     []byte // the current key as written, truncated by keyRoom
	inKey   bool
	reading bool // within the target
	found   bool // the target is complete
	target  Span // the value at the pointer
}

// pathValue is an existing value on the path of the pointer.
type pathValue struct {
	what  Event // start event of the value: its type
	count int64 // number of children begun
	keys  []string
}

// text searches a text of one value.
func (f *finder) text(ctx context.Context, r io.Reader) error {
	f.Scanner = &Scanner{Quiet: 1}
	ended, err := scanEvents(ctx, r, f, f.event)
	if ended {
		var e Event
		if e, err = f.End(); err == nil { // else the text is truncated, and its last value may be incomplete
			f.event(nil, e)
		}
	}
	return err
}

// lines searches NDJSON and skips invalid lines.
func (f *finder) lines(ctx context.Context, r io.Reader) error {
	l := lineReader{event: f.event}
	l.discard = func() {
		*f = finder{Scanner: f.Scanner, tokens: f.tokens, top: 1, record: l.values, key: f.key}
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

// keyRoom returns how many more bytes of the key to store: enough for the longest spelling of the token, in which
// each byte is escaped as \u0000, and at least 256 in total for the error message.
func (f *finder) keyRoom() int {
	return max(len("\\u0000")*len(f.token())+1, 256) - len(f.key)
}

// token returns the pointer's token for the innermost container on the path; "" if there is none.
func (f *finder) token() string {
	at := f.onPath + f.top
	if at == 0 || at > len(f.tokens) {
		return ""
	}
	return f.tokens[at-1]
}

// event processes event e; used are the bytes that the scanner consumed up to e. It returns true if the rest of the
// text cannot change the result.
func (f *finder) event(used []byte, e Event) (enough bool) {
	if f.inKey {
		f.key = append(f.key, used[:min(len(used), f.keyRoom())]...)
	}
	switch {
	case e == KeyStart:
		f.inKey, f.key = true, f.key[:0]
	case e == KeyEnd:
		f.keyEnd()
	case e.Starts():
		f.valueStart(e)
	case e.Ends():
		return f.valueEnd()
	}
	return false
}

func (f *finder) keyEnd() {
	f.inKey = false
	here := &f.trail[f.onPath-1]
	whole := f.key[:max(len(f.key)-1, 0)]
	key := AppendUnquoted(nil, whole)
	f.next = string(key) == f.token()
	if len(here.keys) < maxKeysListed {
		here.keys = append(here.keys, clipLine(string(key), 40))
	}
	if f.next { // of several equal keys the last one counts
		f.found = false
		f.trail = f.trail[:f.onPath]
	}
}

func (f *finder) valueStart(e Event) {
	depth := f.Around(e)
	if depth != f.onPath {
		return // inside the target
	}
	matches := f.next
	if depth == 0 {
		matches = f.top == 0 || isIndex(f.tokens[0], f.record)
	} else {
		here := &f.trail[f.onPath-1]
		if here.what == ArrayStart {
			matches = isIndex(f.token(), here.count)
		}
		here.count++
	}
	f.next = false
	if !matches {
		return
	}
	f.trail = append(f.trail[:f.onPath], pathValue{what: e})
	switch {
	case len(f.tokens) == f.onPath+f.top:
		f.reading, f.target.Start = true, f.Offset()-1
	case e.Opens():
		f.onPath++
		f.Quiet = f.onPath + 1
	}
}

func (f *finder) valueEnd() (enough bool) {
	depth := f.Depth()
	if depth == 0 {
		f.record++
	}
	switch {
	case f.reading && depth == f.onPath:
		f.reading, f.found = false, true
		f.target.End = f.Offset()
	case depth < f.onPath:
		f.onPath--
		f.Quiet = f.onPath + 1
	default:
		// A value off the path, or a scalar with tokens left. At the top level nothing else can match.
		return depth == 0 && len(f.trail) > 0
	}
	// The value, or a container on the path to it, has ended.
	if f.top > 0 && depth > 0 { // the rest of the line may be invalid: then it is no record
		return false
	}
	return !slices.ContainsFunc(f.trail[:f.onPath], func(p pathValue) bool { return p.what == ObjectStart })
}

// isIndex reports whether a token is the array index n: digits without a leading zero.
func isIndex(token string, n int64) bool {
	var b [20]byte
	return token == string(strconv.AppendInt(b[:0], n, 10))
}

// missing returns the [ErrNoValue] error with the deepest existing value on the path.
func (f *finder) missing() error {
	if len(f.trail) == 0 {
		if f.top > 0 {
			return fmt.Errorf("%w: no record %s; there are %d (0-%d), and the first token of the pointer is the record",
				ErrNoValue, clipLine(f.tokens[0], 40), f.record, max(f.record-1, 0))
		}
		return fmt.Errorf("%w: the text is empty", ErrNoValue)
	}
	end := len(f.trail) - 1 + f.top
	var deepest, token string
	for _, t := range f.tokens[:end] {
		deepest += "/" + EscapeToken(t)
	}
	if end < len(f.tokens) {
		token = f.tokens[end]
	}
	deepest = clipLine(deepest, 100)
	if deepest == "" {
		deepest = "the top level"
	}
	p := f.trail[len(f.trail)-1]
	switch p.what {
	case ArrayStart:
		if p.count == 0 {
			return fmt.Errorf("%w: %s is an empty array", ErrNoValue, deepest)
		}
		return fmt.Errorf("%w: %s is an array of %d: give 0-%d, not %s",
			ErrNoValue, deepest, p.count, p.count-1, clipLine(token, 40))
	case ObjectStart:
		if p.count == 0 {
			return fmt.Errorf("%w: %s is an empty object", ErrNoValue, deepest)
		}
		return fmt.Errorf("%w: %s is an object without %s; its keys: %s",
			ErrNoValue, deepest, ClipBytes(strconv.Quote(token), 60), keyList(p))
	}
	return fmt.Errorf("%w: %s is %s: nothing stands below it", ErrNoValue, deepest, Article(map[Event]string{
		StringStart: "string", NumberStart: "number", LiteralStart: "literal",
	}[p.what]))
}

// keyList returns the keys of an object for an error message: as many as begin in its first 120 bytes.
func keyList(p pathValue) string {
	list := p.keys[0]
	shown := 1
	for ; shown < len(p.keys) && len(list) <= 120; shown++ {
		list += ", " + p.keys[shown]
	}
	if p.count > int64(len(p.keys)) || len(list) > 120 {
		list += fmt.Sprintf(", … (%d in all)", p.count)
	}
	return list
}
