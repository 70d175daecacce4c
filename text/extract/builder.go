package extract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// builder collects the lines, places and notes of a text.
type builder struct {
	body   []byte
	lines  int
	places []Place
	notes  []string
	unread map[string]int // by what was not read, in the singular
	err    error          // the first error; no line is added after it

	readers map[string]reader // of documents in this one; nil within one
}

// missed counts what is in the document and not in the text.
func (b *builder) missed(what string, n int) {
	if n == 0 {
		return
	}
	if b.unread == nil {
		b.unread = map[string]int{}
	}
	b.unread[what] += n
}

// noteMissed adds a note about what was missed.
func (b *builder) noteMissed() {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(b.unread)) {
		all = append(all, count(b.unread[what], what))
	}
	if len(all) > 0 {
		b.note("not read: %s", strings.Join(all, ", "))
	}
}

// fail keeps the first error.
func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// add appends a line of [collapsed] text at a place, unless it is empty.
func (b *builder) add(place, line string) {
	if line != "" && b.err == nil {
		b.body = append(b.body, line...)
		b.endLine(place)
	}
}

// addRaw appends a line as it is, without control characters. It keeps blank lines and indentation.
func (b *builder) addRaw(line string) { b.addRawAt("", line) }

// addRawAt appends a line like addRaw, at a place.
func (b *builder) addRawAt(place, line string) {
	if b.err != nil {
		return
	}
	for _, r := range line {
		if r == '\t' || !dropped(r) {
			b.body = utf8.AppendRune(b.body, r)
		}
	}
	b.endLine(place)
}

func (b *builder) endLine(place string) {
	b.body = append(b.body, '\n')
	b.lines++
	if n := len(b.places); place != "" && (n == 0 || b.places[n-1].Name != place) {
		b.places = append(b.places, Place{b.lines, place})
	}
	if len(b.body) > maxText {
		b.fail(fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText))
	}
}

func (b *builder) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// collapsed returns text without outer white space, with one blank for each inner range of white space. Invalid UTF-8
// becomes U+FFFD.
func collapsed(text string) string {
	text = resolved(text)
	dst, blank := make([]byte, 0, len(text)), false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			blank = true
		case dropped(r):
		default:
			if blank && len(dst) > 0 {
				dst = append(dst, ' ')
			}
			blank = false
			dst = utf8.AppendRune(dst, r)
		}
	}
	return string(dst)
}

// joined returns the line of a table row. It keeps empty cells, except after the last cell with text or the columns
// that it covers. A row without text is "".
func joined(cells []string) string {
	n := len(cells)
	for n > 0 && cells[n-1] == "" {
		n--
	}
	if !slices.ContainsFunc(cells, func(c string) bool { return c != "" && c != covered }) {
		return ""
	}
	return strings.ReplaceAll(strings.Join(cells[:n], " | "), covered, "")
}

// dropped reports whether a character is invisible and only hinders a search: control characters, soft hyphens,
// zero-width spaces, byte order marks, and U+FFFE, with which PDFium marks a hyphen at the end of a line.
func dropped(r rune) bool {
	return unicode.IsControl(r) || r == '\u00ad' || r == '\u200b' || r == '\ufeff' || r == '\ufffe'
}

// maxNames is the number of names that a note lists.
const maxNames = 50

// list returns the first names, separated by commas.
func list(names []string) string {
	if len(names) > maxNames {
		names = append(slices.Clone(names[:maxNames]), "…")
	}
	return strings.Join(names, ", ")
}

// count returns a number with its noun, as in "1 chart" or "2 charts".
func count(n int, noun string) string {
	return content.Plural(int64(n), noun, noun+"s")
}
