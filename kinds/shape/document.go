package shape

import (
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// document summarises JSON and NDJSON.
type document struct {
	kind  content.Kind
	scan  scan
	check *jsontrunc.Checker // shares the scanner with scan, except for NDJSON: scan continues after a broken line
	begun bool
	mark  int // length of the byte order mark in bytes
}

// NewDocument returns the summarizer of a kind of JSON, or of a table.
func NewDocument(k content.Kind) *document {
	d := &document{kind: k, check: jsontrunc.NewChecker()}
	if d.lines() {
		d.scan = newScan(newShape(true), nil)
	} else {
		d.scan = newScan(newShape(false), d.check)
	}
	return d
}

// lines reports whether the text is a sequence of values.
func (d *document) lines() bool { return d.kind == content.NDJSON }

func (d *document) Add(p []byte) {
	text := p
	if !d.begun {
		text = digest.WithoutMark(p)
		d.begun = true
		d.mark = len(p) - len(text)
		_, _ = d.check.Write(p[:d.mark])
	}
	d.scan.write(text)
	if d.lines() {
		_, _ = d.check.Write(text)
	}
}

func (d *document) Finish(s *digest.Summary) {
	report := d.check.Close() // before scan.close, which ends the text for a shared scanner
	d.scan.close()
	shape := d.scan.shape
	shape.abandon()
	if report.State == jsontrunc.Cut || report.State == jsontrunc.Broken {
		s.Cut = &report
	}
	var records *collection // the records that slice can address
	for _, c := range shape.collections {
		if c.top {
			records = c
		}
	}
	shown, listed := records, records
	if records == nil {
		shown = shape.largest(shapeDepth)
		listed = shape.largest(filesDepth)
	}
	shape.root.inferMaps()
	d.count(s, records, shown)
	d.countFiles(s, listed, records != nil)
	s.Says = d.breaks(s.Cut, records)
	if line := shown.rareLine(); line != "" {
		s.Says = append(s.Says, line)
	}
	if s.Files >= 0 {
		if line := listed.files.TopLine(); line != "" {
			s.Body = append(s.Body, line)
		}
	}
	if line := shown.firstLine(); line != "" {
		s.Body = append(s.Body, line)
		if shown.start > 0 && !d.lines() {
			s.First = digest.First{Line: line, Offset: shown.start + int64(d.mark)}
		}
	}
	top, word := "", ""
	if records != nil {
		word = "record"
	}
	if shape.outer() != nil {
		top = "[" + digest.Number(records.n) + "] "
	}
	if shape.root.types() != "" {
		s.Shapes = shapes(details, &shape.root, top, "null", word)
		s.Examples = shapes(exampleDetails, &shape.root, top, "null", word)
		s.Form = form.write(&shape.root, "", "null", word)
	}
}

// count sets Records and Total.
func (d *document) count(s *digest.Summary, records, shown *collection) {
	if records == nil {
		o := d.scan.shape.root.object
		if o != nil && o.each == nil {
			total := content.Plural(int64(o.seen()), "key", "keys")
			if shown != nil && shown.n > 0 {
				total += ", " + content.Plural(shown.n, "element", "elements") + " at " +
					content.Clip(content.VisibleLine(shown.pointer), digest.NameRunes)
			}
			s.Total = append(s.Total, total)
		}
		if shown != nil && shown.n > 0 && shown.of.object != nil {
			setFilter(s, shown)
		}
		return
	}
	s.Records = records.n
	if !d.lines() {
		s.Filter = records.filter
	}
	one, more := "element", "elements"
	if d.lines() {
		one, more = "record", "records"
	}
	if s.Cut != nil {
		one, more = "complete "+one, "complete "+more
	}
	s.Total = append(s.Total, content.Plural(records.n, one, more))
	if d.scan.broken > 0 {
		s.Total = append(s.Total, content.Plural(d.scan.broken, "line is", "lines are")+" not JSON")
	}
}

// setFilter sets the filter of the elements of c, which is inside an object. jq gives no results for an object that
// breaks off.
func setFilter(s *digest.Summary, c *collection) {
	if s.Cut == nil && len(c.filter) <= digest.NameRunes {
		s.Filter = c.filter
	}
}

// countFiles sets Matches and Files and adds them to Total, if most elements of c name a file. In a top-level
// collection they replace the number of elements.
func (d *document) countFiles(s *digest.Summary, c *collection, top bool) {
	if c == nil || c.of.object == nil || !c.files.MostOf(c.n) {
		return
	}
	s.Matches, s.Files = c.files.Elements, c.files.Distinct()
	total, list := c.files.Total()
	if top && (list || c.files.Others > 0) {
		total = s.Total[0] + ", " + total
	}
	if s.Cut != nil {
		total += " before the break"
	}
	if top {
		s.Total[0] = total
		return
	}
	s.Total = append(s.Total, total)
	setFilter(s, c)
}

// breaks describes the position and reason of a break in the text.
func (d *document) breaks(r *jsontrunc.Report, records *collection) []string {
	if r == nil {
		return nil
	}
	verb := "breaks off at byte "
	if r.State == jsontrunc.Broken {
		verb = "broken at byte "
	}
	first := verb + digest.Number(r.Offset)
	if r.Inside != "" {
		first += ", inside " + r.Inside
	}
	if r.Pointer != "" {
		first += " at " + content.Clip(content.VisibleLine(r.Pointer), digest.LineRunes)
	}
	if r.Reason != "" {
		first += ": " + content.Clip(r.Reason, digest.LineRunes)
	}
	switch {
	case d.lines():
		first += "; " + content.Plural(r.Values, "complete record", "complete records") + " before it"
	case records != nil:
		first += "; " + content.Plural(records.n, "complete element", "complete elements")
	case r.Elements > 0:
		first += "; " + content.Plural(r.Elements, "complete element", "complete elements")
	}
	if d.scan.broken > 0 {
		first += "; line " + digest.Number(d.scan.first) + " is not JSON"
		if d.scan.broken > 1 {
			first += " (the first of " + digest.Number(d.scan.broken) + ")"
		}
		first += "; shape and counts are of the other lines"
	} else {
		first += "; shape and counts are of what stands before"
	}
	says := []string{first}
	if r.Last != "" {
		says = append(says, fmt.Sprintf("last complete: %s (bytes %d-%d): %s",
			content.VisibleLine(r.LastPointer), r.LastStart, r.LastEnd-1, content.Clip(r.Last, digest.PieceRunes)))
	}
	if r.Piece != "" {
		says = append(says, fmt.Sprintf("cut-off piece (from byte %d): %s",
			r.PieceStart, content.Clip(r.Piece, digest.PieceRunes)))
	}
	return says
}
