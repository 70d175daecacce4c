package funnel

import (
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// reply collects the blocks of an answer. All text for the model passes it.
type reply struct {
	mask        *secrets.Masker
	counter     *tokens.Counter
	answer      Answer
	shownTokens int64
	masked      int // secrets masked in text around the output

	lastCounted string // the text that was counted last: text is often counted before it is added
	lastCount   int
}

// addText adds a block of text, with hidden characters that are left in it escaped, and counts its tokens.
func (r *reply) addText(s string) {
	s = text.Visible(r.maskText(s), false)
	r.answer.Blocks = append(r.answer.Blocks, Block{Text: s})
	r.shownTokens += int64(r.count(s))
}

// clear removes every block; secrets stay counted.
func (r *reply) clear() { r.answer.Blocks, r.shownTokens = nil, 0 }

func (r *reply) addImage(i *image) {
	name := text.VisibleLine(r.maskText(i.name), false)
	r.answer.Blocks = append(r.answer.Blocks, Block{MIME: i.mime, Name: name, Data: i.data})
}

func (r *reply) count(s string) int {
	if s != r.lastCounted {
		r.setCount(s, r.counter.Count(s))
	}
	return r.lastCount
}

func (r *reply) setCount(s string, tokens int) { r.lastCounted, r.lastCount = s, tokens }

// maskText masks secrets in text that no stream has masked: names, errors, and other text around an output.
func (r *reply) maskText(s string) string {
	s, n := r.mask.String(s)
	r.masked += n
	return s
}

// asShown reports whether a text would be shown as it is.
func (r *reply) asShown(s string) bool {
	masked, n := r.mask.String(s)
	return n == 0 && text.Visible(masked, false) == s
}
