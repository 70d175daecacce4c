package investigate

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// answer takes the note of a call, or shows an order again.
func (w *work) answer(a Args) error {
	if err := w.load(true); err != nil {
		return err
	}
	var o entries.Order
	if a.Order != "" {
		id, _ := entries.ParseOrder(a.Order)
		var ok bool
		var err error
		if o, ok, err = w.inv.Order(id); err != nil {
			return err
		}
		if !ok {
			return unknownOrder(a.Order, entries.ErrUnknown)
		}
		if a.Note == "" {
			return w.again(o)
		}
	}
	n, err := parseNote(a.Note)
	if err != nil {
		return err
	}
	n.by = entries.Agent
	first, more := "", true
	if a.Order == "" {
		k := &kept{}
		first, err = w.acceptance().acceptPlan(n.Plan, nil, n.by, k)
		first += k.evidenceText()
	} else {
		first, more, err = w.acceptance().accept(o, n)
	}
	switch {
	case err != nil:
		return err
	case more:
		return w.next(first)
	}
	return w.out.Page().Text([]byte(first))
}

// again shows an order that was given out before.
func (w *work) again(o entries.Order) error {
	if o.Answered != nil {
		return fmt.Errorf("%s was answered at %s: investigate without order gives out the next one", o.Name(),
			o.Answered.Format("2006-01-02 15:04:05 MST"))
	}
	for _, d := range o.Dirs {
		if w.dirs[d.Path] == nil {
			return fmt.Errorf("%s: its directory %s is gone; investigate without order gives out the next one", o.Name(), d.Path)
		}
	}
	text := w.wording().orderText(o)
	w.attach(o)
	return w.out.Page().Text([]byte(text))
}

// acceptance checks and keeps what a call hands in.
type acceptance struct{ *work }

func (w *work) acceptance() acceptance { return acceptance{w} }

// accept keeps a note. first is what the answer begins with; more says that the next order follows.
func (w acceptance) accept(o entries.Order, n Note) (first string, more bool, err error) {
	if n.Thoughts != "" {
		w.inv.Log("%s thoughts: %s", o.Name(), content.ClipBytes(n.Thoughts, 4000))
	}
	if o.Answered != nil {
		w.inv.Log("%s late note: %s", o.Name(), content.ClipBytes(fmt.Sprintf("%+v", n), 4000))
		return o.Name() + " was answered already: this note is in the log, and changes nothing.\n", true, nil
	}
	more = true
	k := &kept{}
	switch o.Step {
	case entries.Planning:
		if n.Plan == nil && n.Survey == nil {
			return "", false, errors.New("the note: this order asks for {survey, plan}")
		}
		first, err = w.acceptPlan(n.Plan, n.Survey, n.by, k)
	case entries.Reporting:
		if n.Report == nil {
			return "", false, errors.New("the note: this order asks for {report: {brief, detailed}}")
		}
		first, err = w.reports().acceptReport(o, n, k)
	default:
		more, err = w.acceptDirs(&o, n, k)
	}
	if err == nil {
		err = w.acceptFlags(&o, n, k)
	}
	if err != nil {
		return "", false, err
	}
	w.noteProblems(k)
	if o.Step == entries.Directory {
		first = w.keptText(&o, n, k, !more)
	} else {
		if first += k.evidenceText(); len(k.citations) == 0 && o.Step == entries.Reporting {
			first += noEvidence
		}
		if len(n.Flags) > 0 {
			first += "kept: " + content.Plural(int64(len(n.Flags)), "flag", "flags") + ".\n"
		}
	}
	if len(o.Open) == 0 && more {
		now := w.now().UTC()
		o.Answered = &now
	}
	if n.turns > 0 { // completions of an endpoint
		o.Turns += n.turns
	} else {
		o.Turns = max(o.Turns, w.turnsOf(o)) // counts all calls since the order was given out
	}
	if err := w.inv.PutOrder(o); err != nil {
		return "", false, err
	}
	w.answered = o.Step
	if i := slices.IndexFunc(w.orders, func(x entries.Order) bool { return x.ID == o.ID }); i >= 0 {
		w.orders[i] = o
	}
	return first, more, nil
}

