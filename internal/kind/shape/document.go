package shape

import (
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/jsontrunc"
	"github.com/mcp-funnel/mcp-funnel/internal/kind/digest"
)

// document summarises JSON and NDJSON.
type document struct {
	kind  content.Kind
	scan  scan
	check *jsontrunc.Checker // for JSON, and shares the scanner with scan; nil for NDJSON
	tail  tail               // for NDJSON
	begun bool
	mark  int // length of the byte order mark in bytes
}

func NewDocument(k content.Kind) *document {
	d := &document{kind: k}
	if k != content.NDJSON {
		d.check = jsontrunc.NewChecker()
	}
	d.scan = newScan(newShape(d.check == nil), d.check)
	return d
}

func (d *document) Add(p []byte) {
	text := p
	if !d.begun {
		text = digest.WithoutMark(p)
		d.begun = true
		d.mark = len(p) - len(text)
		if d.check != nil {
			_, _ = d.check.Write(p[:d.mark])
		}
	}
	d.scan.write(text)
	if d.check == nil {
		d.tail.add(p, &d.scan, d.mark)
	}
}

func (d *document) Finish(s *digest.Summary) {
	var report jsontrunc.Report
	if d.check == nil {
		report = d.tail.close()
	} else {
		report = d.check.Close() // before scan.close, which ends the text for the shared scanner
	}
	d.scan.close()
	shape := d.scan.shape
	shape.abandon()
	if report.State == jsontrunc.Cut || report.State == jsontrunc.Broken {
		s.Cut = &report
	}
	records := shape.outer()
	var most *collection
	for _, c := range shape.collections {
		if most == nil || c.n > most.n {
			most = c
		}
		if c.top {
			records = c
		}
	}
	d.count(s, records, most)
	word := ""
	if records != nil {
		word = "record"
	}
	s.Says = d.breaks(s.Cut, records)
	if line := shape.files.TopLine(); line != "" && s.Files >= 0 {
		s.Body = append(s.Body, line)
	}
	s.Body = append(s.Body, most.lines()...)
	shape.root.inferMaps()
	top := ""
	if shape.outer() != nil {
		top = "[" + digest.Number(records.n) + "] "
	}
	if shape.root.types() != "" {
		s.Shapes = shapes(&shape.root, top, "null", word)
	}
}

// count sets Records, Matches, Files and Total.
func (d *document) count(s *digest.Summary, records, most *collection) {
	if records == nil {
		o := d.scan.shape.root.object
		if o != nil && o.each == nil {
			total := content.Plural(int64(o.seen()), "key", "keys")
			if most != nil && most.n > 0 {
				total += ", " + content.Plural(most.n, "element", "elements") + " at " + content.Clip(
					content.VisibleLine(most.pointer), digest.NameRunes,
				)
			}
			s.Total = append(s.Total, total)
		}
		return
	}
	s.Records = records.n
	one, more := "element", "elements"
	if d.kind == content.NDJSON {
		one, more = "record", "records"
	}
	if s.Cut != nil {
		one, more = "complete "+one, "complete "+more
	}
	total := content.Plural(records.n, one, more)
	f := d.scan.shape.files
	if f.Elements > 0 && f.Elements*2 >= records.n && records.of.object != nil {
		s.Matches, s.Files = f.Elements, f.Distinct()
		key := f.Key()
		switch {
		case s.Files < 0:
			total = content.Plural(f.Elements, "match", "matches")
		case key == "file" || key == "filename" || s.Files < f.Elements:
			total = content.Plural(f.Elements, "match", "matches") + " in " + content.Plural(s.Files, "file", "files")
		default: // a list of files, in which each file occurs once
			total += ", " + content.Plural(s.Files, key, key+"s")
		}
		if s.Cut != nil {
			total += " before the break"
		}
	}
	s.Total = append(s.Total, total)
	if d.scan.broken > 0 {
		s.Total = append(s.Total, content.Plural(d.scan.broken, "line is", "lines are")+" not JSON")
	}
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
	case d.kind == content.NDJSON:
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
		says = append(
			says,
			"last complete: "+content.VisibleLine(r.LastPointer)+" (bytes "+digest.Number(r.LastStart)+"-"+digest.Number(r.LastEnd-1)+"): "+content.Clip(r.Last, digest.PieceRunes),
		)
	}
	if r.Piece != "" {
		says = append(
			says, "cut-off piece (from byte "+digest.Number(r.PieceStart)+"): "+content.Clip(r.Piece, digest.PieceRunes),
		)
	}
	return says
}
