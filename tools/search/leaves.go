package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/lines"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

const (
	longLine = 10_000  // chars; JSON with a longer line is shown by its values
	lookFor  = 4 << 20 // bytes of a file that are looked at for one
)

// hasLongLines says whether the source is JSON with lines so long that a line tells nothing.
func hasLongLines(ctx context.Context, src *tools.Source) (bool, error) {
	if src.Kind() != content.JSON && src.Kind() != content.NDJSON {
		return false, nil
	}
	if o := src.Observation; o != nil {
		return o.Seen.LongestLine > longLine, nil
	}
	r, err := src.Text()
	if err != nil {
		return false, err
	}
	b := bufio.NewReaderSize(io.LimitReader(r, lookFor), 64<<10)
	chars := 0
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		piece, err := b.ReadSlice('\n')
		chars += utf8.RuneCount(piece)
		if chars > longLine {
			return true, nil
		}
		switch {
		case err == nil:
			chars = 0
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return false, nil
		default:
			return false, err
		}
	}
}

// leafScan finds the values of a JSON text that match.
type leafScan struct {
	g     *grepper
	ctx   context.Context
	quote bool // the pattern holds a quote: it may be meant for the text of the JSON
	buf   []byte

	total, leaves int64
	clipped       int64
	err           error

	found []foundLeaf // the values that match, as long as they are not more than maxFound
	size  int         // bytes of them
}

// foundLeaf is a value that matches, and the bytes of its match.
type foundLeaf struct {
	pointer, value string
	start, end     int
}

// maxFound is how many bytes of values that match are held until it is known that the JSON is whole; where there are
// more, it is read once more to show them.
const maxFound = 1 << 20

// hold is a take of each that holds what it is given.
func (s *leafScan) hold(pointer, value string, start, end int) error {
	if s.size += len(pointer) + len(value) + 64; s.size <= maxFound {
		s.found = append(s.found, foundLeaf{pointer, value, start, end})
	} else {
		s.found = nil
	}
	return nil
}

// show shows what was found.
func (s *leafScan) show() error {
	if s.size > maxFound {
		again := leafScan{g: s.g, ctx: s.ctx, quote: s.quote}
		_, err := again.each(s.g.leaf)
		return err
	}
	for _, l := range s.found {
		if err := s.g.leaf(l.pointer, l.value, l.start, l.end); err != nil {
			if errors.Is(err, tools.ErrPageFull) {
				return nil
			}
			return err
		}
	}
	return nil
}

// leaves shows `pointer: value` of each value that matches. Where that is not the right answer it says so by done=false: the JSON is broken, so that
// not all of it can be seen this way, or only its lines match, over the borders of values.
func (g *grepper) leaves(ctx context.Context) (done bool, err error) {
	s := &leafScan{g: g, ctx: ctx, quote: strings.Contains(g.Pattern, `"`)}
	broken, err := s.each(s.hold)
	if err != nil {
		return false, err
	}
	if broken != nil {
		g.out.Note("the JSON is broken, so its lines are searched, not its values: " + content.ClipBytes(broken.Error(), 200))
		return false, nil
	}
	if s.total == 0 {
		r, err := g.src.Text()
		if err != nil {
			return false, err
		}
		if totals, err := g.m.Scan(ctx, r, lines.Options{Invert: g.Invert, Progress: g.progress}, nil); err != nil || totals.Matches > 0 {
			return false, err
		}
	}
	if g.Context > 0 {
		g.out.Note("context does not apply to JSON values")
	}
	if s.clipped > 0 {
		g.out.Note(plural(s.clipped, "value is", "values are") + " over 1 MiB: only that much was searched")
	}
	if g.Show != "count" {
		if err := s.show(); err != nil {
			return false, err
		}
	}
	if g.cut {
		g.cut = false
		g.out.Note("long values are shown around their match; slice at=POINTER shows more")
	}
	return true, g.finish(s.total, plural(s.leaves, "JSON value", "JSON values"))
}

