// Package page holds the rows of a paged tool: it accepts rows until the tokens or chars of a page are used, and writes
// the header of a page that is not complete.
package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Page accepts rows until it is full. It is not safe for concurrent use.
type Page struct {
	budget              int // tokens of header and rows
	maxTokens, maxChars int // of the rows
	count               func(string) int
	mask                *secrets.Stream // of all rows, because a block of a key may span several

	rows       strings.Builder
	rowCount   int64
	usedTokens int
	usedChars  int
	full       bool

	numbered     bool  // SetRowRange was called
	first, total int64 // of SetRowRange; total −1: not counted
	textRange    *textRange
	next         *tools.Call
	truncated    *tools.Call // shows the truncated row whole; a truncated row is alone on its page
}

// textRange is a range of a text, in a unit that is not that of the rows.
type textRange struct {
	unit            string
	from, to, total int64 // total −1: not counted
}

// headerChars is how many chars a page leaves for each token of the header.
const headerChars = 5

// New returns an empty page of at most that many tokens, as count counts them, and [policy.MaxPageChars].
func New(tokens int, count func(string) int, mask *secrets.Masker) *Page {
	header := min(tokens/4, 400) // tokens left for the header: the next call with its arguments
	return &Page{
		mask: mask.Middle(), budget: tokens, count: count, total: -1,
		maxTokens: max(tokens-header, 1), maxChars: policy.MaxPageChars - headerChars*header,
	}
}

// AddRow appends a row, or returns [tools.ErrPageFull]. A row that is longer than a page is put on a page of its own,
// cut in its middle; more is the call that shows it whole.
func (p *Page) AddRow(b []byte, more tools.Call) error { return p.addSanitized(b, "\n", more) }

// AddText appends a row that has its own line ends.
func (p *Page) AddText(b []byte) error { return p.addSanitized(b, "", tools.Call{}) }

// addSanitized appends a row, after the separator unless it is the first row.
func (p *Page) addSanitized(b []byte, separator string, more tools.Call) error {
	chars := runes.Count(b)
	if p.full || p.usedChars+chars > p.maxChars && p.rowCount > 0 {
		p.full = true
		return tools.ErrPageFull
	}
	shown, tokens := "", p.maxTokens+1
	mask := p.mask.Fork()
	if chars <= p.maxChars { // a longer row cannot fit
		shown, tokens, chars = p.sanitize(b, &mask)
	}
	switch {
	case p.hasRoom(tokens, chars):
	case p.rowCount > 0:
		p.full = true
		return tools.ErrPageFull
	default:
		mask = p.mask.Fork()
		p.addTruncated(rowEnds(mask.Text(b), p.maxChars*utf8.UTFMax), more)
		*p.mask = mask
		return nil
	}
	*p.mask = mask
	p.append(shown, separator, tokens, chars)
	return nil
}

// AddTruncatedRow appends a row of which only the ends are given, and the number of chars between them.
func (p *Page) AddTruncatedRow(head, tail []byte, between int64, more tools.Call) error {
	if p.full || p.rowCount > 0 {
		p.full = true
		return tools.ErrPageFull
	}
	between += int64(runes.Count(head) + runes.Count(tail))
	head = p.mask.Text(head)
	p.addTruncated(text.Line{Left: head, Right: p.mask.Text(tail), Chars: between, MultiLine: true}, more)
	return nil
}

func (p *Page) append(shown, separator string, tokens, chars int) {
	if p.rowCount > 0 {
		p.rows.WriteString(separator)
	}
	p.rows.WriteString(shown)
	p.rowCount++
	p.usedTokens += tokens
	p.usedChars += chars + 1
}

// sanitize returns a row as it is shown, with its tokens and chars.
func (p *Page) sanitize(b []byte, mask *secrets.Stream) (shown string, tokens, chars int) {
	b = mask.Text(b)
	shown = text.Sanitize(string(b), isJSON(b), text.InRow)
	return shown, p.count(shown + "\n"), utf8.RuneCountInString(shown)
}

func (p *Page) hasRoom(tokens, chars int) bool {
	return p.usedTokens+tokens <= p.maxTokens && p.usedChars+chars <= p.maxChars
}

