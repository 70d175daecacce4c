package logs

import (
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Marks reads the level and the time of one line of a log after another. Its zero value is ready for use.
type Marks struct {
	Level string // of the last line, as in [Objects]; "error" also for a request with a status of 500 and above
	Time  string // as the line has it, but on a 24-hour clock; "" if it has none
	At    int64  // the time in milliseconds, since 1970 if it has a year and a date
	Known bool   // At is known
	form  int    // of the last time, in timeForms
}

// Read reads a line, of which the first 200 bytes are enough.
func (m *Marks) Read(line []byte) {
	line = content.WithoutEscapes(nil, line)
	var e entry
	e.parse(line, true)
	lv := e.level
	switch {
	case e.form == access && status(line[e.to:]) >= 500:
		lv = failure
	case e.form != access && lv == noLevel:
		lv = levelOf(line[e.rest:], e.to > 0)
	}
	*m = Marks{Level: levelNames[lv], Time: in24Hours(string(line[e.from:e.to])), form: m.form}
	if lv == noLevel {
		m.Level = ""
	}
	if m.Time != "" {
		m.setAt(m.Time)
	}
}

// timeForms are the forms of times, after setAt has made those alike that begin with a year.
var timeForms = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04", "02/Jan/2006:15:04:05 -0700", time.Stamp, "15:04:05", time.ANSIC, time.UnixDate,
	"Mon Jan _2 15:04:05", "01-02 15:04:05", "0102 15:04:05", "2 Jan 2006 15:04:05", "2-Jan-2006 15:04:05",
	"2/Jan/2006 15:04:05", "Jan 2, 2006 15:04:05", "Jan _2 2006 15:04:05", "1/2/2006 15:04:05", "1/2/2006 15:04",
}

// setAt sets the time in milliseconds, if its form is known.
func (m *Marks) setAt(text string) {
	if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil { // seconds, or milliseconds since 1970
		if m.At, m.Known = int64(n*1000), true; n >= 1e12 {
			m.At = int64(n)
		}
		return
	}
	if len(text) > 11 && digitsAt([]byte(text), 0, 4) && text[4] == text[7] {
		text = text[:4] + "-" + text[5:7] + "-" + text[8:10] + "T" + strings.Replace(text[11:], " ", "", 1)
	}
	for i := range timeForms {
		i = (m.form + i) % len(timeForms)
		if t, err := time.Parse(timeForms[i], text); err == nil {
			m.form, m.At, m.Known = i, t.UnixMilli(), true
			return
		}
	}
}
