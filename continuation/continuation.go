// Package continuation takes a JSON document that arrives in parts: it says by parsing whether the document is whole,
// what has arrived and word for word where to go on, and joins the next part to it.
//
// It never guesses: a part that could be joined in two ways, or only by inventing text, is refused and the document
// stays as it was. Markdown, code and what is declared as text are kept as they are: it cannot say whether they are
// whole.
package continuation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Open returns a document of which text arrived. The state is what [Document.Stored] returned for it; without one, the
// parts that arrived are not known.
func Open(text []byte, state []byte, o Options) *Document {
	d := New(o)
	d.text = text
	var s stored
	if json.Unmarshal(state, &s) == nil {
		d.history = s.History
	}
	if d.plain = s.Plain || d.options.isPlain(text); !d.plain {
		d.accept(text)
	}
	return d
}

// stored is what of a document cannot be told from its text.
type stored struct {
	History history `json:"history"`
	Plain   bool    `json:"plain,omitempty"` // the text is not JSON
}

// Stored returns what [Open] needs besides the text.
func (d *Document) Stored() []byte {
	state, _ := json.Marshal(stored{d.history, d.plain}) // of numbers and strings: cannot fail
	return state
}

// Add joins a part to the document, or refuses it.
func (d *Document) Add(part []byte) Result {
	body, preface, err := d.normalize(part)
	if err != nil {
		d.history.add(part, false, d.options.MaxParts)
		return d.stuckOr(Result{Verdict: Refused, State: d.State(), Reason: err.Error()})
	}
	if reason := d.history.loop(part, d.options.MaxParts); reason != "" {
		return Result{Verdict: Stop, State: d.State(), Reason: reason}
	}
	r := d.join(body)
	if preface != "" && r.Join != "" && r.Dropped == "" {
		r.Dropped = preface
	}
	d.history.add(part, r.Join != "", d.options.MaxParts)
	if r.Verdict != Continue {
		return d.stuckOr(r)
	}
	if s := d.loops(); s != "" {
		r.Verdict, r.Reason = Stop, s
	}
	return d.stuckOr(r)
}

// stuckOr returns the result, or that the document is stuck.
func (d *Document) stuckOr(r Result) Result {
	if r.Verdict == Done || r.Verdict == Stop {
		return r
	}
	if reason := d.history.idle(); reason != "" {
		r.Verdict, r.Reason = Stop, reason
	}
	return r
}

// accept replaces the text by one that begins with what near has read.
func (d *Document) accept(text []byte) {
	p := d.near.clone()
	p.read(text, int64(len(text)))
	text = p.dropLineEnd(text)
	d.text, d.parser = text, p
	d.anchor = anchor{at: int64(len(text)), end: int64(len(text)), piece: int64(len(text)), last: -1}
	if p.state() == Whole && !d.lines() { // nothing is continued
		return
	}
	d.anchor = d.findAnchor()
	d.near = d.parserAt(d.anchor.at)
	d.near.read(text, d.anchor.at)
}

// parserAt returns a parser that has read no more of the text than up to an offset.
func (d *joined) parserAt(at int64) *parser {
	if d.near.offset() > at {
		return newParser()
	}
	return d.near.clone()
}

// Restart returns the text that the next part must begin with.
func (d *Document) Restart() string {
	if d.plain {
		return d.lastLine()
	}
	return string(d.text[d.anchor.at:d.anchor.end])
}

// dropLineEnd returns the text without a line end inside of a string, number or literal at its end: it is that of a
// file, or stands before the end of a fenced block.
func (p *parser) dropLineEnd(text []byte) []byte {
	if !slices.Contains([]string{"string", "key", "number", "literal"}, p.scan.Inside()) {
		return text
	}
	if p.scan.Err() == nil || len(bytes.Trim(text[p.offset():], "\r\n")) > 0 {
		return text
	}
	p.scan.Resume()
	return text[:p.offset()]
}

// State says what the text is.
func (d *joined) State() State {
	if d.plain {
		return NotJSON
	}
	return d.parser.state()
}

// state says what the text that was read is.
func (p *parser) state() State {
	inside := p.scan.Inside()
	switch {
	case p.trailing >= 0, p.scan.Err() != nil && p.follows():
		return Trailing
	case p.scan.Err() != nil && p.scan.Depth() >= content.MaxDepth:
		return TooDeep
	case p.scan.Err() != nil:
		return Broken
	case len(p.containers) == 1 && inside == "number" && p.isNumber():
		return Ambiguous
	case len(p.containers) == 1 && inside == "literal" && p.isLiteral():
		return Whole
	case inside != content.BetweenValues:
		return Cut
	case p.containers[0].Count == 0:
		return Empty
	}
	return Whole
}

// follows reports whether the text that was read last follows a value and is no beginning of another one: it may look
// like one, as "note" and "- item" do.
func (p *parser) follows() bool {
	f := &p.containers[len(p.containers)-1]
	return p.containers[0].Count > 0 && (len(p.containers) == 1 || len(p.containers) == 2 && f.Count == 0 && f.Open < 0)
}

func (p *parser) isLiteral() bool {
	return slices.Contains([]string{"true", "false", "null"}, string(p.text[p.value:p.offset()]))
}

func (p *parser) isNumber() bool {
	last := p.text[p.offset()-1]
	return last >= '0' && last <= '9'
}

// result returns the verdict on the text as it is now.
func (d *Document) result(join string) Result {
	r := Result{State: d.State(), Join: join}
	switch r.State {
	case Whole:
		r.Verdict = Done
		if d.noSections() {
			r.Verdict, r.Reason = Continue, "no section yet"
		}
	case Empty:
		r.Verdict, r.Reason = Continue, "nothing has arrived"
	case Cut, Ambiguous:
		r.Verdict = Continue
	case NotJSON:
		r.Verdict = Unknown
	default:
		r.Verdict, r.Reason = Stop, d.parser.fault()
	}
	return r
}

// fault says where and why the text is broken.
func (p *parser) fault() string {
	at, why := p.trailing, "text follows the end of the document"
	if p.trailing < 0 && p.state() == Trailing {
		at = int64(len(p.text) - len(bytes.TrimLeft(p.text[p.containers[0].End:], " \t\r\n")))
	} else if p.trailing < 0 {
		at = p.offset()
		if err, ok := errors.AsType[*content.SyntaxError](p.scan.Err()); ok {
			why = err.Reason
		}
	}
	line := bytes.Count(p.text[:at], []byte{'\n'}) + 1
	return fmt.Sprintf("line %d, byte %d: %s: %q", line, at, why,
		clip(string(p.text[at:min(len(p.text), int(at)+60)]), 60))
}
