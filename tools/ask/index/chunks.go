package index

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Chunk is a passage of a text: whole lines that belong together, at most about 400 tokens.
type Chunk struct {
	Start, End int64  // bytes of the text
	Line       int    // its first line, from 1
	Heading    string // headings above it, the signature of its declaration, or the header of its table
	Code       bool   // a declaration
}

// maxCost is the size of a chunk in quarters of a token: 400 tokens. A byte of plain text counts 1, and a character of
// a script without blanks between words 4, as the tokenizers of models do on average.
const maxCost = 1600

// maxHeading is the largest heading in bytes.
const maxHeading = 300

// cost returns the size of a line in quarters of a token.
func cost(line []byte) (n int) {
	for _, b := range line {
		switch {
		case b < 0x80:
			n++
		case b >= 0xe0: // begins a character of three or four bytes
			n += 4
		case b >= 0xc0:
			n += 2
		}
	}
	return n
}

// Chunks cuts a text in UTF-8 by its structure: headings of Markdown, declarations of source code, rows of a table,
// records of JSON, else paragraphs. Chunks are in order and do not overlap; blank lines may be in none.
func Chunks(ctx context.Context, name string, kind content.Kind, text []byte) []Chunk {
	c := cutter{text: text, lines: lineStarts(text)}
	switch {
	case outline.Language(name) != "":
		c.code()
	case kind == content.Markdown:
		c.markdown()
	case kind == content.Table:
		c.table()
	case kind == content.JSON || kind == content.NDJSON:
		c.records(ctx, kind)
	default:
		c.paragraphs(0, len(c.lines)-1, "")
	}
	return c.chunks
}

// cutter cuts one text.
type cutter struct {
	text   []byte
	lines  []int // where lines begin, and the end of the text
	chunks []Chunk
}

func lineStarts(text []byte) []int {
	starts, at := []int{0}, 0
	for line := range bytes.Lines(text) {
		at += len(line)
		starts = append(starts, at)
	}
	return starts
}

// line returns a line without its end; lines count from 0 here.
func (c *cutter) line(n int) []byte { return bytes.TrimRight(c.text[c.lines[n]:c.lines[n+1]], "\r\n") }

func (c *cutter) blank(n int) bool { return len(bytes.TrimSpace(c.line(n))) == 0 }

// add adds the lines from, to (exclusive) as one chunk, or as several where they are too many.
func (c *cutter) add(from, to int, heading string, code bool) {
	for to > from && c.blank(to-1) {
		to--
	}
	for from < to && c.blank(from) {
		from++
	}
	heading = content.ClipEnd(heading, maxHeading)
	begin, sum := from, 0
	flush := func(end int) {
		if end > begin {
			c.chunks = append(c.chunks, Chunk{
				Start: int64(c.lines[begin]), End: int64(c.lines[end]), Line: begin + 1, Heading: heading, Code: code,
			})
		}
		begin, sum = end, 0
	}
	for n := from; n < to; n++ {
		own := cost(c.text[c.lines[n]:c.lines[n+1]])
		if own > maxCost { // a line that is too long alone
			flush(n)
			c.long(n, heading)
			begin = n + 1
			continue
		}
		if sum+own > maxCost {
			flush(c.softBreak(begin, n))
			for m := begin; m < n; m++ {
				sum += cost(c.text[c.lines[m]:c.lines[m+1]])
			}
		}
		sum += own
	}
	flush(to)
}

// softBreak returns where a chunk that is full at a line may end: after the last blank line of its second half, else
// there.
func (c *cutter) softBreak(begin, full int) int {
	for n := full - 1; n > begin+(full-begin)/2; n-- {
		if c.blank(n) {
			return n + 1
		}
	}
	return full
}

// long cuts a line that is too long for one chunk, at blanks where there are some.
func (c *cutter) long(n int, heading string) {
	for at, end := c.lines[n], c.lines[n+1]; at < end; {
		to, sum := at, 0
		for to < end && sum+cost(c.text[to:to+1]) <= maxCost {
			sum += cost(c.text[to : to+1])
			to++
		}
		if to < end {
			if cut := bytes.LastIndexAny(c.text[at:to], " \t,;"); cut > (to-at)/2 {
				to = at + cut + 1
			}
			for to > at+1 && c.text[to]&0xc0 == 0x80 { // within a character
				to--
			}
		}
		c.chunks = append(c.chunks, Chunk{Start: int64(at), End: int64(to), Line: n + 1, Heading: heading})
		at = to
	}
}