// each calls take for each value that matches, with the bytes of its match, until take fails; ErrPageFull ends it early without an error.
func (s *leafScan) each(take func(pointer, value string, start, end int) error) (broken, err error) {
	r, err := s.g.text()
	if err != nil {
		return nil, err
	}
	broken = content.Leaves(s.ctx, r, s.g.src.Kind(), maxSaved, func(l content.Leaf) bool {
		s.leaves++
		if len(l.Value) > maxSaved {
			s.clipped++
		}
		start, end, ok, err := s.matches(l)
		if err == nil && ok != s.g.Invert {
			s.total++
			err = take(l.Pointer, l.Value, start, end)
		}
		s.err = err
		return err == nil
	})
	if errors.Is(s.err, tools.ErrPageFull) {
		return nil, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	return broken, nil
}

// matches tries the lines of the value, then `/key/key: value`, then, for a pattern with a quote in it, what stands in the
// JSON as [asWritten] has it. The places in arrays stand in no text, so a number in the pattern does not match them (nor,
// without a quote, a key that is a number). start and end are bytes of the value.
func (s *leafScan) matches(l content.Leaf) (start, end int, ok bool, err error) {
	value := l.Value
	s.buf = append(appendKeys(s.buf[:0], l.Pointer), ": "...)
	head := len(s.buf)
	s.buf = append(s.buf, value...)
	if !s.quote && !s.g.m.May(s.buf) {
		return 0, 0, false, nil
	}
	for at := head; ; {
		line, _, more := bytes.Cut(s.buf[at:], []byte("\n"))
		start, end, ok, err = s.g.m.Find(s.ctx, bytes.TrimSuffix(line, []byte("\r")))
		if ok || err != nil {
			return at - head + start, at - head + end, ok, err
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	if _, end, ok, err = s.g.m.Find(s.ctx, s.buf); ok || err != nil {
		return 0, min(max(end-head, 0), len(value)), ok, err
	}
	if !s.quote {
		return 0, 0, false, nil
	}
	for _, between := range []string{": ", ":"} {
		s.buf = asWritten(s.buf[:0], l, between)
		if _, _, ok, err = s.g.m.Find(s.ctx, s.buf); ok || err != nil {
			return 0, 0, ok, err
		}
		if !l.Member {
			break
		}
	}
	return 0, 0, false, nil
}

// appendKeys adds the keys of a pointer, without the places in arrays: of /items/3/name /items/name.
func appendKeys(b []byte, pointer string) []byte {
	for pointer != "" {
		var token string
		token, pointer, _ = strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		if isPlace(token) {
			continue
		}
		if strings.Contains(token, "~") {
			token = unescape.Replace(token)
		}
		b = append(append(b, '/'), token...)
	}
	return b
}

// isPlace says that a token of a pointer may be a place in an array, or is nothing.
func isPlace(token string) bool {
	for i := range len(token) {
		if token[i]-'0' > 9 {
			return false
		}
	}
	return true
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// asWritten appends a leaf as a JSON text has it: with quotes only what is a string, with a key only a member of an object.
func asWritten(b []byte, l content.Leaf, between string) []byte {
	if l.Member {
		b = append(jsonString(b, unescape.Replace(l.Pointer[strings.LastIndexByte(l.Pointer, '/')+1:])), between...)
	}
	if l.Text {
		return jsonString(b, l.Value)
	}
	return append(b, l.Value...)
}

// leaf shows one value: `/items/3/name: text`.
func (g *grepper) leaf(pointer, value string, start, _ int) error {
	g.seen++
	if g.seen <= g.Offset {
		return nil
	}
	if g.Limit > 0 && g.taken >= g.Limit {
		return tools.ErrPageFull
	}
	text, cut := []byte(value), ""
	if len(text) > lines.DefaultWindow && !g.Save {
		w, at := lines.Window(text, start, lines.DefaultWindow)
		cut = fmt.Sprintf(" [%d-%d of %d]", at, at+int64(len(w))-1, len(text))
		text = w
	}
	row := append([]byte(content.VisibleLine(pointer)), ": "...)
	row = append(row, oneLine(text)...)
	row = append(row, cut...)
	err := g.take(row, tools.Call{Tool: "slice", Args: sliceArgs{Source: g.Source, At: pointer}})
	g.cut = g.cut || err == nil && cut != ""
	return err
}

// oneLine writes line ends as \n and \r, so that a value stays one line.
func oneLine(b []byte) []byte {
	if !bytes.ContainsAny(b, "\r\n") {
		return b
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r"), []byte(`\r`)), []byte("\n"), []byte(`\n`))
}