// acceptPlan keeps a plan and, unless it is nil, a survey. Finished notes are kept.
func (w acceptance) acceptPlan(p *plan.Plan, s *Survey, by string, k *kept) (string, error) {
	if s != nil {
		w.survey = *s
		w.lookUp(&k.citations, ".", w.survey.texts()...)
		if err := w.inv.Write(entries.SurveyName, w.survey); err != nil {
			return "", err
		}
	}
	if p == nil {
		p = &plan.Plan{} // the default
	} else {
		p.By = by
		w.lookUp(&k.citations, ".", p.Texts()...)
	}
	if err := w.inv.Write(entries.PlanName, p); err != nil {
		return "", err
	}
	w.plan, w.planned = *p, true
	w.apply()
	w.inv.Log("plan accepted: %d orders", len(w.applied.Units))
	orders := content.Plural(int64(len(w.applied.Units)), "order", "orders")
	text := fmt.Sprintf("plan accepted: %s, ~%d tokens to read", orders, w.price(w.applied.Units))
	if n := len(w.applied.Skipped); n > 0 {
		text += fmt.Sprintf("; %s skipped", content.Plural(int64(n), "directory", "directories"))
	}
	if n := len(w.applied.Unknown); n > 0 {
		text += "; not found and ignored: " + content.ClipEnd(oneLine(strings.Join(w.applied.Unknown, ", ")), 200)
	}
	if len(w.applied.Units) == 0 {
		text += "; nothing is left to look at"
	}
	return text + "\n", nil
}

// kept collects what became of the parts of a note.
type kept struct {
	dirs      []string
	files     int
	problems  []string // in words
	settled   bool     // a directory needs no note any more: it is gone, or another order had it
	citations []evidence.Citation
}

// acceptDirs keeps what a note says of the directories and files of an order. more is false if the note says that the
// rest of it follows.
func (w acceptance) acceptDirs(o *entries.Order, n Note, k *kept) (more bool, err error) {
	open := n.Done != nil && !*n.Done
	if len(n.Dirs) == 0 && !open && n.partial == "" {
		return false, fmt.Errorf("the note: dirs is missing: one element for each of %s (or done: false, to hand in flags and files first)",
			content.ClipBytes(strings.Join(o.Open, ", "), 300))
	}
	base := o.Dirs[0].Path
	named := map[string]bool{}
	for _, d := range n.Dirs { // before anything is kept
		if err := w.refusePasted(d.Summary, base, d.Path); err != nil {
			return false, err
		}
		p, _ := w.resolvePath(d.Path, base)
		if named[p] {
			return false, fmt.Errorf("the note: dirs names %s twice", content.ClipBytes(d.Path, 80))
		}
		named[p] = true
	}
	for _, f := range n.Files {
		if err := w.refusePasted(f.Summary, base, f.Path); err != nil {
			return false, err
		}
	}
	for _, d := range n.Dirs {
		if err := w.acceptDir(o, n, d, k); err != nil {
			return false, err
		}
	}
	if len(n.Dirs) > 0 && len(k.dirs) == 0 && !k.settled {
		return false, fmt.Errorf("the note: nothing was kept: %s; this order is for %s", strings.Join(k.problems, "; "),
			content.ClipBytes(strings.Join(o.Open, ", "), 300))
	}
	if err := w.acceptFiles(o, n, k); err != nil {
		return false, err
	}
	w.inv.Log("note %s kept %s", o.Name(), strings.Join(k.dirs, ", "))
	return !open || len(o.Open) == 0, nil // with a note on each directory it is whole
}

// pastedLines is how many lines of a file in a row make a summary a copy.
const pastedLines = 6

// refusePasted refuses a summary that holds consecutive lines of the file, or of one of the directory, that it is on.
func (w acceptance) refusePasted(summary, base, p string) error {
	lines := trimmedLines(summary)
	if len(lines) < pastedLines {
		return nil
	}
	at, _ := w.resolvePath(p, base)
	files := []string{at}
	if d := w.dirs[at]; d != nil {
		files = nil
		for _, f := range d.files {
			files = append(files, f.Path)
		}
	}
	for _, name := range files {
		text, err := w.reader().Read(name)
		if err != nil {
			continue
		}
		bare := "\n" + strings.Join(trimmedLines(strings.TrimSuffix(string(text), "\n")), "\n") + "\n"
		for i := 0; i+pastedLines <= len(lines); i++ {
			part := "\n" + strings.Join(lines[i:i+pastedLines], "\n") + "\n"
			if strings.TrimSpace(part) != "" && strings.Contains(bare, part) {
				return fmt.Errorf("the note: the summary of %s holds %d or more lines of %s in a row: summaries only, "+
					"cite lines instead", content.ClipBytes(p, 80), pastedLines, content.ClipBytes(name, 80))
			}
		}
	}
	return nil
}

func trimmedLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

func (w acceptance) acceptDir(o *entries.Order, n Note, d NoteDir, k *kept) error {
	p, ok := w.resolvePath(d.Path, o.Dirs[0].Path)
	dir := w.dirs[p]
	if !o.Has(p) {
		k.problems = append(k.problems, content.ClipBytes(d.Path, 80)+" is not part of this order")
		return nil
	}
	done := func() { o.Open = slices.DeleteFunc(o.Open, func(x string) bool { return x == p }) }
	if !ok || dir == nil {
		k.settled = true
		k.problems = append(k.problems, p+" is gone")
		done()
		return nil
	}
	before := w.notes[p]
	others := before.By != entries.Mechanical && before.Order != "" && before.Order != o.ID
	if others && before.CachedAt.After(o.IssuedAt) && !w.queue().due(p) {
		k.problems = append(k.problems, p+" was answered by another order meanwhile; this summary is in the log")
		w.inv.Log("%s late summary of %s: %s", o.Name(), p, d.Summary)
		k.settled = true
		done()
		return nil
	}
	if d.Unchanged && d.Summary == "" {
		if _, own := w.fresh(p); !own || before.By == entries.Mechanical {
			k.problems = append(k.problems, p+": unchanged does not hold: write its summary")
			return nil
		}
		d.Summary, d.StillUnknown = before.Summary, first(d.StillUnknown, before.StillUnknown)
		d.DominantCategory = first(d.DominantCategory, before.DominantCategory)
		if d.NotableFiles == nil {
			d.NotableFiles = before.NotableFiles
		}
		d.Confidence = cmp.Or(d.Confidence, n.Confidence, before.Confidence)
		d.Completeness = cmp.Or(d.Completeness, n.Completeness, before.Completeness)
		d.ConfidenceReason = first(d.ConfidenceReason, before.ConfidenceReason)
	}
	note := w.newEntry(dir, "")
	note.Summary, note.NotableFiles, note.StillUnknown = d.Summary, d.NotableFiles, first(d.StillUnknown, n.StillUnknown)
	note.DominantCategory = cmp.Or(d.DominantCategory, note.DominantCategory)
	note.Confidence, note.Completeness = cmp.Or(d.Confidence, n.Confidence), cmp.Or(d.Completeness, n.Completeness)
	note.ConfidenceReason, note.Coverage = first(d.ConfidenceReason, n.ConfidenceReason), w.covered().coverage(p)
	w.lookUp(&note.Evidence, p, note.Texts()...)
	note.By, note.Order, note.Partial, note.PartialReason = n.by, o.ID, n.partial != "", n.partial
	if print := o.Print(p); print != "" && print != note.Fingerprint {
		note.Fingerprint = print // what was read is not what is there now: it stays due
		k.problems = append(k.problems, p+" changed since the order was given out, and is due again")
	}
	stored, err := w.inv.PutDir(note)
	if err != nil {
		return err
	}
	if !stored {
		k.problems = append(k.problems, p+": a whole note is there, a partial one does not replace it")
	} else {
		w.notes[p] = note
	}
	k.dirs = append(k.dirs, p)
	k.citations = append(k.citations, note.Evidence...)
	done()
	return nil
}

// first returns the first text that is not empty, clipped.
func first(texts ...string) string { return content.Clip(cmp.Or(texts...), maxShort) }

