// Package kinds detects the kind of a text (JSON, log, diff, …). Each kind is one descriptor in a file of its own.
//
// [All] lists the kinds in detection order. Its subpackages (shape, logs, diff, markdown) summarise texts; kinds/digest
// defines the summary.
package kinds

import (
	"context"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Kind describes one kind of text. All fields but Objects, Numbered, Values and RecordNote are set.
type Kind struct {
	Name content.Kind // name on the wire and in the index of observations
	Ext  string       // file extension without the dot

	// MIME returns the MIME type of a text, without parameters, from the text's first bytes. prefix is nil if only
	// the kind is known.
	MIME func(prefix []byte) string

	// Sniff reports whether a text is of this kind. It is called only if no earlier kind in All matched.
	Sniff func(s *Sample) bool

	// Summarizer returns a summarizer for a text. name is the file name or ""; prefix is the first bytes in UTF-8.
	Summarizer func(name string, prefix []byte) digest.Summarizer

	// Records visits the records of a text; see [Records].
	Records func(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error

	// Objects writes the records as JSON objects, one a line, in the order and number of Records. It is nil if the text
	// is JSON or binary. The error is a [*content.Remarks] if all was written, but the text is damaged or lacks fields.
	Objects func(ctx context.Context, r io.Reader, w io.Writer) error

	// Numbered writes each record in an array, after the number of its first line: [7,{…}]. It is nil if the objects
	// have the member line, or if no line is known.
	Numbered func(ctx context.Context, r io.Reader, w io.Writer) error

	// Values reads the records of a text that holds values in another form than JSON; nil for other kinds. The offsets of
	// Records are then those in the output of Objects.
	Values values.Reader

	RecordIs   string // the record that jq reads: "a file {file, status, …}"; for help and receipts
	RecordNote string // a remark on it, for help; may be ""

	Shares Shares
}

// Shares are the fractions of a receipt's space for the findings (Says) and the shape, and the fraction of the
// remainder for the body; head and tail get the rest. The head and tail of a log, of prose and of a table represent
// the middle well; those of JSON, a diff or Markdown do not.
type Shares struct{ Says, Shape, Body float64 }

func fixed(mime string) func([]byte) string { return func([]byte) string { return mime } }

// detected returns a function that detects the MIME type from the first bytes of a text, and returns other for nil.
func detected(other string) func([]byte) string {
	return func(prefix []byte) string {
		if prefix == nil {
			return other
		}
		m, _, _ := strings.Cut(mimetype.Detect(prefix).String(), ";")
		return m
	}
}
