package funnel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// page takes the rows of a paged tool until it is full.
type page struct {
	all           int // tokens of header and rows
	tokens, chars int // what the rows may hold
	count         func(string) int
	mask          *secrets.Stream // a key's block goes over rows

	used  bool // something was said of rows at all
	rows  strings.Builder
	n     int64
	spent int // tokens of rows so far
	width int // chars of rows so far
	full  bool

	spanned      bool
	first, total int64 // of Span; total −1: not counted
	reach        *reach
	next         *tools.Call
	clipped      *tools.Call // shows the row that was clipped; a clipped row is alone on its page
}

// reach is a range of a text, in a unit that is not that of the rows.
type reach struct {
	unit            string
	from, to, total int64 // total −1: not counted
}

// headerRoom is what a page leaves of its tokens for the header block: the next call with its arguments.
func headerRoom(tokens int) int { return min(tokens/4, 400) }

// headerChars is how many chars a page leaves for each token of headerRoom.
const headerChars = 5

func newPage(tokens int, count func(string) int, mask *secrets.Masker) *page {
	room := headerRoom(tokens)
	return &page{mask: mask.Middle(), all: tokens, tokens: max(tokens-room, 1), chars: maxPageChars - headerChars*room, count: count, total: -1}
}

// row takes one row, or says that the page is full. A row that is longer than a page stands alone, cut in its middle.
func (p *page) row(b []byte, more tools.Call) error { return p.put(b, "\n", more) }

// stretch takes a row that holds its own line ends.
func (p *page) stretch(b []byte) error { return p.put(b, "", tools.Call{}) }

// put takes a row; between stands before it where it is not the first.
func (p *page) put(b []byte, between string, more tools.Call) error {
	p.used = true
	if p.full {
		return tools.ErrPageFull
	}
	chars := runes.Count(b)
	if p.width+chars > p.chars && p.n > 0 {
		p.full = true
		return tools.ErrPageFull
	}
	shown, tokens := "", p.tokens+1
	mask := p.mask.Fork()
	if chars <= p.chars { // only then is it worth looking at
		shown, tokens, chars = p.show(b, &mask)
	}
	switch {
	case p.takes(tokens, chars):
	case p.n > 0:
		p.full = true
		return tools.ErrPageFull
	default:
		mask = p.mask.Fork()
		p.clip(ends(mask.Text(b), p.chars*utf8.UTFMax), more)
		*p.mask = mask
		return nil
	}
	*p.mask = mask
	p.add(shown, between, tokens, chars)
	return nil
}

// cut takes a row of which only the ends are at hand.
func (p *page) cut(head, tail []byte, between int64, more tools.Call) error {
	p.used = true
	if p.n > 0 {
		p.full = true
	}
	if p.full {
		return tools.ErrPageFull
	}
	between += int64(runes.Count(head) + runes.Count(tail))
	head = p.mask.Text(head)
	p.clip(line{left: head, right: p.mask.Text(tail), chars: between, many: true}, more)
	return nil
}

// add adds a row as it is shown, with what it costs.
func (p *page) add(shown, between string, tokens, chars int) {
	if p.n > 0 {
		p.rows.WriteString(between)
	}
	p.rows.WriteString(shown)
	p.n++
	p.spent += tokens
	p.width += chars + 1
}

// show is a row as it is shown, with what it costs.
func (p *page) show(b []byte, mask *secrets.Stream) (shown string, tokens, chars int) {
	b = mask.Text(b)
	shown = foreign(string(b), isJSON(b), inRow)
	return shown, p.count(shown + "\n"), utf8.RuneCountInString(shown)
}

// takes says whether there is room for a row of that cost.
func (p *page) takes(tokens, chars int) bool {
	return p.spent+tokens <= p.tokens && p.width+chars <= p.chars
}

// fit is how many bytes of a text, from its start, row takes whole. It uses four fifths of the room at least, where
// chars are as dear at the start as further on. On a page without rows it is one char at least: none costs all a page has.
func (p *page) fit(text []byte) int {
	if p.full {
		return 0
	}
	tokensLeft, charsLeft := max(p.tokens-p.spent, 0), max(p.chars-p.width, 0)
	low, high := 0, min(len(text), utf8.UTFMax*charsLeft) // low is taken, nothing over high is
	for guess := between(text, high); guess > low; guess = between(text, guess) {
		mask := p.mask.Fork()
		_, tokens, chars := p.show(text[:guess], &mask)
		if p.takes(tokens, chars) {
			low = guess
			guess = min(low+low/4, (low+high)/2)
		} else {
			high = guess
			if low == 0 { // nothing is known but what this much costs
				guess = min(guess*tokensLeft/tokens, guess*charsLeft/max(chars, 1)) * 15 / 16
			} else {
				guess = (low + high) / 2
			}
		}
		if high-low <= high/5 {
			break
		}
	}
	low = p.mask.Uncut(text, low)
	if low == 0 && p.n == 0 && len(text) > 0 {
		_, low = utf8.DecodeRune(text)
	}
	return low
}

