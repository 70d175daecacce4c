package write

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of diffs, in bytes.
const (
	maxCompared = 1 << 20  // of a text that is compared
	maxAround   = 32 << 10 // before and after what changed, for the lines around it
	maxSince    = 1200     // of a diff in an error
)

// lineNumbers matches those in the head of a hunk.
var lineNumbers = regexp.MustCompile(`[-+](\d+)`)

// hunks writes what differs between two texts, whose first line has this number counted from 0, as the hunks of a unified
// diff. It returns how many lines were added and removed. Line ends \r\n are shown only if some differ.
func hunks(w io.Writer, old, text []byte, line int64) (added, removed int64) {
	crlf, lf := []byte("\r\n"), []byte("\n")
	if bytes.Count(old, crlf) == bytes.Count(old, lf) && bytes.Count(text, crlf) == bytes.Count(text, lf) {
		old, text = bytes.ReplaceAll(old, crlf, lf), bytes.ReplaceAll(text, crlf, lf)
	}
	rows := strings.SplitAfter(string(diff.Diff("", old, "", text)), "\n")
	for _, row := range rows[min(3, len(rows)):] { // three name the texts
		switch {
		case strings.HasPrefix(row, "@@"):
			row = lineNumbers.ReplaceAllStringFunc(row, func(number string) string {
				n, _ := strconv.ParseInt(number[1:], 10, 64) // it matches digits
				return number[:1] + strconv.FormatInt(n+line, 10)
			})
		case strings.HasPrefix(row, "+"):
			added++
		case strings.HasPrefix(row, "-"):
			removed++
		}
		_, _ = io.WriteString(w, row) // an output never fails
	}
	return added, removed
}

// changed returns the range of the old text that is not the same in this one, and the end of that range in this one.
func (p *pieces) changed(old *pieces) (from, to, newTo int64) {
	src := old.list[0].from
	for _, one := range p.list {
		if one.from != src || one.at != from {
			break
		}
		from += one.n
	}
	to, newTo = old.size(), p.size()
	for _, one := range slices.Backward(p.list) {
		if one.from != src || one.at+one.n != to || one.at < from {
			break
		}
		to, newTo = one.at, newTo-one.n
	}
	return from, to, newTo
}

// diff writes a unified diff of an old text of one piece and this one, from the first to the last change and the lines
// around them. If they lie too far apart, it writes that instead.
func (p *pieces) diff(ctx context.Context, w io.Writer, old *pieces) (added, removed int64, err error) {
	from, to, newTo := p.changed(old)
	if max(to, newTo)-from > maxCompared {
		_, err = io.WriteString(w, "(too long to show what differs)\n")
		return 0, 0, err
	}
	start, line := max(0, from-maxAround)&^3, 0 // a code unit has at most 4 bytes
	if start > 0 {
		ends, n, err := old.part(start, from).find(ctx, "\n", 1)
		if err == nil && n > 0 {
			start += ends[0].end()
		}
		if err == nil {
			_, line, err = old.part(0, start).find(ctx, "\n", 0)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	rest := min(old.size()-to, maxAround)
	var both [2][]byte
	for i, part := range []*pieces{old.part(start, to+rest), p.part(start, newTo+rest)} {
		if both[i], err = io.ReadAll(part.enc.Reader(part.reader())); err != nil {
			return 0, 0, err
		}
	}
	if to+rest < old.size() { // the last line is cut, and has an end
		a, b := bytes.LastIndexByte(both[0], '\n')+1, bytes.LastIndexByte(both[1], '\n')+1
		if bytes.Equal(both[0][a:], both[1][b:]) {
			both[0], both[1] = both[0][:a], both[1][:b]
		} else {
			both[0], both[1] = append(both[0], '\n'), append(both[1], '\n')
		}
	}
	added, removed = hunks(w, both[0], both[1], int64(line))
	return added, removed, nil
}

// diffFrom returns what differs between an old text of one piece and this one, in at most maxSince bytes.
func (p *pieces) diffFrom(ctx context.Context, old *pieces) string {
	var diff strings.Builder
	if _, _, err := p.diff(ctx, &diff, old); err != nil {
		return err.Error()
	}
	return content.ClipBytes(diff.String(), maxSince)
}
