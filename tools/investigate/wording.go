package investigate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

// Limits of an order's text in tokens. It is made smaller until it fits.
const (
	orderTokens = 680
	maxOrder    = 980
)

// detail is how much an order says. Each step down says less; the directories below give way last.
type detail struct {
	files    int // listed, the largest and those somebody wrote first
	outlines int // files whose outline is shown
	symbols  int // of one file
	below    int // characters of what is known of all directories below
	survey   int // characters of the survey
	notes    int // characters of the plan's notes
}

var details = []detail{
	{24, 5, 10, 1600, 500, 300}, {24, 3, 7, 1600, 300, 200}, {16, 2, 5, 1600, 200, 100}, {8, 1, 4, 1400, 100, 0},
	{4, 0, 0, 1000, 0, 0}, {0, 0, 0, 400, 0, 0},
}

// wording writes the texts of orders.
type wording struct{ *work }

func (w *work) wording() wording { return wording{w} }

// orderText returns the text of an order with as many details as fit 680 tokens. The order for a plan may have 980, and
// so may one with few details; the one with the fewest is returned in any case.
func (w wording) orderText(o entries.Order) (text string) {
	var sources []sourceOutline
	if o.Step == entries.Directory {
		sources = w.outlinesOf(o)
	}
	for n, d := range details {
		switch o.Step {
		case entries.Planning:
			text = w.planOrder(o, d)
		case entries.Reporting:
			text = w.reportOrder(o, d)
		default:
			text = w.directoryOrder(o, sources, d)
		}
		limit := orderTokens
		if n >= len(details)-2 || o.Step == entries.Planning {
			limit = maxOrder
		}
		if w.tokens(text) <= limit || n == len(details)-1 {
			break
		}
	}
	return text
}

// shown escapes hidden characters and line ends of a path. Notes may name a path in this form too.
func shown(p string) string { return content.VisibleLine(p) }

// listed is a path in a list: one with a comma stands between quotes.
func listed(p string) string {
	if strings.ContainsAny(p, `,"`) || strings.TrimSpace(p) != p {
		return strconv.Quote(p)
	}
	return shown(p)
}

// ask returns the part of a prompt that an order ends with: the whole shape of a note, unless the call handed in one of
// that shape.
func (w wording) ask(name string, o entries.Order) string {
	if w.silent {
		return ""
	}
	text := prompts.Work(name).Order
	if again := prompts.Work(name).Again; w.answered == o.Step && again != "" {
		text = again
	}
	return strings.ReplaceAll(text, "{{order}}", o.Name()) + "\n"
}

// goalText is the line of an order with the goal; "" without one.
func (w wording) goalText() string {
	if w.meta.Goal == "" {
		return ""
	}
	return "goal: " + content.ClipEnd(w.meta.Goal, 300) + "\n"
}

// directoryOrder is the text of an order on directories.
func (w wording) directoryOrder(o entries.Order, sources []sourceOutline, d detail) string {
	var b strings.Builder
	files, turns := 0, 0
	var tokens int64
	for _, a := range o.Dirs {
		turns = max(turns, a.Turns)
		files += len(w.dirs[a.Path].files)
		tokens += w.dirs[a.Path].Tokens
	}
	number, all := w.position()
	fmt.Fprintf(&b, "WORK ORDER %s (%d of ~%d): %s (%s; %d turns; ~%d tokens)\n", o.Name(), number, all, orderSubject(o),
		content.Plural(int64(files), "file", "files"), turns, tokens)
	var names []string
	for _, a := range o.Dirs {
		if slices.Contains(o.Open, a.Path) {
			names = append(names, listed(a.Path))
		}
	}
	b.WriteString("directories: " + strings.Join(names, ", ") + "\n")
	b.WriteString(w.goalText())
	var data strings.Builder // what files say and somebody wrote, to be fenced
	w.surveyText(&data, d)
	w.listing(&data, o, d)
	w.outlineText(&data, o, sources, d)
	b.WriteString(prompts.Fence(strings.TrimSuffix(data.String(), "\n")) + "\n")
	w.children(&b, o, d)
	for _, a := range o.Dirs {
		if fresh, own := w.fresh(a.Path); !fresh && own && w.notes[a.Path].By != entries.Mechanical {
			fmt.Fprintf(&b, "only directories below %s changed; its note was:\n%s\nunchanged: true in its element confirms it\n", shown(a.Path),
				prompts.Fence(content.ClipEnd(w.notes[a.Path].Summary, max(200, d.below/5))))
		}
	}
	b.WriteString(w.ask("directory", o))
	return b.String()
}

// position returns the number of the next order and of all, of those that were and will be given out for directories.
func (w wording) position() (number, all int) {
	open := len(w.queue().units())
	return len(w.applied.Units) - open + 1, max(len(w.applied.Units), 1)
}

