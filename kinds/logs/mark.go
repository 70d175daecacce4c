package logs

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Marks reads the level and the time of one line of a log after another. Its zero value is ready for use.
type Marks struct {
	Level string // of the last line, as in [Objects]; "error" too for a request with a status of 500 and above
	Time  []byte // as the last line has it, until the next one; nil if it has none
	At    int64  // the time in milliseconds, since 1970 if it has a date with a year; unknown if Known is false
	Known bool

	entry  entry
	layout layout
	plain  []byte
	last   []byte // the time that was parsed last
	form   int    // its form
}

// Read reads a line, which may be cut after some 200 bytes.
func (m *Marks) Read(line []byte) {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		m.plain = content.WithoutEscapes(m.plain[:0], line)
		line = m.plain
	}
	e, lv := &m.entry, noLevel
	if m.layout.fits(line) {
		e.from, e.to = m.layout.from, m.layout.to
		lv = commonLevel(line[m.layout.rest:])
	}
	if lv == noLevel {
		e.parse(line, true)
		switch lv = e.level; {
		case e.form == access && status(line[e.to:]) >= 500:
			lv = failure
		case e.form != access && lv == noLevel:
			lv = levelOf(line[e.rest:], e.to > 0)
		}
		m.layout.rest = 0
		if e.form == plain {
			m.layout.learn(line, e.from, e.to, e.rest)
		}
	}
	m.Level, m.Time, m.Known = "", nil, false
	if lv != noLevel {
		m.Level = levelNames[lv]
	}
	if e.to > 0 {
		m.Time = line[e.from:e.to]
		m.setAt()
	}
}

// timeForms are the forms of times, after [Marks.setAt] has made those with a date in digits alike.
var timeForms = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04",
	"02/Jan/2006:15:04:05 -0700", time.Stamp, "15:04:05", time.ANSIC, time.UnixDate, "Mon Jan _2 15:04:05", "01-02 15:04:05",
	"0102 15:04:05", "2 Jan 2006 15:04:05", "2-Jan-2006 15:04:05", "2/Jan/2006 15:04:05", "Jan 2, 2006 15:04:05",
	"Jan _2 2006 15:04:05", "Mon Jan _2 15:04:05 -0700 2006", "1/2/2006 15:04:05", "1/2/2006 15:04", "06/01/02 15:04:05",
}

// setAt sets the time in milliseconds, if its form is known.
func (m *Marks) setAt() {
	if m.Known = len(m.last) > 0 && bytes.Equal(m.last, m.Time); m.Known {
		return
	}
	m.last = m.last[:0]
	text := in24Hours(string(m.Time))
	if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil { // since 1970, or since the start of the machine
		if m.At, m.Known = int64(n*1000), true; n >= 1e12 {
			m.At = int64(n)
		}
		return
	}
	if len(text) > 11 && digitsAt(m.Time, 0, 4) && text[4] == text[7] {
		zone := strings.Replace(text[11:], " ", "", 1)
		text = text[:4] + "-" + text[5:7] + "-" + text[8:10] + "T" + zone
	}
	for i := range timeForms {
		i = (m.form + i) % len(timeForms)
		if t, err := time.Parse(timeForms[i], text); err == nil {
			m.form, m.At, m.Known = i, t.UnixMilli(), true
			m.last = append(m.last, m.Time...)
			return
		}
	}
}
