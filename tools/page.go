package tools

import "errors"

// MaxRowEdge is the maximum number of bytes that [Page.TruncatedRow] takes of each end of a row: more than any page
// shows.
const MaxRowEdge = 128 << 10

// ErrPageFull is returned by [Page.Row] when the page is full: write no more rows, but go on counting if that is
// cheap.
var ErrPageFull = errors.New("page is full")

// Page takes the rows of an answer that shows a part of the whole, and the call that shows the next part.
type Page interface {
	// Row takes one whole line or record (which may hold several lines: a match with its context), without its final
	// newline. A row that is longer than a page is clipped; more is the call that shows it whole (zero: there is none).
	// The error is nil, or ErrPageFull if the row was not taken.
	Row(b []byte, more Call) error

	// TruncatedRow is Row for a row that is too long to be held in memory: its first and last [MaxRowEdge] bytes, or
	// fewer, and the number of chars between them. Like every row that is longer than a page, it fills a page alone.
	TruncatedRow(head, tail []byte, between int64, more Call) error

	// Text is Row for a range of a text that is shown exactly, with its line ends. No newline is added after the
	// previous row.
	Text(b []byte) error

	// SetRowRange numbers the rows of a page: the number of the first row, and how many there are in all (−1: not
	// counted). It may be called at any time before the tool returns; the last call counts. The default is 0.
	SetRowRange(first, total int64)

	// SetTextRange sets which bytes or chars of a text the page shows, both ends included, and how many the text has in
	// all (−1: not counted). It replaces SetRowRange for text without numbered rows. A page whose range is the
	// whole text is complete.
	SetTextRange(unit string, from, to, total int64)

	// Next sets the call that shows what follows the page. It must be called unless the page is complete.
	Next(c Call)
}