func orderSubject(o entries.Order) string {
	if len(o.Dirs) == 1 {
		return shown(o.Dirs[0].Path)
	}
	isTop := func(d plan.Assigned) bool { return d.Path == "." || !o.Has(path.Dir(d.Path)) }
	if !slices.ContainsFunc(o.Dirs[1:], isTop) {
		return fmt.Sprintf("%s and %s below", shown(o.Dirs[0].Path),
			content.Plural(int64(len(o.Dirs)-1), "small directory", "small directories"))
	}
	return fmt.Sprintf("%s and %s", shown(o.Dirs[0].Path),
		content.Plural(int64(len(o.Dirs)-1), "other small directory", "other small directories"))
}

// listing writes the files of an order, by directory: non-test sources first, and the rest by extension.
func (w wording) listing(b *strings.Builder, o entries.Order, d detail) {
	left := d.files
	for i, a := range o.Dirs {
		files := slices.Clone(w.dirs[a.Path].files)
		slices.SortStableFunc(files, func(x, y *scan.File) int {
			return cmp.Or(cmp.Compare(order(x), order(y)), bySize(x, y))
		})
		share := min(len(files), max(left/(len(o.Dirs)-i), min(left, 2)))
		left -= share
		var names []string
		for _, f := range files[:share] {
			names = append(names, fmt.Sprintf("%s %s", shown(path.Base(f.Path)), sizeText(f.Size)))
		}
		if rest := files[share:]; len(rest) > 0 {
			names = append(names, byExtension(rest))
		}
		if len(files) == 0 {
			names = []string{"no files of its own"}
		}
		fmt.Fprintf(b, "%s/: %s\n", shown(a.Path), strings.Join(names, " · "))
	}
}

// order puts what somebody wrote before tests, fixtures and the like.
func order(f *scan.File) int {
	switch f.Category {
	case scan.Source:
		return 0
	case scan.Documentation, scan.Configuration:
		return 1
	}
	return 2
}

func byExtension(files []*scan.File) string {
	count := map[string]int{}
	for _, f := range files {
		count[scan.Extension(f.Path)]++
	}
	parts, _ := content.Frequent(count, 5)
	return fmt.Sprintf("%d more (%s)", len(files), strings.Join(parts, ", "))
}

// sourceOutline is a source with its outline.
type sourceOutline struct {
	file  *scan.File
	names outline.Outline
	rank  int // words of the goal in its path and names
}

// ranked is how many sources of an order are outlined to find those that the goal is about.
const ranked = 24

// goalWords returns a function that counts the words of the goal that a text has.
func (w wording) goalWords() func(text string) int {
	goal := slices.DeleteFunc(words.Terms(w.meta.Goal), func(t string) bool { return len(t) < 3 })
	return func(text string) (n int) {
		if len(goal) > 0 {
			terms := words.Terms(text)
			for _, t := range goal {
				if slices.Contains(terms, t) {
					n++
				}
			}
		}
		return n
	}
}

// outlinesOf returns the outlines of an order's sources: those with most words of the goal first, then the largest.
func (w wording) outlinesOf(o entries.Order) (all []sourceOutline) {
	rank := w.goalWords()
	for _, a := range o.Dirs {
		for _, f := range w.dirs[a.Path].files {
			if f.Category == scan.Source && f.Size <= maxOutlined && outline.Language(f.Path) != "" {
				all = append(all, sourceOutline{file: f, rank: rank(f.Path)})
			}
		}
	}
	byRank := func(x, y sourceOutline) int { return cmp.Or(cmp.Compare(y.rank, x.rank), bySize(x.file, y.file)) }
	slices.SortStableFunc(all, byRank)
	all = all[:min(len(all), ranked)]
	for i := range all {
		one := &all[i]
		text, err := w.read(one.file.Path)
		if err != nil {
			continue
		}
		one.names, _ = outline.Of(one.file.Path, text) // without an outline it has no symbols
		for _, s := range one.names.Symbols {
			one.rank = max(one.rank, rank(one.file.Path+" "+s.Name))
		}
	}
	slices.SortStableFunc(all, byRank)
	return slices.DeleteFunc(all, func(one sourceOutline) bool { return len(one.names.Symbols) == 0 })
}

// outlineText writes the exported names of sources, those that the goal names first.
func (w wording) outlineText(b *strings.Builder, o entries.Order, sources []sourceOutline, d detail) {
	for _, one := range sources[:min(d.outlines, len(sources))] {
		name := path.Base(one.file.Path)
		if len(o.Dirs) > 1 {
			name = one.file.Path
		}
		fmt.Fprintf(b, "outline %s: %s\n", shown(name), symbols(one.names, d.symbols, w.goalWords()))
	}
}

// children writes what is known of the directories below those of the order.
func (w wording) children(b *strings.Builder, o entries.Order, d detail) {
	var below []string
	for _, a := range o.Dirs {
		for _, s := range w.dirs[a.Path].Subs {
			if !o.Has(s) {
				below = append(below, s)
			}
		}
	}
	if len(below) > 0 {
		b.WriteString("children:\n" + w.known(below, o, d.below))
	} else if len(o.Dirs) == 1 {
		b.WriteString("children: (none: this is a leaf directory)\n")
	}
}

