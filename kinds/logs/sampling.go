package logs

import "github.com/mcp-funnel/mcp-funnel/kinds/digest"

// Every line in the first patternsWhole bytes of a text is matched against patterns. After that, only errors and
// samples are matched: in every windowEvery bytes, the lines that end in one window of windowSize bytes. Levels,
// panics and errors are counted in the whole text, with their line numbers; sampled pattern counts are reported as
// "about".
const (
	patternsWhole = 32 << 20
	windowEvery   = 1 << 20
	windowSize    = 64 << 10
)

// patterns matches the lines of a text against templates: all lines of its first bytes, then errors and samples.
type patterns struct {
	*templates
	whole        int64 // number of bytes matched completely: [patternsWhole]
	wholeEnd     int64 // number of the last line that ends within these bytes
	beyond       int64 // number of lines after these bytes that are not errors, including the sampled ones
	sampledLines int64 // number of sampled lines
	sampledBytes int64 // number of bytes in sampled lines
}

func newPatterns() patterns { return patterns{templates: newTemplates(), whole: patternsWhole} }

// match matches the line with number at to the patterns, unless sampling skips it. The line is passed without its time;
// end is the offset behind it in the text.
func (p *patterns) match(line []byte, at int64, lv level, end int64) {
	p.matchRun(line, at, lv, end, 0, 0)
}

// matchRun matches the line as match does, and returns how many of the next lines it counted too: at most more lines of
// size bytes each, which follow the same pattern.
func (p *patterns) matchRun(line []byte, at int64, lv level, end, size, more int64) int64 {
	if end <= p.whole {
		if more > 0 {
			more = min(more, (p.whole-end)/size)
		}
		more = p.again(p.add(line, at, lv), more)
		p.wholeEnd = at + more
		return more
	}
	if lv >= failure || p.stopped {
		return p.again(p.add(line, at, lv), more)
	}
	// The position of the window varies pseudo-randomly between the blocks of windowEvery bytes, because the output
	// of a program may be periodic.
	place := uint64(end/windowEvery) * 0x9E3779B97F4A7C15 >> 60
	if more > 0 {
		more = min(more, (windowSize-1-end%windowSize)/size)
	}
	if uint64(end%windowEvery/windowSize) == place {
		found := p.add(line, at, lv)
		more = p.again(found, more)
		found.sampled += 1 + more
		p.sampledLines += 1 + more
		p.sampledBytes += (1 + more) * int64(len(line))
	}
	p.beyond += 1 + more
	return more
}

// end extrapolates the counts of sampled patterns.
func (p *patterns) end() {
	if p.sampledLines > 0 && !p.stopped {
		p.estimate(float64(p.beyond) / float64(p.sampledLines))
	}
}

// samples returns a note on how much text a pattern count is based on; "" if the count covers the whole text.
func (p *patterns) samples(t *template) string {
	if t.sampled == 0 {
		return ""
	}
	return "; from samples of " + digest.Number((p.whole+p.sampledBytes)>>20) + " MiB"
}