func (w acceptance) acceptFiles(o *entries.Order, n Note, k *kept) error {
	base := o.Dirs[0].Path
	for _, f := range n.Files {
		p, ok := w.resolvePath(f.Path, base)
		file := w.file(p)
		if !ok || file == nil || !o.Has(path.Dir(p)) {
			k.problems = append(k.problems, content.ClipBytes(f.Path, 80)+" is no file of this order")
			continue
		}
		e := entries.File{
			Path: filepath.Join(w.target, filepath.FromSlash(p)), RelativePath: p, SizeBytes: file.Size,
			Category: first(f.Category, file.Category), Summary: f.Summary, Notable: f.Notable,
			NotableReason: f.NotableReason, CachedAt: w.now().UTC(),
			Quality: entries.Quality{
				Confidence: cmp.Or(f.Confidence, n.Confidence), Completeness: cmp.Or(f.Completeness, n.Completeness),
				ConfidenceReason: f.ConfidenceReason, By: n.by, Order: o.ID, Fingerprint: file.Hash,
			},
		}
		w.lookUp(&e.Evidence, path.Dir(p), e.Texts()...)
		if _, err := w.inv.PutFile(e); err != nil {
			return err
		}
		w.files[p] = e
		k.files++
		k.citations = append(k.citations, e.Evidence...)
	}
	return nil
}

func (w acceptance) acceptFlags(o *entries.Order, n Note, k *kept) error {
	if len(n.Flags) == 0 {
		return nil
	}
	base := "."
	if len(o.Dirs) > 0 { // else the order is for a plan or a report
		base = o.Dirs[0].Path
	}
	var flags []entries.Flag
	for _, f := range n.Flags {
		p, ok := f.Path, true
		if p != "general" {
			p, ok = w.resolvePath(p, base)
		}
		if !ok {
			k.problems = append(k.problems, "flag: "+content.ClipBytes(f.Path, 80)+" is not there, kept as general")
			p = "general"
		}
		flag := entries.Flag{
			Path: p, Severity: f.Severity, Finding: strings.Join(strings.Fields(f.Finding), " "), At: w.now().UTC(), Order: o.ID,
		}
		w.lookUp(&flag.Evidence, w.dirOf(p), &flag.Finding)
		k.citations = append(k.citations, flag.Evidence...)
		flags = append(flags, flag)
	}
	return w.inv.AddFlags(flags...)
}

// maxProblems is how many problems an answer names.
const maxProblems = 3

// noteProblems adds notes on the problems of a note.
func (w acceptance) noteProblems(k *kept) {
	for _, p := range k.problems[:min(len(k.problems), maxProblems)] {
		w.out.Note(content.ClipEnd(p, 120))
	}
	if more := len(k.problems) - maxProblems; more > 0 {
		w.out.Note(fmt.Sprintf("and %d more problems", more))
	}
}

// keptText is what an answer says of the note before: at most 150 tokens.
func (w acceptance) keptText(o *entries.Order, n Note, k *kept, open bool) string {
	var b strings.Builder
	b.WriteString("kept: ")
	switch {
	case len(k.dirs) == 0:
		fmt.Fprintf(&b, "%s, %s", content.Plural(int64(len(n.Flags)), "flag", "flags"),
			content.Plural(int64(k.files), "file", "files"))
	case len(k.dirs) == 1:
		b.WriteString(content.ClipEnd(k.dirs[0], 80))
	default:
		fmt.Fprintf(&b, "%s and %d more", content.ClipEnd(k.dirs[0], 80), len(k.dirs)-1)
	}
	b.WriteString(". " + cmp.Or(k.evidenceText(), noEvidence))
	if len(k.dirs) > 0 {
		b.WriteString(w.covered().coverageText(k.dirs, n.Completeness))
	}
	switch {
	case open:
		fmt.Fprintf(&b, "%s stays yours: hand in its note when it is whole.\n", o.Name())
	case len(o.Open) > 0:
		fmt.Fprintf(&b, "still open in %s: %s\n", o.Name(), content.ClipEnd(oneLine(strings.Join(o.Open, ", ")), 200))
	}
	return b.String()
}

// showPage shows as much of a text as fits a page, up to a line end. A longer text ends with the exact next call.
func (w *work) showPage(text string, next tools.Call) error {
	page := w.out.Page()
	fits := len(text)
	if w.in.BytesThatFit != nil {
		fits = min(fits, w.in.BytesThatFit([]byte(text)))
	}
	if cut := strings.LastIndexByte(text[:fits], '\n'); fits < len(text) && cut > 0 {
		fits = cut + 1
	}
	if err := page.Text([]byte(text[:fits])); err != nil {
		return err
	}
	if fits < len(text) {
		page.SetTextRange("bytes", 0, int64(fits)-1, int64(len(text)))
		page.Next(next)
	}
	return nil
}
