// Package gitlog reads the output of git log: its commits as records, and a summary of them.
//
// It reads the formats medium, full, fuller and raw, with or without --stat, --shortstat or --numstat. A log with
// patches (git log -p) is a diff, and one of --oneline is a text.
package gitlog

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// commit is one commit of the log. Its texts are overwritten by those of the next commit.
type commit struct {
	hash, author, date, subject []byte
	when                        time.Time    // date, zero if it is in a form that is not known
	zoned                       bool         // date has a zone, so that it can be written in the form of ISO 8601
	at                          content.Span // from "commit" to the last line that belongs to it
	stat                        bool         // the log counts files and lines of this commit
	files, added, deleted       int64
}

// parser reads a log line by line.
type parser struct {
	onCommit func(*commit) // a commit is complete
	now      *commit       // &one, nil before the first commit
	one      commit
	body     bool   // the header of the commit has ended
	subject  bool   // the subject has been read
	authored bool   // the date is the author's: a committer's does not replace it
	plain    []byte // the current line without colours
}

// line parses a line, which is passed without its ending. at is its span in the text.
func (p *parser) line(line []byte, at content.Span) {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		p.plain = content.WithoutEscapes(p.plain[:0], line)
		line = p.plain
	}
	if hash, ok := Header(line); ok {
		p.end()
		c := &p.one
		*c = commit{hash: append(c.hash[:0], hash...), author: c.author[:0], date: c.date[:0], subject: c.subject[:0]}
		c.at, p.now = at, c
		p.body, p.subject, p.authored = false, false, false
		return
	}
	c := p.now
	if c == nil || len(line) == 0 {
		p.body = p.body || c != nil
		return
	}
	c.at.End = at.End
	switch {
	case !p.body:
		p.header(line)
	case bytes.HasPrefix(line, []byte("    ")):
		if !p.subject {
			p.subject, c.subject = true, append(c.subject, bytes.TrimSpace(line)...)
		}
	default:
		c.addStat(string(line))
	}
}

func (p *parser) end() {
	if p.now != nil {
		p.onCommit(p.now)
		p.now = nil
	}
}

// Header returns the hash of a line that begins a commit: "commit HASH", which may be followed by parents and by
// names of branches and tags in brackets.
func Header(line []byte) (hash []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("commit "))
	if !ok {
		return nil, false
	}
	n := len(rest) - len(bytes.TrimLeft(rest, "0123456789abcdef"))
	if n < 7 || n > 64 || n < len(rest) && rest[n] != ' ' {
		return nil, false
	}
	return rest[:n], true
}

// header reads a line of a commit's header: "Author: Ada <ada@example.com>", "Date:   …".
func (p *parser) header(line []byte) {
	c := p.now
	name, value, ok := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case !ok:
		p.rawHeader(line)
	case string(name) == "Author":
		c.author = append(c.author[:0], person(value)...)
	case string(name) == "AuthorDate":
		c.setDate(value)
		p.authored = true
	case string(name) == "Date" && !p.authored:
		c.setDate(value)
	}
}

// rawHeader reads a line of --format=raw: "author Ada <ada@example.com> 1700000000 +0100".
func (p *parser) rawHeader(line []byte) {
	value, ok := bytes.CutPrefix(line, []byte("author "))
	end := bytes.LastIndexByte(value, '>')
	if !ok || end < 0 {
		return
	}
	p.now.author = append(p.now.author[:0], person(value[:end+1])...)
	p.now.setDate(bytes.TrimSpace(value[end+1:]))
	p.authored = true
}

// person returns the name in "Name <address>", or the address if there is no name.
func person(s []byte) []byte {
	name, address, ok := bytes.Cut(s, []byte("<"))
	if name = bytes.TrimSpace(name); len(name) == 0 && ok {
		return bytes.TrimSuffix(address, []byte(">"))
	}
	return name
}

// dateForms are git's forms of a date: default, --date=iso, iso-strict, rfc, and without a zone (--date=local).
var dateForms = []string{
	"Mon Jan 2 15:04:05 2006 -0700", "2006-01-02 15:04:05 -0700", time.RFC3339, "Mon, 2 Jan 2006 15:04:05 -0700",
	"Mon Jan 2 15:04:05 2006", "2006-01-02",
}

// setDate sets the date, also as a time if its form is known.
func (c *commit) setDate(date []byte) {
	c.date, c.when, c.zoned = append(c.date[:0], date...), time.Time{}, false
	s := string(date)
	for i, form := range dateForms {
		t, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		c.when, c.zoned = t, i < 4
		return
	}
	seconds, zone, _ := strings.Cut(s, " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && len(seconds) >= 9 { // --date=raw or unix
		c.when, c.zoned = time.Unix(n, 0).UTC(), true
		if t, err := time.Parse("-0700", zone); err == nil {
			c.when = c.when.In(t.Location())
		}
	}
}

// isoDate returns the date in the form of ISO 8601, as git log --format=%aI prints it; a date in another form, such as
// "2 days ago", as written.
func (c *commit) isoDate() string {
	if c.zoned {
		return c.when.Format("2006-01-02T15:04:05-07:00")
	}
	return string(c.date)
}

// changes matches the last line of --stat and --shortstat; numbered matches a line of --numstat.
var (
	changes  = content.Pattern(`^ (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?$`)
	numbered = content.Pattern(`^(\d+|-)\t(\d+|-)\t`)
)

// addStat reads a line of --stat, --shortstat or --numstat.
func (c *commit) addStat(line string) {
	if m := changes().FindStringSubmatch(line); m != nil {
		c.stat, c.files, c.added, c.deleted = true, count(m[1]), count(m[2]), count(m[3])
	} else if m := numbered().FindStringSubmatch(line); m != nil {
		c.stat = true
		c.files++
		c.added += count(m[1])
		c.deleted += count(m[2])
	}
}

// count parses a number; "" and "-" are 0.
func count(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