// ends are a row of which n bytes of each end may be shown.
func ends(b []byte, n int) line {
	l := line{left: b, chars: int64(runes.Count(b)), many: true}
	if len(b) > 2*n {
		l.left, l.right = b[:n], b[len(b)-n:]
	}
	return l
}

// clip adds a row cut in its middle so that it fills the page; more shows all of it.
func (p *page) clip(l line, more tools.Call) {
	p.clipped, p.full = &more, true
	json := bytes.HasPrefix(l.left, []byte("{")) || bytes.HasPrefix(l.left, []byte("["))
	// What a char costs is seen from a first cut; each further one aims a little lower.
	for width := min(p.chars, p.tokens*6); ; {
		shown := fence(l.shown(width, json), inRow)
		tokens := p.count(shown + "\n")
		if tokens <= p.tokens || width <= minWidth {
			p.add(shown, "", tokens, utf8.RuneCountInString(shown))
			return
		}
		width = max(min(width*p.tokens/tokens, width*19/20), minWidth)
	}
}

// isJSON says that hidden characters in a row are to be shown as JSON has them.
func isJSON(b []byte) bool {
	return len(b) > 1 && strings.IndexByte(`{["`, b[0]) >= 0 && json.Valid(b)
}

// complete says that the page shows everything there is.
func (p *page) complete() bool {
	switch r := p.reach; {
	case p.full || p.next != nil:
		return false
	case r != nil:
		return r.from == 0 && r.to == r.total-1
	case !p.spanned:
		return true
	}
	return p.total >= 0 && p.total <= p.n
}

// totals is what a page that is not shown would have been.
func (p *page) totals(s Size) string {
	said := "the page has " + plural(s.Lines, "line") + ", " + plural(s.Tokens, "token")
	if p.spanned && p.total >= 0 {
		said += fmt.Sprintf(", rows %d-%d of %d", p.first, p.first+max(p.n, 1)-1, p.total)
	}
	return said
}

// showPage answers with the rows of a paged tool: a header where they are not all there is, then the rows.
func (v *view) showPage() {
	p := v.out.page
	rows := p.rows.String()
	total := v.f.o.Counter.Total(rows)
	tokens := total.N
	v.size = Size{Chars: int64(utf8.RuneCountInString(rows)), Bytes: int64(len(rows)), Tokens: tokens}
	if rows != "" {
		v.size.Lines = int64(strings.Count(strings.TrimSuffix(rows, "\n"), "\n")) + 1
	}
	v.total = total
	v.Kind, v.Matches, v.Files = content.Sniff([]byte(rows), true, ""), -1, -1
	v.decision = v.f.o.Policy.Decide(v.size, v.spent)
	v.complete = p.complete()

	made := tools.Call{Tool: v.r.Tool.Name, Args: v.r.Args}
	header, notes := p.header(made, v.notes(), p.all-int(tokens), maxPageChars-int(v.size.Chars))
	var blocks []string
	switch {
	case v.decision.Verdict == Reject && !v.f.o.Policy.DryRun:
		v.complete = false
		header = notShown(v.decision.Left) + "; " + p.totals(v.size)
		blocks = []string{header}
	case v.decision.Verdict != OK && tokens > int64(v.decision.Left) && !v.f.o.Policy.DryRun: // of calls at once the others were sooner
		v.complete = false
		header = fmt.Sprintf("not shown: %s, and %d left by now; repeat the call: its page will fit", plural(tokens, "token"), v.decision.Left)
		blocks = []string{header}
	case header != "" && rows != "":
		blocks = []string{header, rows}
	case header != "":
		blocks = []string{header}
	case rows != "" || p.n > 0:
		blocks = []string{rows}
	case v.err == nil && notes == "" && len(v.parts()) == 0:
		blocks = []string{"no rows"}
	}
	if notes != "" {
		if len(blocks) == 0 {
			blocks = []string{notes}
		} else {
			blocks[0] = strings.TrimSuffix(blocks[0], "\n") + "\n" + notes
		}
	}
	if v.err != nil {
		rest := ""
		switch {
		case v.status == timeout && p.n > 0:
			rest = "what was found until then follows"
		case v.status == timeout:
			rest = "nothing was found until then: ask for less"
		}
		v.say(v.failureText(v.outcome, rest))
	}
	for _, b := range blocks {
		v.say(b)
	}
}
