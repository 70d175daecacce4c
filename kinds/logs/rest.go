package logs

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// restAfter is the number of bytes of plain text of which every line is read. If these lines do not repeat, the rest is
// searched for errors, panics and stack traces only, because each further line would be one more of its own kind.
const restAfter = 16 << 20

// rest is the part of a text after restAfter bytes.
type rest struct {
	judged bool             // it has begun
	first  int64            // number of its first line
	search literal.Searcher // nil if all lines are read
}

// newRestSearcher makes a searcher for texts of which each line that is a finding has at least one: levels from error
// on, those that [reportsFailure] or [runnerFailure] takes, incidentHeads, frames, and what changes the meaning of
// lines after it. It is nil if the processor cannot. The order affects speed only: a searcher takes each eighth as one
// set. This one was found by swaps.
var newRestSearcher = func() func() literal.Searcher {
	var needles []literal.Needle
	for _, text := range []string{
		"✗", "✓", "✔", "not ok ", "Unhandled", "Segmentation fault", "alert", "==> ", "emerg", "terminate called ", "There w",
		"fail", "Traceback (", "***", "severe", "\tat ", "crit", "✖", "Exception in ", " at ", "Uncaught ",
		"Out of memory: Kill", "[E]", "panic", "WARNING: DATA", "✘", "√ ", "fatal", "✕", "× ", "err", "=== ", "SIG",
	} {
		level := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
		needles = append(needles, literal.Needle{Text: text, Fold: level})
	}
	return literal.NewSearcher(needles)
}()

// inRest reports whether the next line belongs to a rest in which only findings are looked for.
func (p *prose) inRest() bool {
	r, l, t := &p.rest, p.logs, p.logs.patterns.templates
	if !r.judged && l.read >= restAfter {
		r.judged = true
		repeats := !t.stopped && int64(len(t.all))*4 <= t.lines && t.repetitive()
		if newRestSearcher != nil && !l.named && l.times.n == 0 && p.bullets.Done() && p.listing.done() && !repeats {
			t.stopped = true // those of errors remain
			r.first, r.search = l.rows.Number+1, newRestSearcher()
		}
	}
	return r.search != nil
}

// skipRest skips the leading lines of b that are no findings, if only those are looked for, and returns their length. b
// is a suffix of the current block.
func (p *prose) skipRest(b []byte) int {
	l := p.logs
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	reports := l.panics.open != nil || l.tests.current != "" || l.numbers.left > 0
	if !p.inRest() || l.block.marked || l.source || reports || len(b) == 0 {
		return 0
	}
	if at, _, _ := p.rest.search.Find(b, 0); at < len(b) {
		b = b[:bytes.LastIndexByte(b[:at], '\n')+1]
	}
	for rest := b; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		l.rows.Number++
		if len(line) > int(p.size) {
			p.size, p.longest.line = int64(len(bytes.TrimSuffix(line, []byte{'\r'}))), l.rows.Number
		}
		if len(rest) == 0 {
			l.panics.setPrevious(l.rows.Number, line)
			l.parsed.size = 0
		}
	}
	l.read += int64(len(b))
	return len(b)
}
