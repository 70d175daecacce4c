package kinds

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/table"
)

// Log is a text most of whose lines begin with a time or a level.
var Log = &Kind{
	Name:       content.Log,
	Ext:        "log",
	MIME:       fixed("text/plain"),
	Sniff:      func(s *Sample) bool { return isLog(s.lines(), s.ext) },
	Summarizer: func(name string, _ []byte) digest.Summarizer { return logs.New(name) },
	Records:    record.LineSpans,
	Objects:    logs.Objects,
	RecordIs:   "a line {line, time, level, source, service, text, key=value pairs, access log fields}",
	RecordNote: "text is the whole line, time is on a 24-hour clock; service is the container before it; a line of an " +
		"access log has address, user, method, path, status, bytes, referrer, agent; a pair never replaces these; took=1.5s also is the number took_ms, size=2KiB the number size_bytes",
	Shares: Shares{Says: 0.5, Shape: 0.2, Body: 0.45},
}

// isLog reports whether at least half of the entries begin with a time or a level (in a .log file: a fifth). A text
// of one entry needs both, or one of them in a .log file.
func isLog(all [][]byte, ext string) bool {
	const (
		sample = 200 // maximum number of entries examined
		enough = 60  // stop after this many entries without a time or level
	)
	var c logCensus
	for _, l := range all {
		if c.entries == sample || c.entries == enough && c.times+c.levels == 0 {
			break
		}
		if l = l[:min(len(l), 1024)]; bytes.IndexByte(l, 0x1b) >= 0 {
			l = content.WithoutEscapes(nil, l)
		}
		l = logs.SkipService(l)
		if l = l[:min(len(l), 256)]; len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		c.add(l)
	}
	hits := max(c.times, c.levels)
	switch {
	case c.entries == 0 || c.places*2 > c.entries:
		return false
	case c.entries == 1:
		return c.both == 1 || hits == 1 && ext == ".log"
	case ext == ".log":
		return hits*5 >= c.entries
	case !c.first && c.times == hits && looksLikeRows(all):
		return false // a table with a header whose first column is a time
	}
	return hits >= 2 && hits*2 >= c.entries
}

// logCensus counts properties that distinguish a log from other lines.
type logCensus struct {
	entries       int // number of lines that do not continue an earlier entry
	times, levels int // number of entries that begin with a time, with a level
	both          int
	places        int  // number of entries that begin with "file:line:"
	first         bool // the first entry begins with a time or a level
}

func (c *logCensus) add(l []byte) {
	end := stampEnd(l)
	stamp := end > 0 || bytes.IndexByte(l, '[') > 0 && request().Match(l)
	level := hasLevel(l) ||
		end > 0 && hasLevelWord(l[end-1:min(len(l), end+60)]) // only near the start of the line
	if !stamp && !level {
		place := isFound(l)
		if !place && c.entries > 0 && isCarried(l) {
			return
		}
		if place {
			c.places++
		}
	}
	if c.entries == 0 {
		c.first = stamp || level
	}
	c.entries++
	if stamp {
		c.times++
	}
	if level {
		c.levels++
	}
	if stamp && level {
		c.both++
	}
}

// looksLikeRows reports whether the first line contains tabs, commas or semicolons and every other non-empty line
// at least as many.
func looksLikeRows(all [][]byte) bool {
	d := table.DialectOf(all[0]).Delimiter
	want := bytes.Count(all[0], []byte{d})
	if want == 0 {
		return false
	}
	for _, l := range all {
		if len(l) > 0 && bytes.Count(l, []byte{d}) < want {
			return false
		}
	}
	return true
}