// BytesThatFit returns how many bytes from the start of b make a row that AddRow accepts whole. They use at least four
// fifths of the room if all chars cost the same. On a page without rows the result is at least one char.
func (p *Page) BytesThatFit(b []byte) int {
	if p.full {
		return 0
	}
	tokensLeft, charsLeft := max(p.maxTokens-p.usedTokens, 0), max(p.maxChars-p.usedChars, 0)
	low, high := 0, min(len(b), utf8.UTFMax*charsLeft) // low bytes fit, more than high do not
	for guess := text.CutBefore(b, high); guess > low; guess = text.CutBefore(b, guess) {
		mask := p.mask.Fork()
		_, tokens, chars := p.sanitize(b[:guess], &mask)
		if p.hasRoom(tokens, chars) {
			low = guess
			guess = min(low+low/4, (low+high)/2)
		} else {
			high = guess
			if low == 0 { // only the cost of this guess is known
				guess = min(guess*tokensLeft/tokens, guess*charsLeft/max(chars, 1)) * 15 / 16
			} else {
				guess = (low + high) / 2
			}
		}
		if high-low <= high/5 {
			break
		}
	}
	low = p.mask.SafeCut(b, low)
	if low == 0 && p.rowCount == 0 && len(b) > 0 {
		_, low = utf8.DecodeRune(b)
	}
	return low
}

// rowEnds returns a row as a line. It holds only n bytes of each end if the row is longer than both together.
func rowEnds(b []byte, n int) text.Line {
	l := text.Line{Left: b, Chars: int64(runes.Count(b)), MultiLine: true}
	if len(b) > 2*n {
		l.Left, l.Right = b[:n], b[len(b)-n:]
	}
	return l
}

// addTruncated appends a row cut in its middle so that it fills the page.
func (p *Page) addTruncated(l text.Line, more tools.Call) {
	p.truncated, p.full = &more, true
	json := bytes.HasPrefix(l.Left, []byte("{")) || bytes.HasPrefix(l.Left, []byte("["))
	// The first cut shows what a char costs; each further one is a little narrower.
	for width := min(p.maxChars, p.maxTokens*6); ; {
		shown := text.Escape(l.Clip(width, json), text.InRow)
		tokens := p.count(shown + "\n")
		if tokens <= p.maxTokens || width <= text.MinWidth {
			p.append(shown, "", tokens, utf8.RuneCountInString(shown))
			return
		}
		width = max(min(width*p.maxTokens/tokens, width*19/20), text.MinWidth)
	}
}

// isJSON reports whether hidden characters in a row are shown as JSON escapes.
func isJSON(b []byte) bool {
	return len(b) > 1 && strings.IndexByte(`{["`, b[0]) >= 0 && json.Valid(b)
}

// SetRowRange is [tools.Page.SetRowRange]. A negative total means that the rows were not counted.
func (p *Page) SetRowRange(first, total int64) {
	p.numbered, p.first, p.total = true, max(first, 0), max(total, -1)
}

// SetTextRange is [tools.Page.SetTextRange].
func (p *Page) SetTextRange(unit string, from, to, total int64) {
	p.textRange = &textRange{unit, from, to, total}
}

// SetNext is [tools.Page.Next].
func (p *Page) SetNext(c tools.Call) { p.next = &c }

// Covers returns the part of the source that the page shows; nil if it is no part of one.
func (p *Page) Covers() *trace.Range {
	switch r := p.textRange; {
	case r != nil:
		return &trace.Range{Unit: r.unit, From: r.from, To: r.to, Of: r.total}
	case p.numbered && p.rowCount > 0:
		return &trace.Range{Unit: "rows", From: p.first, To: p.first + p.rowCount - 1, Of: p.total}
	}
	return nil
}

// Rows returns the rows as they are shown.
func (p *Page) Rows() string { return p.rows.String() }

// Empty reports whether the page has no rows.
func (p *Page) Empty() bool { return p.rowCount == 0 }

// Masked returns how many secrets were masked in the rows.
func (p *Page) Masked() int { return p.mask.Found() }

// Complete reports whether the page shows everything there is.
func (p *Page) Complete() bool {
	switch r := p.textRange; {
	case p.full || p.next != nil:
		return false
	case r != nil:
		return r.from == 0 && r.to == r.total-1
	case !p.numbered:
		return true
	}
	return p.total >= 0 && p.total <= p.rowCount
}
