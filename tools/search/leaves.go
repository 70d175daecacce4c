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

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

const (
	longLine = 10_000  // chars; JSON with a longer line is shown by its values
	maxProbe = 4 << 20 // bytes of a file that are searched for a long line
)

// hasLongLines reports whether the source is JSON with a line over longLine, which grep searches by values.
func hasLongLines(ctx context.Context, src *source.Source) (bool, error) {
	if src.Kind() != content.JSON && src.Kind() != content.NDJSON {
		return false, nil
	}
	if o := src.Observation; o != nil {
		return o.Stats.LongestLine > longLine, nil
	}
	r, err := src.Text()
	if err != nil {
		return false, err
	}
	lines := bufio.NewScanner(content.WithContext(ctx, io.LimitReader(r, maxProbe)))
	lines.Buffer(nil, utf8.UTFMax*longLine+2) // a line of more bytes has more chars
	for lines.Scan() {
		if utf8.RuneCount(lines.Bytes()) > longLine {
			return true, nil
		}
	}
	if err := lines.Err(); !errors.Is(err, bufio.ErrTooLong) {
		return false, err
	}
	return true, nil
}

// leafScan finds the matching scalar values of a JSON text.
type leafScan struct {
	g     *grepper
	ctx   context.Context
	ascii bool // see linesearch.UsesASCII
	quote bool // the pattern has a quote, so it may mean the JSON as written
	buf   []byte
	// matched is the text in which match found the pattern: the value, or the value with its keys; until the next call.
	matched []byte

	total, leaves int64
	clipped       int64
	letters       bool // see linesearch.Totals.Letters
	err           error
}

// grepJSON shows `pointer: value` for each matching value. done is false if the caller must search lines instead: the
// JSON is malformed, or only its lines match, across values.
func (g *grepper) grepJSON(ctx context.Context) (done bool, err error) {
	s := &leafScan{
		g: g, ctx: ctx, quote: strings.Contains(g.Pattern, `"`), ascii: !g.Literal && linesearch.UsesASCII(g.Pattern),
	}
	count := func(string, string, int, int) error { return nil }
	if g.Show == "groups" {
		count = func(string, string, int, int) error {
			for line := range bytes.SplitSeq(s.matched, []byte("\n")) {
				g.groups.addText(g.m, bytes.TrimSuffix(line, []byte("\r")))
			}
			return nil
		}
	}
	broken, err := s.scan(count)
	if err != nil {
		return false, err
	}
	if broken != nil {
		g.groups = groupCounts{}
		g.out.Note(
			"the JSON is malformed, so its lines were searched, not its values: " + content.ClipBytes(broken.Error(), 200),
		)
		return false, nil
	}
	if s.total == 0 {
		r, err := g.src.Text()
		if err != nil {
			return false, err
		}
		if totals, err := g.m.Scan(ctx, r, linesearch.Options{Invert: g.Invert, Progress: g.progress}, nil); err != nil ||
			totals.Matches > 0 {
			return false, err
		}
	}
	if g.Context > 0 {
		g.out.Note("context does not apply to JSON values")
	}
	if s.letters {
		g.out.Note(linesearch.LettersNote)
	}
	if s.clipped > 0 {
		g.out.Note(content.Plural(s.clipped, "value is", "values are") + " over 1 MiB: only the first 1 MiB was searched")
	}
	if g.Show == "" || g.Show == "matches" {
		again := leafScan{g: g, ctx: ctx, quote: s.quote} // now that all of the JSON is known to be well formed
		if _, err := again.scan(g.showLeaf); err != nil {
			return false, err
		}
	}
	if g.hasWindow {
		g.hasWindow = false
		g.out.Note("long values are cut to the text around their match; slice at=POINTER shows more")
	}
	return true, g.reportTotals(s.total, content.Plural(s.leaves, "JSON value", "JSON values"))
}