// paragraphs cuts lines at blank ones and packs small paragraphs together.
func (c *cutter) paragraphs(from, to int, heading string) {
	begin, sum := from, 0
	for n := from; n < to; {
		end, own := n, 0
		for end < to && !c.blank(end) {
			own += cost(c.text[c.lines[end]:c.lines[end+1]])
			end++
		}
		if sum > 0 && sum+own > maxCost/2 {
			c.add(begin, n, heading, false)
			begin, sum = n, 0
		}
		sum += own
		for end < to && c.blank(end) {
			end++
		}
		n = end
	}
	c.add(begin, to, heading, false)
}

// markdown cuts at headings; a chunk has the headings above it.
func (c *cutter) markdown() {
	var above [7]string
	begin, fenced := 0, false
	headings := func() string {
		all := slices.DeleteFunc(slices.Clone(above[:]), func(h string) bool { return h == "" })
		return strings.Join(all, " > ")
	}
	for n := range len(c.lines) - 1 {
		line := bytes.TrimSpace(c.line(n))
		if bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~")) {
			fenced = !fenced
		}
		title := bytes.TrimLeft(line, "#")
		level := len(line) - len(title)
		if fenced || level == 0 || level > 6 || len(title) > 0 && title[0] != ' ' && title[0] != '\t' {
			continue
		}
		c.paragraphs(begin, n, headings())
		begin = n
		above[level] = strings.TrimSpace(strings.TrimRight(string(title), "# "))
		clear(above[level+1:])
	}
	c.paragraphs(begin, len(c.lines)-1, headings())
}

// code cuts before top-level declarations: a line at column 0 that closes nothing, after a blank line or a closing one.
// Comments above a declaration belong to it.
func (c *cutter) code() {
	count := len(c.lines) - 1
	begin := 0
	free := true // the line before ended a declaration
	for n := 0; n <= count; n++ {
		if n < count {
			line := c.line(n)
			if c.blank(n) {
				free = true
				continue
			}
			closing := line[0] == '}' || line[0] == ')' || line[0] == ']'
			starts := free && !unicode.IsSpace(rune(line[0])) && !closing
			free = closing
			if !starts || n == 0 {
				continue
			}
		}
		c.add(begin, n, c.signature(begin, n), true)
		begin = n
	}
}

// signature returns the first line of code in a range: the declaration below its comments.
func (c *cutter) signature(from, to int) string {
	inside := false
	for n := from; n < to; n++ {
		line := strings.TrimSpace(string(c.line(n)))
		switch {
		case inside:
			inside = !strings.Contains(line, "*/")
		case strings.HasPrefix(line, "/*"):
			inside = !strings.Contains(line, "*/")
		case line == "", strings.HasPrefix(line, "//"), strings.HasPrefix(line, "#"), strings.HasPrefix(line, "*"),
			strings.HasPrefix(line, "@"), strings.HasPrefix(line, `"""`):
		default:
			return strings.TrimRight(line, "{ ")
		}
	}
	return ""
}

// table cuts rows into chunks that have the header.
func (c *cutter) table() {
	if len(c.lines) > 1 {
		c.add(0, 1, "", false)
		c.add(1, len(c.lines)-1, string(c.line(0)), false)
	}
}

// records packs the records of JSON, where each begins on a line of its own.
func (c *cutter) records(ctx context.Context, kind content.Kind) {
	line, begin, last := 0, 0, 0
	// An error means that the rest is damaged: it is cut by lines.
	_ = kinds.Records(ctx, bytes.NewReader(c.text), kind, func(_ int64, s content.Span) bool {
		for line+1 < len(c.lines)-1 && c.lines[line+1] <= int(s.Start) {
			line++
		}
		if line > last {
			if cost(c.text[c.lines[begin]:c.lines[line]]) > maxCost/2 {
				c.add(begin, last, "", false)
				begin = last
			}
			last = line
		}
		return true
	})
	c.add(begin, len(c.lines)-1, "", false)
}
