// Package summary says what a text holds, kind by kind: the shape of JSON over
// all its elements, the stat of a diff, what stands out in a log, the columns of a
// table, the headings of Markdown.
//
// It reads a text once, as it is written, in bounded memory. It knows nothing of
// budgets, receipts or tokens: it offers lines, most needed first, and the funnel takes what fits.
package summary

import (
	"bytes"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/cutoff"
)

// Digest reads a text once. Write never fails. Not safe for concurrent use.
// It holds a few MiB at most, whatever it reads, and starts no goroutine: it may be dropped without Close.
type Digest struct {
	name    string
	prefix  []byte         // until there is enough of it to name the kind
	reader  reader         // nil until then
	decoder io.WriteCloser // nil: the text is UTF-8
	kind    content.Kind
}

// reader summarises one kind. write gets the text in pieces of any size and
// keeps none of them; what it says must not depend on where they were cut.
type reader interface {
	write(p []byte)
	close(s *Summary)
}

// New starts a digest. name is the file's name where the text is a file's (a hint), else "".
func New(name string) *Digest { return &Digest{name: name} }

// Write takes the next piece of the text.
func (d *Digest) Write(p []byte) (int, error) {
	n := len(p)
	if d.reader == nil {
		want := content.SniffSize - len(d.prefix)
		if len(d.prefix) == 0 && n >= want {
			d.begin(p[:want], false)
			p = p[want:]
		} else {
			take := min(want, n)
			d.prefix = append(d.prefix, p[:take]...)
			p = p[take:]
			if len(d.prefix) == content.SniffSize {
				d.begin(d.prefix, false)
				d.prefix = nil
			}
		}
	}
	if d.reader != nil && len(p) > 0 {
		d.pass(p)
	}
	return n, nil
}

// begin names the kind and hands its reader what was seen so far. Texts in other encodings are read as UTF-8, as all tools read them.
func (d *Digest) begin(prefix []byte, whole bool) {
	d.kind = content.Sniff(prefix, whole, d.name)
	start := prefix
	if d.kind != content.Binary {
		if e := content.Detect(prefix, whole); e != content.UTF8 && e != content.NoText {
			start, _ = io.ReadAll(io.LimitReader(e.Reader(bytes.NewReader(prefix)), content.SniffSize))
			d.decoder = e.Writer((*decoded)(d))
		}
	}
	d.reader = readerOf(d.kind, d.name, start)
	d.pass(prefix)
}

// pass hands the next piece to the reader.
func (d *Digest) pass(p []byte) {
	if d.decoder == nil {
		d.reader.write(p)
		return
	}
	_, _ = d.decoder.Write(p) // its writer never fails
}

// decoded is where a decoder writes to.
type decoded Digest

func (d *decoded) Write(p []byte) (int, error) {
	d.reader.write(p)
	return len(p), nil
}

func readerOf(k content.Kind, name string, prefix []byte) reader {
	var r reader
	switch k {
	case content.JSON, content.NDJSON:
		return newDocument(k)
	case content.Binary:
		return newBinary(prefix, name)
	case content.Diff:
		r = newDifference()
	case content.Log:
		r = newLog(name)
	case content.Table:
		r = newTable(prefix)
	case content.Markdown:
		r = newMarkdown()
	default:
		r = newProse(name)
	}
	return &unmarked{reader: r}
}

// unmarked leaves out a byte order mark. It comes in the first piece, which is all that was sniffed.
type unmarked struct {
	reader
	begun bool
}

func (u *unmarked) write(p []byte) {
	if !u.begun {
		p = withoutMark(p)
		u.begun = true
	}
	u.reader.write(p)
}

func withoutMark(p []byte) []byte { return bytes.TrimPrefix(p, []byte("\xef\xbb\xbf")) }

// Close ends the reading; Digest is not used afterwards.
func (d *Digest) Close() Summary {
	if d.reader == nil {
		d.begin(d.prefix, true)
		d.prefix = nil
	}
	if d.decoder != nil {
		_ = d.decoder.Close()
	}
	s := Summary{Kind: d.kind, Records: -1, Matches: -1, Files: -1}
	d.reader.close(&s)
	for _, group := range [][]string{s.Total, s.Says, s.Shapes, s.Body} {
		for i, line := range group {
			group[i] = oneLine(line)
		}
	}
	for i, q := range s.Quotes {
		s.Quotes[i] = Quote{q.Line, oneLine(q.Whole), oneLine(q.Short)}
	}
	return s
}

// Summary is what a text holds. Lines are plain text, one line each, no trailing newline, each at most
// 2,000 runes; hidden characters are still as they were (the funnel makes them visible).
type Summary struct {
	Kind    content.Kind
	Media   string         // MIME type, for binary
	Total   []string       // parts for the "total:" line after the kind: "1204 matches in 32 files", "12 files, 40 hunks, +312 −295", "20000 rows, 7 columns"
	Says    []string       // what the kind says, most needed first: where JSON breaks off, panics and errors of a log, a diff's files
	Shapes  []string       // the shape from most to least detailed, without "shape: "; none where the kind has no shape
	Body    []string       // what else is worth showing, most needed first: hunk headers, templates, headings, sentences, sample records, top files
	Records int64          // records slice could take; −1 where there are none
	Matches int64          // elements of an array or NDJSON of objects with file, path, filename, uri or url; −1 otherwise
	Files   int64          // distinct ones; −1 otherwise, and where there were too many to count in bounded memory
	Cut     *cutoff.Report // JSON and NDJSON that is not whole
	Quotes  []Quote        // of Says and Body, those that repeat a line of the text
}

// Quote is a line of Says or Body that repeats a line of the text. Where that line is shown anyway, Short says as much.
type Quote struct {
	Line         int64 // of the text, from 1
	Whole, Short string
}

// quote is what is said of a line of the text: lead, then the line as it is quoted, then what else there is to say.
func (s *Summary) quote(lead string, line int64, text, more string) string {
	whole := lead + ": " + text + more
	s.Quotes = append(s.Quotes, Quote{line, whole, lead + ", shown below" + more})
	return whole
}
