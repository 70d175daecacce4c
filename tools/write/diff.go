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

// changed returns the range of the old file that is not the same in the text, and the end of that range in the text.
func (p *pieces) changed(size int64) (from, to, newTo int64) {
	for _, one := range p.list {
		if one.text != nil || one.at != from {
			break
		}
		from += one.n
	}
	to, newTo = size, p.size()
	for _, one := range slices.Backward(p.list) {
		if one.text != nil || one.at+one.n != to || one.at < from {
			break
		}
		to, newTo = one.at, newTo-one.n
	}
	return from, to, newTo
}

// diff writes a unified diff of the file and the text, from the first to the last change and the lines around them. If
// they lie too far apart, it writes that instead.
func (p *pieces) diff(
	ctx context.Context, w io.Writer, size int64, enc content.Encoding,
) (added, removed int64, err error) {
	newline, unit, err := enc.Encode("\n")
	if err != nil {
		return 0, 0, err
	}
	from, to, newTo := p.changed(size)
	if to-from > maxCompared || newTo-from > maxCompared {
		_, err = io.WriteString(w, "(too long to show what differs)\n")
		return 0, 0, err
	}
	start := max(0, from-maxAround) / int64(unit) * int64(unit)
	head, err := readRange(p.file, start, from)
	if err != nil {
		return 0, 0, err
	}
	if at := indexUnit(head, newline); start > 0 && at >= 0 {
		start += int64(at + unit)
	}
	line, err := countUnits(ctx, p.file, 0, start, newline)
	if err != nil {
		return 0, 0, err
	}
	rest := min(size-to, maxAround)
	var both [2][]byte
	if both[0], err = readRange(p.file, start, to+rest); err == nil {
		both[1], err = p.section(start, newTo+rest)
	}
	for i, raw := range both {
		if err == nil {
			both[i], err = io.ReadAll(enc.Reader(bytes.NewReader(raw)))
		}
	}
	if err != nil {
		return 0, 0, err
	}
	if to+rest < size { // the last line is cut, and has an end
		a, b := bytes.LastIndexByte(both[0], '\n')+1, bytes.LastIndexByte(both[1], '\n')+1
		if bytes.Equal(both[0][a:], both[1][b:]) {
			both[0], both[1] = both[0][:a], both[1][:b]
		} else {
			both[0], both[1] = append(both[0], '\n'), append(both[1], '\n')
		}
	}
	added, removed = hunks(w, both[0], both[1], line)
	return added, removed, nil
}

// indexUnit returns the offset of a code unit in a text of such units, -1 if it has none.
func indexUnit(text, unit []byte) int {
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], unit)
		if i < 0 {
			return -1
		}
		if at += i; at%len(unit) == 0 {
			return at
		}
	}
}

func readRange(file io.ReaderAt, from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	_, err := io.ReadFull(io.NewSectionReader(file, from, to-from), b)
	return b, err
}

// countUnits counts a code unit in a range of a text.
func countUnits(ctx context.Context, file io.ReaderAt, from, to int64, unit []byte) (int64, error) {
	text := &pieces{file: file, list: []piece{{at: from, n: to - from}}}
	_, n, err := text.find(ctx, unit, len(unit), 0)
	return int64(n), err
}

// diffFrom returns what differs between an earlier text of a file and the file, in at most maxSince bytes; "" if the file
// is too long to compare.
func (b *before) diffFrom(text []byte) string {
	if b.size() > maxCompared {
		return ""
	}
	now, err := readRange(b, 0, b.size())
	if err != nil {
		return ""
	}
	var out strings.Builder
	hunks(&out, text, now, 0)
	return content.ClipBytes(out.String(), maxSince)
}
