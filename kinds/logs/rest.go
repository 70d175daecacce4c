package logs

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// restAfter is the number of bytes of plain text of which every line is read. If these lines do not repeat, the rest is
// searched for errors, panics and stack traces only, because each further line would be one more of its own kind.
const restAfter = 16 << 20

// rest is the part of a text after restAfter bytes.
type rest struct {
	judged bool  // it has begun
	first  int64 // number of its first line if only findings are looked for; 0 if all lines are read
	search literal.Searcher
}

// newRestSearcher makes a searcher for texts of which each line that is a finding has at least one: levels from error
// on, the failures of [reportsFailure], incidentHeads, frames, and what changes the meaning of lines after it. It is
// nil if the processor cannot. The order affects speed only: a searcher takes each eighth as one set. This one was
// found by swaps.
var newRestSearcher = func() func() literal.Searcher {
	var needles []literal.Needle
	for _, text := range []string{
		"err", "==> ", "make: ***", "not ok ", "alert", "Unhandled", "FAIL", "panic", "emerg", "terminate called ",
		"Segmentation fault", "\tat ", "fatal", "Uncaught ", "SIG", "Out of memory: Kill", "crit", "=== ", "Traceback (",
		" at ", "severe", "Exception in ", "WARNING: DATA",
	} {
		level := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
		needles = append(needles, literal.Needle{Text: text, Fold: level})
	}
	return literal.NewSearcher(needles)
}()

// inRest reports whether the next line belongs to a rest in which only findings are looked for.
func (p *prose) inRest() bool {
	r, l := &p.rest, p.logs
	if !r.judged && l.read >= restAfter {
		r.judged = true
		t := l.templates
		if newRestSearcher != nil && !l.named && l.stamped == 0 && p.bullets.Done() && p.listing.done() &&
			(t.stopped || int64(len(t.all))*4 > t.lines || !t.repetitive()) {
			t.stopped = true // those of errors remain
			r.first, r.search = l.rows.Number+1, newRestSearcher()
		}
	}
	return r.first > 0
}

// skipRest skips the leading lines of b that are no findings, if only those are looked for, and returns their length. b
// is a suffix of the current block.
func (p *prose) skipRest(b []byte) int {
	l := p.logs
	if !p.inRest() || l.has != (marks{}) || l.source || l.panics.open != nil || l.tests.current != "" {
		return 0
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	if len(b) == 0 {
		return 0
	}
	at, _, lines := p.rest.search.Find(b, 0)
	if at < len(b) {
		b = b[:bytes.LastIndexByte(b[:at], '\n')+1]
	}
	if len(b) == 0 {
		return 0
	}
	p.measure(b)
	last := b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1 : len(b)-1]
	l.rows.Number += int64(lines)
	l.read += int64(len(b))
	l.parsed.size = 0
	l.panics.before = append(l.panics.before[:0], last[:min(len(last), digest.HeadBytes)]...)
	l.panics.beforeLine = l.rows.Number
	return len(b)
}

// measure looks for the longest line in whole lines. Only one that is longer than [digest.MaxLine] is reported.
func (p *prose) measure(lines []byte) {
	for at := 0; ; {
		end := at + max(int(p.size), digest.MaxLine)
		if end >= len(lines) {
			return
		}
		if i := bytes.LastIndexByte(lines[at:end+1], '\n'); i >= 0 {
			at += i + 1
			continue
		}
		end += bytes.IndexByte(lines[end:], '\n')
		p.size = int64(len(bytes.TrimSuffix(lines[at:end], []byte{'\r'})))
		p.longest.line = p.logs.rows.Number + 1 + int64(bytes.Count(lines[:at], []byte{'\n'}))
		at = end + 1
	}
}