// scan calls take for each matching value, with the byte range of the match, until take fails. ErrPageFull from take
// ends the scan without an error. broken is the error of malformed JSON.
func (s *leafScan) scan(take func(pointer, value string, start, end int) error) (broken, err error) {
	r, err := s.g.openText()
	if err != nil {
		return nil, err
	}
	broken = content.Leaves(s.ctx, r, s.g.src.Kind(), maxSaved, func(l content.Leaf) bool {
		s.leaves++
		if len(l.Value) > maxSaved {
			s.clipped++
		}
		start, end, ok, err := s.match(l)
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

// match tries the lines of the value, then `/key/key: value`, then, for a pattern with a quote, the JSON text of
// [appendAsJSON]. Array indexes are not part of these texts, so a number in the pattern does not match them (nor,
// without a quote, a key that is a number). start and end are bytes of the value.
func (s *leafScan) match(l content.Leaf) (start, end int, ok bool, err error) {
	value := l.Value
	s.letters = s.letters || s.ascii && linesearch.HasLetters([]byte(value))
	s.buf = append(appendKeys(s.buf[:0], l.Pointer), ": "...)
	head := len(s.buf)
	s.buf = append(s.buf, value...)
	if !s.quote && !s.g.m.MayMatch(s.buf) {
		return 0, 0, false, nil
	}
	for at := head; ; {
		line, _, more := bytes.Cut(s.buf[at:], []byte("\n"))
		start, end, ok, err = s.g.m.Find(s.ctx, bytes.TrimSuffix(line, []byte("\r")))
		if ok || err != nil {
			s.matched = s.buf[head:]
			return at - head + start, at - head + end, ok, err
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	s.matched = s.buf
	if _, end, ok, err = s.g.m.Find(s.ctx, s.buf); ok || err != nil {
		return 0, min(max(end-head, 0), len(value)), ok, err
	}
	if !s.quote {
		return 0, 0, false, nil
	}
	for _, between := range []string{": ", ":"} {
		s.buf = appendAsJSON(s.buf[:0], l, between)
		s.matched = s.buf
		if _, _, ok, err = s.g.m.Find(s.ctx, s.buf); ok || err != nil {
			return 0, 0, ok, err
		}
		if !l.Member {
			break
		}
	}
	return 0, 0, false, nil
}

// appendKeys appends a pointer without its array indexes: /items/name for /items/3/name.
func appendKeys(b []byte, pointer string) []byte {
	for pointer != "" {
		var token string
		token, pointer, _ = strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		if isIndex(token) {
			continue
		}
		if strings.Contains(token, "~") {
			token = unescape.Replace(token)
		}
		b = append(append(b, '/'), token...)
	}
	return b
}

// isIndex reports whether a token of a pointer may be an array index, or is empty.
func isIndex(token string) bool { return strings.Trim(token, "0123456789") == "" }

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// appendAsJSON appends a leaf as JSON: strings quoted, members of objects with their key.
func appendAsJSON(b []byte, l content.Leaf, between string) []byte {
	if l.Member {
		b = append(jsonString(b, unescape.Replace(l.Pointer[strings.LastIndexByte(l.Pointer, '/')+1:])), between...)
	}
	if l.Text {
		return jsonString(b, l.Value)
	}
	return append(b, l.Value...)
}

// showLeaf shows one value: `/items/3/name: text`.
func (g *grepper) showLeaf(pointer, value string, start, _ int) error {
	g.seen++
	if g.seen <= g.Offset {
		return nil
	}
	if g.Limit > 0 && g.shown >= g.Limit {
		return tools.ErrPageFull
	}
	text, cut := []byte(value), ""
	if len(text) > linesearch.DefaultWindow && !g.Save {
		w, at := linesearch.Window(text, start, linesearch.DefaultWindow)
		cut = fmt.Sprintf(" [%d-%d of %d]", at, at+int64(len(w))-1, len(text))
		text = w
	}
	row := append([]byte(content.VisibleLine(pointer)), ": "...)
	row = append(row, escapeLineEnds(text)...)
	row = append(row, cut...)
	err := g.addRow(row, tools.Call{Tool: "slice", Args: tools.SliceArgs{Source: g.Source, At: &pointer}})
	g.hasWindow = g.hasWindow || err == nil && cut != ""
	return err
}

// escapeLineEnds writes line ends as \n and \r, so that a value stays one line.
func escapeLineEnds(b []byte) []byte {
	if !bytes.ContainsAny(b, "\r\n") {
		return b
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r"), []byte(`\r`)), []byte("\n"), []byte(`\n`))
}
