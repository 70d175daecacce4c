package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	option p pre section select summary table tbody td textarea tfoot th thead title tr ul`)

var (
	htmlAddress = content.Pattern(`^\s*(?i:https?|mailto|ftp|tel|sms):`)
	htmlRaised  = content.Pattern(`(?i)vertical-align:\s*(super|sub)\b`)
)

const maxColumns = 1 << 14 // of a table, for spans

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
// UTF-8 if the first KB or the whole document is UTF-8; otherwise it is detected.
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
			text, e, err := content.Decode(io.NewSectionReader(r, 0, size))
			if err != nil || e != content.UTF8 && e != content.NoText {
				return text, err
			}
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
	pre     int        // open pre elements
	bullet  bool       // the next line starts a list item
	skipped string     // the open element whose content is ignored; "" if none
	nested  int        // elements of that name that are open
	inline  []inline
	formula *formula
	at, own int   // column of the open cell, and cells of the row that no other covers
	spans   []int // rows to come that a cell covers, by column

	row    func(table int, cells [][]byte) error // receives rows in place of lines; nil: lines
	tables int                                   // that had a row
	open   []int                                 // numbers of the open tables; 0: it had no row yet
}

// TableRows calls visit for each row of the tables of an HTML page in UTF-8: the number of its table, from 1 in the
// order of their first rows, and the text of its cells, "" for those that another covers. Of a row around a table
// within it, what follows that table is left out.
func TableRows(ctx context.Context, r io.Reader, visit func(table int, cells [][]byte) error) (err error) {
	p := page{b: &builder{}, row: visit}
	if broken := recovered(func() { err = p.read(ctx, r) }); broken != nil {
		return broken
	}
	return err
}

// inline is an open element in a line.
type inline struct {
	name, end string // end is what follows its text
	link      string
	at        int // where it starts in the line
}

func htmlText(ctx context.Context, b *builder, in io.Reader) error {
	return (&page{b: b}).read(ctx, in)
}

func (p *page) read(ctx context.Context, in io.Reader) error {
	z, b := html.NewTokenizer(in), p.b
	z.SetMaxBuf(maxText)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			switch err := z.Err(); {
			case errors.Is(err, io.EOF):
				p.endFormula()
				p.endRow()
				return b.err
			case errors.Is(err, html.ErrBufferExceeded):
				return fmt.Errorf("%w: a token of more than %d bytes", ErrTooLarge, maxText)
			default:
				return err
			}
		case html.TextToken:
			if p.skipped == "" {
				p.text(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			p.start(z, string(name), kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(string(name))
		}
		if b.err != nil {
			return b.err
		}
	}
}

func (p *page) text(text []byte) {
	if bytes.ContainsAny(text, marks) {
		text = []byte(withoutMarks.Replace(string(text)))
	}
	if p.formula != nil {
		p.formula.chars(string(text))
		return
	}
	if p.pre == 0 {
		p.line = append(p.line, text...)
		return
	}
	for line := range strings.Lines(string(text)) {
		p.line = append(p.line, line...)
		if strings.HasSuffix(line, "\n") {
			p.endLine()
		}
	}
}

func (p *page) start(z *html.Tokenizer, name string, closed bool) {
	if closed {
		z.NextIsNotRawText() // XHTML: <script/> has no content
	}
	switch {
	case p.skipped != "":
		if name == p.skipped && !closed {
			p.nested++
		}
		return
	case htmlSkipped[name]:
		if !closed {
			p.skipped, p.nested = name, 1
		}
		return
	}
	var attrs map[string]string
	if htmlBlocks[name] {
		p.endFormula()
	}
	if p.formula != nil || htmlDescribed[name] {
		attrs = tagAttributes(z)
	}
	if name == "math" && p.formula == nil {
		p.formula = &formula{}
	}
	if p.formula != nil {
		if p.formula.start(name, attrs); closed && p.formula.end(name) {
			p.endFormula()
		}
		return
	}
	p.border(name)
	switch name {
	case "table":
		p.open = append(p.open, 0)
	case "td", "th":
		p.startCell(attrs)
	case "sup", "sub", "span", "a":
		if !closed {
			p.startInline(name, attrs)
		}
	case "option":
		if _, chosen := attrs["selected"]; chosen {
			p.line = append(p.line, checkBox(true)+" "...)
		}
	case "img":
		p.line = append(p.line, " "+attrs["alt"]+" "...)
	case "input":
		switch kind := strings.ToLower(attrs["type"]); kind {
		case "checkbox", "radio":
			_, checked := attrs["checked"]
			p.line = append(p.line, checkBox(checked)+" "...)
		case "hidden", "password":
		default:
			p.line = append(p.line, " "+attrs["value"]+" "...)
		}
	case "li":
		p.bullet = true
	case "pre":
		p.pre++
	}
}

// htmlDescribed are the elements whose attributes are read.
var htmlDescribed = content.SetOf("math td th sup sub span a img input option")

// tagAttributes returns the attributes of the current tag.
func tagAttributes(z *html.Tokenizer) map[string]string {
	all := map[string]string{}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		all[string(key)] = withoutMarks.Replace(string(value))
	}
	return all
}

// startCell starts a cell after the columns that cells of rows above cover, and covers its own.
func (p *page) startCell(attrs map[string]string) {
	for at := len(p.cells); at < len(p.spans) && p.spans[at] > 0; at++ {
		p.spans[at]--
		p.cells = append(p.cells, nil)
	}
	p.at, p.own = len(p.cells), p.own+1
	rows, _ := strconv.Atoi(attrs["rowspan"])
	columns, _ := strconv.Atoi(attrs["colspan"])
	columns = max(1, min(columns, maxRepeat, maxColumns-p.at))
	p.cells = append(p.cells, make([][]string, columns)...)
	if rows = min(rows, maxRepeat); rows > 1 && len(p.cells) <= maxColumns {
		if more := len(p.cells) - len(p.spans); more > 0 {
			p.spans = append(p.spans, make([]int, more)...)
		}
		for at := p.at; at < len(p.cells); at++ {
			p.spans[at] = rows - 1
		}
	}
}

// startInline starts a script or a link.
func (p *page) startInline(name string, attrs map[string]string) {
	e := inline{name: name, at: len(p.line)}
	mark, raised := rune(0), htmlRaised().FindStringSubmatch(attrs["style"])
	switch {
	case name == "sup", len(raised) > 0 && raised[1] == "super":
		mark = superscript
	case name == "sub", len(raised) > 0 && raised[1] == "sub":
		mark = subscript
	case name == "a" && htmlAddress().MatchString(attrs["href"]):
		e.link = address(attrs["href"])
	}
	if mark != 0 {
		p.line, e.end = utf8.AppendRune(p.line, mark), string(mark+toEnd)
	}
	if len(p.inline) < maxDepth {
		p.inline = append(p.inline, e)
	}
}

// endInline ends the innermost open element of a name.
func (p *page) endInline(name string) {
	for i := len(p.inline) - 1; i >= 0; i-- {
		if e := p.inline[i]; e.name == name {
			p.line = append(p.line, e.end+linked(string(p.line[e.at:]), e.link)...)
			p.inline = slices.Delete(p.inline, i, i+1)
			return
		}
	}
}

// endFormula adds the text of an open formula to the line.
func (p *page) endFormula() {
	if p.formula != nil {
		p.line = append(p.line, p.formula.text()...)
		p.formula = nil
	}
}

// border ends the row or line at which an element starts or ends.
func (p *page) border(name string) {
	switch {
	case name == "table":
		p.endRow()
		p.spans = nil
	case name == "tr":
		p.endRow()
	case htmlBlocks[name]:
		p.endLine()
	}
}

func (p *page) end(name string) {
	if p.skipped != "" {
		if name == p.skipped {
			if p.nested--; p.nested == 0 {
				p.skipped = ""
			}
		}
		return
	}
	if htmlBlocks[name] {
		p.endFormula()
	}
	if p.formula != nil {
		if p.formula.end(name) {
			p.endFormula()
		}
		return
	}
	p.border(name)
	p.endInline(name)
	switch {
	case name == "li":
		p.bullet = false
	case name == "pre" && p.pre > 0:
		p.pre--
	case name == "table" && len(p.open) > 0:
		p.open = p.open[:len(p.open)-1]
	}
}

// endLine ends a block. In a table cell the block becomes a part of the line of its row.
func (p *page) endLine() {
	raw := string(p.line)
	p.line = p.line[:0]
	for i := range p.inline {
		p.inline[i].at = 0
	}
	line := collapsed(raw)
	if line == "" {
		return
	}
	if p.bullet {
		line, p.bullet = "- "+line, false
	}
	switch {
	case len(p.cells) > 0:
		p.cells[p.at] = append(p.cells[p.at], line)
	case p.row != nil:
	case p.pre > 0:
		p.b.addRaw(strings.TrimRight(resolved(raw), " \t\r\n"))
	default:
		p.b.add("", line)
	}
}

// endRow ends a table row. Its cells become one line; a row with one cell, as in tables for layout, keeps its lines.
func (p *page) endRow() {
	p.endLine()
	cells, single := p.cells, p.own == 1 && (len(p.cells[p.at]) != 1 || p.at == 0)
	p.cells, p.own = nil, 0
	if len(cells) == 0 {
		return
	}
	for at := len(cells); at < len(p.spans); at++ {
		p.spans[at] = max(p.spans[at]-1, 0)
	}
	if p.row != nil {
		p.endRecord(cells)
		return
	}
	if single {
		for _, line := range cells[p.at] {
			p.b.add("", line)
		}
		return
	}
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = strings.Join(c, " ")
	}
	p.b.add("", joined(all))
}

// endRecord passes a row on, unless it is in no table.
func (p *page) endRecord(cells [][]string) {
	if len(p.open) == 0 {
		return
	}
	table := &p.open[len(p.open)-1]
	if *table == 0 {
		p.tables++
		*table = p.tables
	}
	all := make([][]byte, len(cells))
	for i, c := range cells {
		all[i] = []byte(strings.Join(c, " "))
	}
	p.b.fail(p.row(*table, all))
}
