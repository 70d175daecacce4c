package investigate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
)

// views shows what is kept.
type views struct{ *work }

func (w *work) views() views { return views{w} }

// view returns a view of what is kept, the status by default, and the call that shows what a page has no room for.
func (w views) view(what string) (text string, rest tools.Call, err error) {
	switch what {
	case "report":
		r, err := w.reports().makeReport()
		return r.Text(), tools.Call{Tool: "read", Args: map[string]any{"path": w.name() + "/report"}}, err
	case "flags":
		text, err = w.flagsText()
		return text, w.rest(`.[] | select(.kind == "flag")`), err
	case "absent":
		text, err = w.absentText()
		return text, w.rest(`.[] | .evidence[]? | select(.verdict == "absent")`), err
	case "weak":
		return w.weakText(), w.rest(`.[] | select(.kind != "flag" and (.confidence // 0) < 0.7)`), nil
	}
	return w.statusText(), w.rest("."), nil
}

// rest is the call that shows what a page of a view has no room for.
func (w views) rest(filter string) tools.Call {
	return tools.Call{Tool: "jq", Args: map[string]any{"source": w.name(), "filter": filter, "slurp": true}}
}

func (w views) statusText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s\n", w.name(), w.target)
	if w.meta.Goal != "" {
		fmt.Fprintf(&b, "goal: %s\n", w.meta.Goal)
	}
	by := map[string]int64{}
	for _, n := range w.notes {
		by[n.By]++
	}
	fmt.Fprintf(&b, "begun: %s by %s; %s\n", w.meta.StartedAt.Format("2006-01-02 15:04 MST"),
		cmp.Or(w.meta.By, "nobody yet"), w.tree.Describe())
	fmt.Fprintf(&b, "notes by: %s\n", histogram(by, 5))
	open := w.queue().units()
	fmt.Fprintf(&b, "orders: %d of %d left; directories: %d skipped by the plan, %d without an order by max_orders, %d keep "+
		"their mechanical note\n", len(open), len(w.applied.Units), len(w.applied.Skipped), len(w.applied.Dropped),
		len(w.applied.Kept))
	b.WriteString(w.changedText())
	if _, ok := w.reports().readReport(); ok {
		b.WriteString("report: written\n")
	} else {
		b.WriteString("report: assembled from the notes until one is written\n")
	}
	outstanding := w.queue().outstandingOrders()
	for _, o := range outstanding[:min(len(outstanding), outstandingList)] {
		fmt.Fprintf(&b, "outstanding: %s %s, %s old\n", o.Name(), strings.TrimSpace(string(o.Step)+" "+dirNames(o.Dirs)),
			w.queue().age(o))
	}
	fmt.Fprintf(&b, "opened through this server: %s\n", w.covered().coverage(w.paths...).Text())
	return b.String()
}

// flags returns the flags, the worst first.
func (w *work) flags() ([]entries.Flag, error) {
	flags, err := w.inv.Flags()
	slices.SortStableFunc(flags, func(a, b entries.Flag) int {
		return cmp.Compare(slices.Index(severities, b.Severity), slices.Index(severities, a.Severity))
	})
	return flags, err
}

func (w views) flagsText() (string, error) {
	flags, err := w.flags()
	if err != nil {
		return "", err
	}
	if len(flags) == 0 {
		return "no flags\n", nil
	}
	var b strings.Builder
	for _, f := range flags {
		fmt.Fprintf(&b, "%s: %s: %s\n", f.Severity, shown(f.Path), f.Finding)
	}
	return b.String(), nil
}

func (w views) weakText() string {
	var b strings.Builder
	line := func(path string, q entries.Quality) {
		sure := "no confidence"
		if q.Confidence != nil {
			sure = fmt.Sprintf("%.2g", *q.Confidence)
		}
		why := ""
		if q.ConfidenceReason != "" {
			why = ": " + oneLine(q.ConfidenceReason)
		}
		fmt.Fprintf(&b, "%s %s (%s)%s\n", sure, shown(path), cmp.Or(oneLine(q.By), "unknown"), why)
	}
	for _, d := range entries.Weak(w.notes) {
		line(d.RelativePath+"/", d.Quality)
	}
	for _, f := range entries.Weak(w.files) {
		line(f.RelativePath, f.Quality)
	}
	if b.Len() == 0 {
		return "no weak entries: all have a confidence of 0.7 or more\n"
	}
	return b.String()
}
