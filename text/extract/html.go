package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// htmlBlocks are the elements that start and end a line.
var htmlBlocks = content.SetOf(`
	address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset
	figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol optgroup
	option p pre section select summary table tbody textarea tfoot thead title tr ul`)

// htmlSkipped are the elements without text to read.
var htmlSkipped = content.SetOf("script style noscript iframe noembed noframes template svg annotation annotation-xml")

func readHTML(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	in, err := decodeHTML(r, size)
	if err != nil {
		return err
	}
	return htmlText(ctx, b, in)
}

// decodeHTML returns a reader of the document as UTF-8. Without a byte order mark or a declaration the charset is
// UTF-8 if the first KB or the whole document is UTF-8; otherwise it is windows-1252.
func decodeHTML(r io.ReaderAt, size int64) (io.Reader, error) {
	head := make([]byte, min(size, 1024))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	enc, name, certain := charset.DetermineEncoding(head, "")
	if !certain && name == "windows-1252" { // the fallback, or declared
		in := transform.NewReader(io.NewSectionReader(r, 0, size), encoding.UTF8Validator)
		switch _, err := io.Copy(io.Discard, in); {
		case err == nil:
			enc = encoding.Nop
		case errors.Is(err, encoding.ErrInvalidUTF8):
			enc = charmap.Windows1252
		default:
			return nil, err
		}
	}
	return enc.NewDecoder().Reader(io.NewSectionReader(r, 0, size)), nil
}

// page collects the lines of an HTML document. It takes tokens instead of a tree, so that nesting costs no memory.
type page struct {
	b       *builder
	line    []byte     // text since the last block started or ended
	cells   [][]string // the open table row: lines of each cell
	inCell  bool
	pre     int    // open pre elements
	bullet  bool   // the next line starts a list item
	skipped string // the open element whose content is ignored; "" if none
	nested  int    // elements of that name that are open
}

func htmlText(ctx context.Context, b *builder, in io.Reader) error {
	z := html.NewTokenizer(in)
	z.SetMaxBuf(maxText)
	p := page{b: b}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			switch err := z.Err(); {
			case errors.Is(err, io.EOF):
				return p.endRow()
			case errors.Is(err, html.ErrBufferExceeded):
				return fmt.Errorf("%w: a token of more than %d bytes", ErrTooLarge, maxText)
			default:
				return err
			}
		case html.TextToken:
			if p.skipped == "" {
				err = p.text(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			err = p.start(z, string(name), kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			err = p.end(string(name))
		}
		if err != nil {
			return err
		}
	}
}

func (p *page) text(text []byte) error {
	if p.pre == 0 {
		p.line = append(p.line, text...)
		return nil
	}
	for line := range strings.Lines(string(text)) {
		p.line = append(p.line, line...)
		if strings.HasSuffix(line, "\n") {
			if err := p.endLine(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *page) start(z *html.Tokenizer, name string, closed bool) error {
	if closed {
		z.NextIsNotRawText() // XHTML: <script/> has no content
	}
	switch {
	case p.skipped != "":
		if name == p.skipped && !closed {
			p.nested++
		}
		return nil
	case htmlSkipped[name]:
		if !closed {
			p.skipped, p.nested = name, 1
		}
		return nil
	}
	err := p.border(name)
	switch name {
	case "td", "th":
		p.cells, p.inCell = append(p.cells, nil), true
	case "img":
		for more := true; more; {
			var key, value []byte
			if key, value, more = z.TagAttr(); string(key) == "alt" {
				p.line = append(append(append(p.line, ' '), value...), ' ')
			}
		}
	case "li":
		p.bullet = true
	case "pre":
		p.pre++
	}
	return err
}

// border ends the row or line at which an element starts or ends.
func (p *page) border(name string) error {
	switch {
	case name == "table" || name == "tr":
		return p.endRow()
	case name == "td" || name == "th" || htmlBlocks[name]:
		return p.endLine()
	}
	return nil
}

func (p *page) end(name string) error {
	if p.skipped != "" {
		if name == p.skipped {
			if p.nested--; p.nested == 0 {
				p.skipped = ""
			}
		}
		return nil
	}
	err := p.border(name)
	switch {
	case name == "li":
		p.bullet = false
	case name == "pre" && p.pre > 0:
		p.pre--
	}
	return err
}

// endLine ends a block. In a table cell the block becomes a part of the line of its row.
func (p *page) endLine() error {
	raw := string(p.line)
	p.line = p.line[:0]
	line := collapsed(raw)
	if line == "" {
		return nil
	}
	if p.bullet {
		line, p.bullet = "- "+line, false
	}
	switch n := len(p.cells); {
	case p.inCell && n > 0:
		p.cells[n-1] = append(p.cells[n-1], line)
		return nil
	case p.pre > 0:
		return p.b.addRaw(strings.TrimRight(raw, " \t\r\n"))
	}
	return p.b.add("", line)
}

// endRow ends a table row. Its cells become one line; a row with one cell, as in tables for layout, keeps its lines.
func (p *page) endRow() error {
	err := p.endLine()
	cells := p.cells
	p.cells, p.inCell = nil, false
	if err != nil || len(cells) == 0 {
		return err
	}
	if len(cells) == 1 {
		for _, line := range cells[0] {
			if err := p.b.add("", line); err != nil {
				return err
			}
		}
		return nil
	}
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = strings.Join(c, " ")
	}
	return p.b.add("", joined(all))
}
