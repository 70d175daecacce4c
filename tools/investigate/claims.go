package investigate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
)

// lookUp looks up the citations of texts about a directory, appends them to all and repairs the lines of those that
// moved.
func (w *work) lookUp(all *[]evidence.Citation, dir string, texts ...*string) {
	for _, text := range texts {
		*text = strings.ReplaceAll(*text, w.target+"/", "") // citations are below the target
		found := evidence.Check(*text, dir, w.reader())
		*text = evidence.Repair(*text, found)
		*all = append(*all, found...)
	}
}

// dirOf returns the directory from which the citations of a text about a path are looked up.
func (w *work) dirOf(p string) string {
	switch {
	case w.dirs[p] != nil:
		return p
	case p == "general":
		return "."
	}
	return path.Dir(p)
}

// claim holds the texts of one entry with the citations that were looked up when it was kept.
type claim struct {
	entry, dir, by string
	texts          []*string
	before         []evidence.Citation
}

// recheck looks up the citations of everything that was handed in as the files are now, and those of mechanical notes
// if all is set.
func (w *work) recheck(all bool, visit func(c claim, now []evidence.Citation)) error {
	check := func(c claim) {
		if c.by == entries.Mechanical && !all {
			return
		}
		var now []evidence.Citation
		for _, text := range c.texts {
			now = append(now, evidence.Check(*text, c.dir, w.reader())...)
		}
		visit(c, now)
	}
	flags, err := w.flags()
	if err != nil {
		return err
	}
	for _, p := range sorted(w.notes) {
		n := w.notes[p]
		check(claim{p, p, n.By, n.Texts(), n.Evidence})
	}
	for _, p := range sorted(w.files) {
		f := w.files[p]
		check(claim{p, path.Dir(p), f.By, f.Texts(), f.Evidence})
	}
	for _, f := range flags {
		check(claim{"flag on " + f.Path, w.dirOf(f.Path), "", []*string{&f.Finding}, f.Evidence})
	}
	if r, ok := w.reports().readReport(); ok {
		check(claim{"report", ".", r.By, []*string{&r.Brief, &r.Detailed}, r.Evidence})
	}
	check(claim{"survey and plan", ".", "", append(w.survey.texts(), w.plan.Texts()...), nil})
	return nil
}

// held reports whether a citation held when its entry was kept.
func (c claim) held(now evidence.Citation) bool {
	return slices.ContainsFunc(c.before, func(b evidence.Citation) bool {
		return fileOf(b) == fileOf(now) && b.Quote == now.Quote &&
			(b.Verdict == evidence.Holds || b.Verdict == evidence.Moved)
	})
}

// fileOf returns the file of a citation as it is written: a gone one resolves to nothing.
func fileOf(c evidence.Citation) string {
	return c.Cited[:max(strings.LastIndexByte(c.Cited, ':'), 0)]
}

// absentText lists the citations of what was handed in that are not there.
func (w views) absentText() (string, error) {
	var b strings.Builder
	err := w.recheck(false, func(c claim, now []evidence.Citation) {
		for _, x := range now {
			if x.Verdict == evidence.Absent {
				fmt.Fprintf(&b, "%s: %s: %s\n", shown(c.entry), citedText(x), x.Reason)
			}
		}
	})
	return cmp.Or(b.String(), "no citation is absent\n"), err
}

// citedText is a citation with its quote in one line.
func citedText(c evidence.Citation) string {
	if c.Quote == "" {
		return oneLine(c.Cited)
	}
	return fmt.Sprintf("%s %q", oneLine(c.Cited), content.ClipEnd(c.Quote, 80))
}

// noEvidence is what an answer says of a note without citations.
const noEvidence = "evidence: none cited (file.go:12 \"quote\" is)\n"

// evidenceText is a line that says what looking up the citations gave, and names the first ones that do not hold; ""
// without citations.
func (k *kept) evidenceText() string {
	all := k.citations
	if len(all) == 0 {
		return ""
	}
	c := evidence.Count(all)
	text := fmt.Sprintf("evidence: %d of %d hold", c.Holds+c.Moved, len(all))
	named := 0
	for _, x := range all {
		if named == 2 || x.Verdict == evidence.Holds || x.Verdict == evidence.Unanchored {
			continue
		}
		named++
		cited := content.ClipEnd(x.Cited, 60)
		switch {
		case x.Verdict == evidence.Moved:
			text += fmt.Sprintf("; %s moved to :%d (repaired)", cited, x.Line)
		case x.Verdict == evidence.Unknown:
			text += fmt.Sprintf("; %s cannot be checked", cited)
		case x.Quote != "":
			text += fmt.Sprintf("; %s %q is not there: cite it or drop it", cited, content.ClipEnd(x.Quote, 50))
		default:
			text += fmt.Sprintf("; %s is not there", cited)
		}
	}
	if c.Unanchored > 0 {
		text += fmt.Sprintf("; %d without a quote prove nothing", c.Unanchored)
	}
	return text + "\n"
}
