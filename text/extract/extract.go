// Package extract returns the text of documents as lines of UTF-8, with the place of each line in its document.
//
//	zip ─► parts ─► flow (paragraphs, table rows)   docx, odt, pptx
//	               cells, as their formats show them xlsx
//	tokens ─► blocks                                html
//	MIME parts                                      eml, mbox
//	cells                                           ipynb
//	control words                                   rtf
//	PDFium in WebAssembly, without files or stdout  pdf
//
// A document can be hostile: unzipped bytes, text, nesting and memory are bounded, and a panic of a parser becomes
// [ErrBroken].
//
// Known gaps: a docx or odt file does not contain the numbers that programs show before list items and headings, so the
// text has none. A formula of an xlsx file has the value that was saved last. A PDF has 106 for 10⁶. Names of months
// and days of an xlsx file are English.
//
// The library excelize is not used: it formats conditions, fractions of seconds, fractions and exponents wrongly, takes
// 4 ms and 2 MB of each start of the program, and ends a damaged file without an error.
package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

// These limits hold for one document.
const (
	maxInput = 256 << 20 // bytes of the file
	maxText  = 64 << 20  // bytes of unzipped content, and of text
	maxDepth = 256       // nested XML elements
)

// Errors of [Read]. They are wrapped with the reason.
var (
	ErrEncrypted = errors.New("the document is encrypted")
	ErrNoText    = errors.New("the document has no text; it is empty or a scan")
	ErrBroken    = errors.New("the document cannot be read")
	ErrTooLarge  = errors.New("the document is too large")
)

// encrypted wraps ErrEncrypted with the name of what is encrypted.
func encrypted(what string) error {
	return fmt.Errorf("%w: %s; save it without a password", ErrEncrypted, what)
}

// formats maps file name extensions to formats.
var formats = map[string]string{
	".docx": "docx", ".docm": "docx", ".dotx": "docx", ".dotm": "docx",
	".xlsx": "xlsx", ".xlsm": "xlsx", ".xltx": "xlsx", ".xltm": "xlsx",
	".pptx": "pptx", ".pptm": "pptx", ".ppsx": "pptx", ".potx": "pptx",
	".odt": "odt", ".ott": "odt",
	".html": "html", ".htm": "html", ".xhtml": "html",
	".eml": "eml", ".mht": "eml", ".mhtml": "eml", ".mbox": "mbox", ".ipynb": "ipynb", ".rtf": "rtf",
	".pdf": "pdf",
}

// reader reads a document.
type reader = func(context.Context, *builder, io.ReaderAt, int64) error

// readers has the function that reads each format.
var readers = map[string]reader{
	"docx": archived(office(readDocx)),
	"xlsx": archived(office(readXlsx)),
	"pptx": archived(office(readPptx)),
	"pdf":  readPDF,
	"odt":  archived(readODT),
	"html": readHTML,
	"eml":  readEML,
	"mbox": readMbox, "ipynb": readNotebook, "rtf": readRTF,
}

// Format returns the format of a document by its file name: docx, xlsx, pptx, odt, html, eml, mbox, ipynb, rtf
// or pdf; "" for others.
func Format(name string) string {
	return formats[strings.ToLower(path.Ext(name))]
}

// Text is the text of a document.
type Text struct {
	Body   []byte   // UTF-8; each line ends in \n
	Places []Place  // ascending by Line; empty for html and eml
	Notes  []string // content that is not in Body, with the reason
}

// Place is the location in the document of a range of lines, which ends before the next Place.
type Place struct {
	Line int    // first line of the range, from 1
	Name string // for example "paragraph 12", "Sheet1!A4", "slide 3", "page 2"
}

// PlaceOf returns the name of the place of a line, from 1. It returns "" if the text has no places.
func (t Text) PlaceOf(line int) string {
	i, ok := slices.BinarySearchFunc(t.Places, line, func(p Place, line int) int { return p.Line - line })
	if !ok {
		i--
	}
	if i < 0 {
		return ""
	}
	return t.Places[i].Name
}

// Read returns the text of a document of a format of [Format]. It fails with the error of ctx when ctx ends, and is
// safe for concurrent use.
func Read(ctx context.Context, format string, r io.ReaderAt, size int64) (Text, error) {
	read := readers[format]
	if read == nil {
		return Text{}, fmt.Errorf("unknown document format %q; use one of Format", format)
	}
	if size > maxInput {
		return Text{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, size, maxInput)
	}
	if size <= 0 {
		return Text{}, fmt.Errorf("%w (%d bytes)", ErrNoText, size)
	}
	b := builder{readers: readers}
	var err error
	if p := recovered(func() { err = read(ctx, &b, contextReader{ctx, r}, size) }); p != nil {
		err = p
	}
	if err == nil {
		err = b.err
	}
	if err == nil && len(b.body) == 0 {
		err = ErrNoText
	}
	if err != nil {
		return Text{}, failure(ctx, err)
	}
	b.noteMissed()
	return Text{Body: b.body, Places: b.places, Notes: b.notes}, nil
}

// recovered runs f, and returns an error if f panics. Parsers of other projects may panic on broken input.
func recovered(f func()) (err error) {
	panics.Into(&err, f)
	if c, ok := errors.AsType[*panics.Caught](err); ok {
		return fmt.Errorf("%w: the parser panicked: %v", ErrBroken, c.Value)
	}
	return err
}

// failure wraps an error with ErrBroken, unless it is one of the other errors of Read.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, known := range []error{ErrEncrypted, ErrNoText, ErrBroken, ErrTooLarge, errEngine} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// contextReader fails when its context ends, so that parsers without a context stop.
type contextReader struct {
	ctx context.Context
	r   io.ReaderAt
}

func (c contextReader) ReadAt(p []byte, off int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.ReadAt(p, off)
}
