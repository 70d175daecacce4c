package summary

import (
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/cutoff"
)

// document summarises JSON and NDJSON.
type document struct {
	kind  content.Kind
	scan  scan
	check *cutoff.Checker // of JSON: it reads with scan
	tail  tail            // of NDJSON
	begun bool
	mark  int // bytes of a byte order mark
}

func newDocument(k content.Kind) *document {
	d := &document{kind: k}
	if k != content.NDJSON {
		d.check = cutoff.NewChecker()
	}
	d.scan = newScan(newShape(d.check == nil), d.check)
	return d
}

func (d *document) write(p []byte) {
	text := p
	if !d.begun {
		text = withoutMark(p)
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

func (d *document) close(s *Summary) {
	var report cutoff.Report
	if d.check == nil {
		report = d.tail.close()
	} else {
		report = d.check.Close() // before the end of the text is told its scanner
	}
	d.scan.close()
	shape := d.scan.shape
	shape.abandon()
	if report.State == cutoff.Cut || report.State == cutoff.Broken {
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
	if line := shape.files.topLine(); line != "" && s.Files >= 0 {
		s.Body = append(s.Body, line)
	}
	s.Body = append(s.Body, most.lines()...)
	shape.root.settle()
	top := ""
	if shape.outer() != nil {
		top = "[" + number(records.n) + "] "
	}
	if shape.root.kinds() > 0 {
		s.Shapes = shapes(&shape.root, top, "null", word)
	}
}

// count fills in Records, Matches, Files and Total.
func (d *document) count(s *Summary, records, most *collection) {
	if records == nil {
		o := d.scan.shape.root.object
		if o != nil && o.each == nil {
			total := counted(int64(o.seen()), "key", "keys")
			if most != nil && most.n > 0 {
				total += ", " + counted(most.n, "element", "elements") + " at " + content.Clip(content.VisibleLine(most.pointer), nameRunes)
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
	total := counted(records.n, one, more)
	f := d.scan.shape.files
	if f.n > 0 && f.n*2 >= records.n && records.of.object != nil {
		s.Matches, s.Files = f.n, f.distinct()
		key := f.key()
		switch {
		case s.Files < 0:
			total = counted(f.n, "match", "matches")
		case key == "file" || key == "filename" || s.Files < f.n:
			total = counted(f.n, "match", "matches") + " in " + counted(s.Files, "file", "files")
		default: // a list of files: each stands once
			total += ", " + counted(s.Files, key, key+"s")
		}
		if s.Cut != nil {
			total += " before the break"
		}
	}
	s.Total = append(s.Total, total)
	if d.scan.broken > 0 {
		s.Total = append(s.Total, counted(d.scan.broken, "line is", "lines are")+" not JSON")
	}
}

// breaks words where the text breaks off.
func (d *document) breaks(r *cutoff.Report, records *collection) []string {
	if r == nil {
		return nil
	}
	verb := "breaks off at byte "
	if r.State == cutoff.Broken {
		verb = "broken at byte "
	}
	first := verb + number(r.Offset)
	if r.Inside != "" {
		first += ", inside " + r.Inside
	}
	if r.Pointer != "" {
		first += " at " + content.Clip(content.VisibleLine(r.Pointer), lineRunes)
	}
	if r.Reason != "" {
		first += ": " + content.Clip(r.Reason, lineRunes)
	}
	switch {
	case d.kind == content.NDJSON:
		first += "; " + counted(r.Values, "complete record", "complete records") + " before it"
	case records != nil:
		first += "; " + counted(records.n, "complete element", "complete elements")
	case r.Elements > 0:
		first += "; " + counted(r.Elements, "complete element", "complete elements")
	}
	switch {
	case d.scan.broken > 0:
		first += "; line " + number(d.scan.first) + " is not JSON"
		if d.scan.broken > 1 {
			first += " (the first of " + number(d.scan.broken) + ")"
		}
		first += "; shape and counts are of the other lines"
	default:
		first += "; shape and counts are of what stands before"
	}
	says := []string{first}
	if r.Last != "" {
		says = append(says, "last complete: "+content.VisibleLine(r.LastPointer)+" (bytes "+number(r.LastStart)+"-"+number(r.LastEnd-1)+"): "+content.Clip(r.Last, pieceRunes))
	}
	if r.Piece != "" {
		says = append(says, "cut-off piece (from byte "+number(r.PieceStart)+"): "+content.Clip(r.Piece, pieceRunes))
	}
	return says
}
