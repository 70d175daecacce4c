package gitlog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxAuthors   = 20_000 // authors counted; commits of further ones only count in the total
	authorsShown = 5
	commitsShown = 40 // newest commits listed
)

// summary summarises a log: commits, their span of time, authors, lines added and deleted.
type summary struct {
	rows           digest.LineSplitter
	read           parser
	commits        int64
	stats          int64 // commits with counts
	added, deleted int64
	authors        map[string]*int64
	uncounted      bool // there are more than maxAuthors authors
	first, last    time.Time
	changed        int64  // lines that the largest commit changed
	largest        string // what is said of it
	list           []string
}

// New returns the summarizer of logs of git.
func New() *summary {
	s := &summary{authors: map[string]*int64{}}
	s.read.onCommit = s.add
	s.rows.Skip = s.ahead
	s.rows.Visit = func(line []byte, _ int64) { s.read.line(line, content.Span{}) }
	return s
}

func (s *summary) Add(p []byte) { s.rows.Write(p) }

// ahead skips the leading lines of p that belong to the message of a commit whose subject has been read.
func (s *summary) ahead(p []byte) (n int) {
	for s.read.subject && (bytes.HasPrefix(p[n:], []byte("    ")) || n < len(p) && p[n] == '\n') {
		end := bytes.IndexByte(p[n:], '\n')
		if end < 0 {
			break
		}
		s.rows.Number++
		n += end + 1
	}
	return n
}

func (s *summary) add(c *commit) {
	s.commits++
	if n := s.authors[string(c.author)]; n != nil {
		*n++
	} else if len(s.authors) < maxAuthors {
		one := int64(1)
		s.authors[string(c.author)] = &one
	} else {
		s.uncounted = true
	}
	if !c.when.IsZero() {
		if s.first.IsZero() || c.when.Before(s.first) {
			s.first = c.when
		}
		if c.when.After(s.last) {
			s.last = c.when
		}
	}
	if c.stat {
		s.stats++
		s.added += c.added
		s.deleted += c.deleted
		if s.largest == "" || c.added+c.deleted > s.changed {
			s.changed = c.added + c.deleted
			s.largest = short(c) + " " + content.Clip(string(c.subject), 80) + " (" + content.Plural(c.files, "file", "files") +
				", +" + digest.Number(c.added) + " −" + digest.Number(c.deleted) + ")"
		}
	}
	if len(s.list) < commitsShown {
		s.list = append(s.list, short(c)+" "+content.Clip(string(c.author), 24)+": "+
			content.Clip(string(c.subject), digest.LineRunes))
	}
}

// short returns the beginning of the hash and the day: "1a2b3c4d 2026-11-20".
func short(c *commit) string {
	s := string(c.hash[:min(len(c.hash), 8)])
	if !c.when.IsZero() {
		s += " " + c.when.Format(time.DateOnly)
	}
	return s
}

func (s *summary) Finish(d *digest.Summary) {
	s.rows.Close()
	s.read.end()
	d.Records = s.commits
	d.Total = append(d.Total, content.Plural(s.commits, "commit", "commits"))
	if !s.first.IsZero() {
		d.Total = append(d.Total, s.first.Format(time.DateOnly)+" to "+s.last.Format(time.DateOnly))
	}
	if s.stats > 0 {
		d.Total = append(d.Total, "+"+digest.Number(s.added)+" −"+digest.Number(s.deleted))
	}
	d.Says = append(d.Says, s.authorLine())
	if s.largest != "" {
		d.Says = append(d.Says, "largest commit: "+s.largest)
	}
	d.Body = append(d.Body, s.list...)
}

// authorLine returns "12 authors: Ada 40, Grace 31, … and 10 more".
func (s *summary) authorLine() string {
	names := slices.SortedFunc(maps.Keys(s.authors), func(a, b string) int {
		return cmp.Or(cmp.Compare(*s.authors[b], *s.authors[a]), strings.Compare(a, b))
	})
	var b strings.Builder
	if s.uncounted {
		b.WriteString("over ")
	}
	b.WriteString(content.Plural(int64(len(names)), "author", "authors") + ": ")
	for i, name := range names[:min(len(names), authorsShown)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(content.Clip(name, digest.NameRunes) + " " + digest.Number(*s.authors[name]))
	}
	if more := len(names) - authorsShown; more > 0 {
		b.WriteString(" … and " + digest.Number(int64(more)) + " more")
	}
	return b.String()
}
