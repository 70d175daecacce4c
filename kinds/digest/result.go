// Package digest defines the summary of a text and the code shared by the summarizers of all kinds: splitting lines,
// counting file names, first sentences, line lengths.
package digest

import (
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// A Summarizer summarises text of one kind. Add receives the text in blocks of any size and must not retain them;
// the summary must not depend on the block boundaries.
type Summarizer interface {
	Add(p []byte)
	Finish(s *Summary)
}

// Summary describes a text. All lines are plain text without newline, at most 2,000 runes each. Hidden characters
// are unchanged; the funnel escapes them.
type Summary struct {
	Kind  content.Kind
	Media string // MIME type, for binary
	// Total has the parts of the "total:" line after the kind: "1204 matches in 32 files", "12 files, 40 hunks,
	// +312 −295", "20000 rows, 7 columns".
	Total []string
	// Says lists findings, most important first: the position where JSON breaks off, panics and errors of a log, files
	// of a diff.
	Says     []string
	Damage   []string // the lines of Says that name damage; an answer based on the text must repeat them
	Listed   List     // the list at the end of Says, if there is one
	Shapes   []string // shapes from most to least detailed, without "shape: "; empty if the kind has no shape
	Form     string   // keys and types, which texts of one form share; "" if the kind has no shape
	Examples []string // shapes in which an example stands for the type of a scalar, from most to least detailed
	// Body lists further lines, most important first: hunk headers, templates, headings, sentences, sample records, top
	// files.
	Body    []string
	Records int64  // number of records that slice can address; −1 if the kind has no records
	Filter  string // jq filter of the records of one JSON value: ".[]", ".results[]"; "" if there are none
	First   First
	// Matches is the number of records that name a file, by a key such as file, path, filePath or url; −1 if under half
	// do. The records may also be the elements of an array at most two keys below a JSON object.
	Matches int64
	// Files is the number of distinct files that these records name; −1 if Matches is −1 or the files are too many to
	// count in bounded memory.
	Files  int64
	Cut    *jsontrunc.Report // position of the break if JSON or NDJSON is incomplete; else nil
	Quotes []Quote           // lines of Says and Body that repeat a line of the text
}

// List is a list at the end of Says, of which a receipt may show a part: the lines from index From on. Total counts all
// items, also those without a line. A partial list is shown below "Title, 13 of 220:". Title is "" if there is no list.
type List struct {
	Title string
	From  int
	Total int64
}

// First names the line of Body that shows the first record of a JSON text, and the offset of that record in bytes. Line
// is "" if Body shows none.
type First struct {
	Line   string
	Offset int64
}

// Quote is a line of Says or Body that repeats a line of the text. Short replaces Whole if the receipt shows the
// repeated line elsewhere.
type Quote struct {
	Line         int64 // line number in the text, from 1
	Whole, Short string
}

// AddQuote records a Quote of a line and returns its Whole form: lead, the quoted text, then more.
func (s *Summary) AddQuote(lead string, line int64, text, more string) string {
	whole := lead + ": " + text + more
	s.Quotes = append(s.Quotes, Quote{line, whole, lead + ", shown below" + more})
	return whole
}

// EachOneLine enforces the limits of Summary on all lines: no newline, at most 2,000 runes.
func (s *Summary) EachOneLine() {
	for _, group := range [][]string{s.Total, s.Says, s.Shapes, s.Examples, s.Body} {
		for i, line := range group {
			group[i] = OneLine(line)
		}
	}
	s.First.Line = OneLine(s.First.Line)
	for i, q := range s.Quotes {
		s.Quotes[i] = Quote{q.Line, OneLine(q.Whole), OneLine(q.Short)}
	}
}