const (
	longestNote  = 400 // characters of one directory's note in an order
	shortestNote = 40  // below this, only the names are shown
)

// known returns what is known of directories, in about so many characters: the notes of all of them, each as long as
// there is room, or else their names alone.
func (w wording) known(dirs []string, o entries.Order, room int) string {
	width := min((room-len(strings.Join(dirs, ": ")))/max(len(dirs), 1), longestNote)
	var lines []string
	for _, p := range dirs {
		note := cmp.Or(oneLine(w.notes[p].Summary), "(not investigated yet)")
		if slices.ContainsFunc(w.applied.Skipped, func(a plan.Assigned) bool { return a.Path == p }) {
			note = "skipped by the plan"
		}
		if width >= shortestNote {
			lines = append(lines, shown(p)+": "+content.ClipEnd(note, width))
			continue
		}
		if len(o.Dirs) == 1 {
			p = path.Base(p)
		}
		if room -= len(p) + 2; room > 0 || len(lines) == len(dirs)-1 { // never "and 1 more"
			lines = append(lines, listed(p))
		}
	}
	if width >= shortestNote {
		return prompts.Fence(strings.Join(lines, "\n")) + "\n"
	}
	text := prompts.Fence(strings.Join(lines, ", ")) + "\n"
	if more := len(dirs) - len(lines); more > 0 {
		text += fmt.Sprintf("and %d more; ", more)
	}
	return text + fmt.Sprintf("their notes: search path=%s pattern=…\n", w.name())
}

// surveyText writes what the survey and the plan say, a line each.
func (w wording) surveyText(b *strings.Builder, d detail) {
	if s := w.survey; s.Confidence > 0 {
		b.WriteString("survey: " + content.ClipEnd(oneLine(s.Description+" "+s.Approach), d.survey))
		if tools := oneLine(strings.Join(s.RelevantTools, ", ")); tools != "" && s.Confidence >= filterFrom {
			b.WriteString("; lean on " + content.ClipEnd(tools, 80))
		}
		if tools := oneLine(strings.Join(s.SkipTools, ", ")); tools != "" && s.Confidence >= filterFrom {
			b.WriteString("; skip " + content.ClipEnd(tools, 80))
		}
		b.WriteByte('\n')
	}
	if notes := oneLine(w.plan.Notes); notes != "" && d.notes > 0 {
		b.WriteString("plan: " + content.ClipEnd(notes, d.notes) + "\n")
	}
}

// planOrder is the text of the order for a survey and a plan.
func (w wording) planOrder(o entries.Order, d detail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "WORK ORDER %s: survey and plan of %s (%s)\n", o.Name(), w.shownTarget(), w.tree.Describe())
	fmt.Fprintf(&b, "all at default: %s, ~%d tokens to read\n",
		content.Plural(int64(len(w.applied.Units)), "order", "orders"), w.price(w.applied.Units))
	b.WriteString(w.goalText())
	totals := w.tree.Totals()
	slices.SortStableFunc(totals, func(x, y scan.DirTotals) int { return cmp.Compare(y.Bytes, x.Bytes) })
	var data strings.Builder
	signals := w.tree.Signals()
	fmt.Fprintf(&data, "extensions: %s\n", histogram(signals.ExtensionHistogram, 8))
	largest := totals[:min(len(totals), plannedDirs*max(d.files, 1)/24+1)]
	slices.SortFunc(largest, func(x, y scan.DirTotals) int { return cmp.Compare(x.Path, y.Path) })
	for _, t := range largest {
		fmt.Fprintf(&data, "%s/ %d files %s\n", shown(t.Path), t.Files, sizeText(t.Bytes))
	}
	b.WriteString(prompts.Fence(strings.TrimSuffix(data.String(), "\n")) + "\n")
	if more := len(totals) - len(largest); more > 0 {
		from := "find path=" + w.shownTarget() + " show=dirs"
		if w.meta.Scan != "" {
			from = "jq source=" + w.meta.Scan + " filter=.directories[]"
		}
		fmt.Fprintf(&b, "and %d smaller directories: %s\n", more, from)
	}
	b.WriteString(w.ask("plan", o))
	return b.String()
}

// histogram names the most frequent values.
func histogram(count map[string]int64, n int) string {
	parts, others := content.Frequent(count, n)
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d others", others))
	}
	return strings.Join(parts, ", ")
}

// reportOrder is the text of the order for the report: the notes of the top two levels.
func (w wording) reportOrder(o entries.Order, d detail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "WORK ORDER %s: report on %s from its notes\n", o.Name(), w.shownTarget())
	b.WriteString(w.goalText())
	upper := slices.DeleteFunc(slices.Clone(w.paths), func(p string) bool { return strings.Count(p, "/") > 1 })
	b.WriteString(w.known(upper, o, 2*d.below))
	fmt.Fprintf(&b, "all %d notes: read path=%s, or search path=%s pattern=…\n", len(w.notes), w.name(), w.name())
	b.WriteString(w.ask("report", o))
	return b.String()
}
