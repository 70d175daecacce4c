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
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

// Limits of an order's text in tokens. It is made smaller until it fits.
const (
	orderTokens = 680
	maxOrder    = 980
)

// detail is how much an order says. Each step down halves it.
type detail struct {
	files    int // listed, the largest and those somebody wrote first
	outlines int // files that are outlined
	symbols  int // of one file
	children int // summaries of directories below
	summary  int // characters of one
	survey   int // characters of the survey
	notes    int // characters of the plan's notes
}

var details = []detail{
	{24, 5, 10, 10, 160, 500, 300}, {24, 3, 7, 8, 110, 300, 200}, {16, 2, 5, 5, 80, 200, 100}, {8, 1, 4, 3, 60, 100, 0},
	{4, 0, 0, 2, 40, 0, 0}, {0, 0, 0, 0, 0, 0, 0},
}

// orderText returns the text of an order with as many details as fit 680 tokens. The order for a plan may have 980, and
// so may one with few details; the one with the fewest is returned in any case.
func (w *work) orderText(o entries.Order) (text string) {
	for n, d := range details {
		switch o.Step {
		case entries.Planning:
			text = w.planOrder(o, d)
		case entries.Reporting:
			text = w.reportOrder(o, d)
		default:
			text = w.directoryOrder(o, d)
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

// ask returns the part of a prompt that an order ends with.
func (w *work) ask(name string, o entries.Order) string {
	if w.silent {
		return ""
	}
	return strings.ReplaceAll(prompts.Work(name).Order, "{{order}}", o.Name()) + "\n"
}

// goalText is the line of an order with the goal; "" without one.
func (w *work) goalText() string {
	if w.meta.Goal == "" {
		return ""
	}
	return "goal: " + content.ClipEnd(w.meta.Goal, 300) + "\n"
}

// directoryOrder is the text of an order on directories.
func (w *work) directoryOrder(o entries.Order, d detail) string {
	var b strings.Builder
	files, turns := 0, 0
	var tokens int64
	for _, a := range o.Dirs {
		turns = max(turns, a.Turns)
		for _, f := range w.dirs[a.Path].files {
			files++
			tokens += f.Tokens
		}
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
	w.outlineText(&data, o, d)
	b.WriteString(prompts.Fence(strings.TrimSuffix(data.String(), "\n")) + "\n")
	w.children(&b, o, d)
	for _, a := range o.Dirs {
		if fresh, own := w.fresh(a.Path); !fresh && own && w.notes[a.Path].By != entries.Mechanical {
			fmt.Fprintf(&b, "only directories below %s changed; its note was:\n%s\nunchanged: true in its element confirms it\n", shown(a.Path),
				prompts.Fence(content.ClipEnd(w.notes[a.Path].Summary, max(200, 2*d.summary))))
		}
	}
	b.WriteString(w.ask("directory", o))
	return b.String()
}

// position returns the number of the next order and of all, of those that were and will be given out for directories.
func (w *work) position() (number, all int) {
	open := len(w.units())
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
func (w *work) listing(b *strings.Builder, o entries.Order, d detail) {
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

// outlineText writes the exported names of the largest sources of an order.
func (w *work) outlineText(b *strings.Builder, o entries.Order, d detail) {
	if d.outlines == 0 {
		return
	}
	var sources []*scan.File
	for _, a := range o.Dirs {
		for _, f := range w.dirs[a.Path].files {
			if f.Category == scan.Source && f.Size <= maxOutlined && outline.Language(f.Path) != "" {
				sources = append(sources, f)
			}
		}
	}
	slices.SortStableFunc(sources, bySize)
	for _, f := range sources[:min(d.outlines, len(sources))] {
		text, err := w.read(f.Path)
		if err != nil {
			continue
		}
		found, _ := outline.Of(f.Path, text) // without an outline it has no symbols
		if s := symbols(found, d.symbols); s != "" {
			name := path.Base(f.Path)
			if len(o.Dirs) > 1 {
				name = f.Path
			}
			fmt.Fprintf(b, "outline %s: %s\n", shown(name), s)
		}
	}
}

// children writes what is known of the directories below those of the order.
func (w *work) children(b *strings.Builder, o entries.Order, d detail) {
	var below []string
	for _, a := range o.Dirs {
		for _, s := range w.dirs[a.Path].subs {
			if !o.Has(s) {
				below = append(below, s)
			}
		}
	}
	if len(below) == 0 {
		if len(o.Dirs) == 1 {
			b.WriteString("children: (none: this is a leaf directory)\n")
		}
		return
	}
	skipped := map[string]string{}
	for _, s := range w.applied.Skipped {
		skipped[s.Path] = s.Reason
	}
	var text strings.Builder
	for _, s := range below[:min(d.children, len(below))] {
		_, skip := skipped[s]
		note := w.notes[s]
		switch {
		case skip:
			fmt.Fprintf(&text, "%s: skipped by the plan\n", shown(s))
		case note.Summary == "":
			fmt.Fprintf(&text, "%s: (not investigated yet)\n", shown(s))
		default:
			fmt.Fprintf(&text, "%s: %s\n", shown(s), content.ClipEnd(strings.Join(strings.Fields(note.Summary), " "), d.summary))
		}
	}
	b.WriteString("children:\n" + prompts.Fence(strings.TrimSuffix(text.String(), "\n")) + "\n")
	if more := len(below) - d.children; more > 0 {
		fmt.Fprintf(b, "and %d more: search path=%s pattern=… finds their notes\n", more, w.name())
	}
}

// surveyText writes what the survey and the plan say, a line each.
func (w *work) surveyText(b *strings.Builder, d detail) {
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
func (w *work) planOrder(o entries.Order, d detail) string {
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
func (w *work) reportOrder(o entries.Order, d detail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "WORK ORDER %s: report on %s from its notes\n", o.Name(), w.shownTarget())
	b.WriteString(w.goalText())
	var data strings.Builder
	n := 0
	for _, p := range w.paths {
		if strings.Count(p, "/") > 1 || d.summary == 0 {
			continue
		}
		if n++; n > 2*d.children {
			continue
		}
		fmt.Fprintf(&data, "%s: %s\n", shown(p), content.ClipEnd(strings.Join(strings.Fields(w.notes[p].Summary), " "), d.summary))
	}
	if data.Len() > 0 {
		b.WriteString(prompts.Fence(strings.TrimSuffix(data.String(), "\n")) + "\n")
	}
	fmt.Fprintf(&b, "all %d notes: read path=%s, or search path=%s pattern=…\n", len(w.notes), w.name(), w.name())
	b.WriteString(w.ask("report", o))
	return b.String()
}
