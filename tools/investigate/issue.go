package investigate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// Sizes that decide whether a tree needs a survey and a plan, and what a piece costs.
const (
	fewOrders       = 3      // up to this many, a survey costs more than it saves
	wholeTokens     = 20_000 // below this, reading everything is cheaper than investigating
	tokensPerOrder  = 900    // an order, its note and the answer
	tokensPerTurn   = 2_000  // that a turn of reading shows
	plannedDirs     = 40     // directories that the plan order shows
	outstandingList = 10
)

// queue chooses the order that is given out next.
type queue struct{ *work }

func (w *work) queue() queue { return queue{w} }

// units returns the units that still have directories to look at, each with these alone.
func (w queue) units() []plan.Unit { return w.unitsOf(w.due) }

// unitsOf returns the units with directories that are open, each with these alone.
func (w queue) unitsOf(open func(dir string) bool) (units []plan.Unit) {
	for _, u := range w.applied.Units {
		u.Dirs = slices.DeleteFunc(slices.Clone(u.Dirs), func(d plan.Assigned) bool { return !open(d.Path) })
		if len(u.Dirs) > 0 {
			units = append(units, u)
		}
	}
	return units
}

// outstandingOrders returns the orders that still belong to their takers.
func (w queue) outstandingOrders() []entries.Order {
	return slices.DeleteFunc(slices.Clone(w.orders), func(o entries.Order) bool { return !w.inv.Leased(o) })
}

// leased returns the directories that open orders cover, and whether the plan or the report is being made.
func (w queue) leased() (dirs map[string]bool, steps map[entries.Step]bool) {
	dirs, steps = map[string]bool{}, map[entries.Step]bool{}
	for _, o := range w.outstandingOrders() {
		steps[o.Step] = true
		for _, p := range o.Open {
			dirs[p] = true
		}
	}
	return dirs, steps
}

// small reports whether the tree fits a few orders.
func (w queue) small() bool { return len(w.applied.Units) <= fewOrders }

// choose makes the next order; ok is false if there is none to give out now.
func (w queue) choose() (o entries.Order, ok bool, err error) {
	step, dirs := w.nextStep()
	if step == "" {
		return o, false, nil
	}
	var prints []string
	for _, d := range dirs {
		prints = append(prints, w.dirs[d.Path].fingerprint())
	}
	o, err = w.inv.NewOrder(step, dirs, prints)
	return o, err == nil, err
}

// nextStep returns what the next order asks for, "" if nothing is free, and the directories of a step that has some.
func (w queue) nextStep() (entries.Step, []plan.Assigned) {
	taken, steps := w.leased()
	if !w.planned && !w.small() && !steps[entries.Planning] && w.untouched() {
		return entries.Planning, nil
	}
	units := w.unitsOf(func(dir string) bool { return w.due(dir) && !w.tried[dir] })
	for _, u := range units {
		free := slices.DeleteFunc(slices.Clone(u.Dirs), func(d plan.Assigned) bool { return taken[d.Path] })
		if len(free) > 0 && w.ready(u, units) {
			return entries.Directory, free
		}
	}
	if len(units) == 0 && !steps[entries.Reporting] && !w.tried[triedStep(entries.Reporting)] && w.reports().reportDue() {
		return entries.Reporting, nil
	}
	return "", nil
}

// untouched reports whether no directory has been looked at by anybody: later, a plan would come too late.
func (w queue) untouched() bool {
	for _, n := range w.notes {
		if n.By != entries.Mechanical {
			return false
		}
	}
	return true
}

// ready reports whether nothing below the unit's directories is still open in another unit.
func (w queue) ready(u plan.Unit, open []plan.Unit) bool {
	for _, other := range open {
		if other.Dirs[0].Path == u.Dirs[0].Path {
			return true // units are ordered: those behind this one are not below it
		}
		for _, own := range u.Dirs {
			if slices.ContainsFunc(other.Dirs, func(d plan.Assigned) bool { return below(d.Path, own.Path) }) {
				return false
			}
		}
	}
	return true
}

// below reports whether a path lies below a directory.
func below(p, dir string) bool { return p != dir && (dir == "." || strings.HasPrefix(p, dir+"/")) }

// next gives out the next order, below what the call has to say first.
func (w *work) next(first string) error {
	if len(w.tree.Files) == 0 {
		return errEmpty
	}
	_, steps := w.queue().leased()
	o, ok, err := w.queue().choose()
	if err != nil {
		return err
	}
	w.touchBy(entries.Agent)
	if w.created {
		first += w.greeting()
	}
	first += w.changedText()
	switch {
	case ok:
		w.inv.Log("order %s %s %s", o.Name(), o.Step, dirNames(o.Dirs))
		first += w.wording().orderText(o)
		w.attach(o)
	case len(w.queue().units()) > 0 || steps[entries.Reporting]:
		first += w.queue().outstanding()
	default:
		first += fmt.Sprintf("done: every directory has a note and the report is written. investigate path=%s show=report "+
			"shows it; show=weak the entries that are least sure; search path=%s pattern=… looks into all notes.\n",
			w.name(), w.name())
	}
	return w.out.Page().Text([]byte(first))
}

// touchBy records who takes part.
func (w *work) touchBy(who string) {
	if !strings.Contains(w.meta.By, who) {
		w.meta.By = strings.TrimPrefix(w.meta.By+", "+who, ", ")
		_ = w.inv.SetMeta(w.meta) // the next call sets it again
	}
}

// sentOrder is what a program may read of an order, as _meta["funnel/order"].
type sentOrder struct {
	Investigation string         `json:"investigation"`
	Order         string         `json:"order"`
	Step          entries.Step   `json:"step"`
	Dirs          []sentOrderDir `json:"dirs"`
}

type sentOrderDir struct {
	Path  string    `json:"path"`
	Turns int       `json:"turns"`
	Tier  plan.Tier `json:"tier"`
}

// MetaName implements [tools.MetaNamed].
func (sentOrder) MetaName() string { return "order" }

func (w *work) attach(o entries.Order) {
	sent := sentOrder{Investigation: w.name(), Order: o.Name(), Step: o.Step, Dirs: []sentOrderDir{}}
	for _, d := range o.Dirs {
		sent.Dirs = append(sent.Dirs, sentOrderDir{d.Path, d.Turns, d.Tier})
	}
	w.out.Attach(sent)
}

// keepScan stores the scan of a new investigation as an observation: orders show a part of it.
func (w *work) keepScan() error {
	text, err := json.Marshal(w.tree.Report(w.target))
	if err != nil {
		return err
	}
	id, err := w.out.Store(tools.Stored{Text: append(text, '\n'), Name: "scan of " + w.shownTarget()})
	if err != nil {
		w.out.Note("the scan is not kept: " + err.Error())
		return nil //nolint:nilerr // the note says it
	}
	w.meta.Scan = observations.Prefix + id
	return w.inv.SetMeta(w.meta)
}

// greeting is said once, at the start of an investigation.
func (w *work) greeting() string {
	whole := w.tree.Totals()[0].Tokens
	text := fmt.Sprintf("%s: %s of %s; whole text about %d tokens, investigating about %d. ", w.name(), w.tree.Describe(),
		w.shownTarget(), whole, w.price(w.applied.Units))
	if whole < wholeTokens {
		text += "It is small: reading all of it is cheaper (read path=" + w.shownTarget() + "/**). "
	}
	text += "To find one place or fact, plain search is the better way: search path=" + w.shownTarget() + " pattern=…. " +
		"Every directory has a mechanical note already: show=report gives a full report at any time.\n"
	if n := len(w.tree.Skipped); n > 0 {
		text += fmt.Sprintf("skipped: %s, such as %s (%s)\n", content.Plural(int64(n), "entry", "entries"),
			content.VisibleLine(w.tree.Skipped[0].Path), w.tree.Skipped[0].Why)
	}
	return text
}

// shownTarget names the target as a call may name it.
func (w *work) shownTarget() string {
	if len(w.in.Sources.Roots) == 1 {
		return w.start
	}
	return w.target
}

// price estimates the tokens that units cost: their orders and notes, and what is read for them.
func (w *work) price(units []plan.Unit) int64 {
	var all int64
	for _, u := range units {
		var own int64
		for _, d := range u.Dirs {
			own += w.dirs[d.Path].Tokens
		}
		all += tokensPerOrder + min(own, int64(u.Turns)*tokensPerTurn)
	}
	return all
}

// maxChanges is how many changes an answer names.
const maxChanges = 8

// changedText says what changed since the last call, and so which directories are due again.
func (w *work) changedText() string {
	n := len(w.changes)
	if n == 0 {
		return ""
	}
	text := strings.Join(w.changes[:min(n, maxChanges)], "; ")
	text = "changed since the last call: " + content.VisibleLine(content.ClipBytes(text, 600))
	if n > maxChanges {
		text += fmt.Sprintf(" and %d more", n-maxChanges)
	}
	return text + "; they and the directories above them are due again\n"
}

// outstanding lists the orders that are worked on: first those that this process gave out, to its own client.
func (w queue) outstanding() string {
	all := w.outstandingOrders()
	slices.SortStableFunc(all, func(a, b entries.Order) int { return strings.Compare(w.whose(b), w.whose(a)) })
	text := "no order is free now; others work on:\n"
	if len(all) > 0 && w.whose(all[0]) != "" {
		text = fmt.Sprintf("no other order is free until yours is answered (order=%s alone shows it again):\n", all[0].Name())
	}
	for _, o := range all[:min(len(all), outstandingList)] {
		text += fmt.Sprintf("%s%s: %s %s, given out %s ago\n", o.Name(), w.whose(o), o.Step, dirNames(o.Dirs), w.age(o))
	}
	if more := len(all) - outstandingList; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	return text + "Call again when one is answered, or after 30 minutes, when an order may be given out again.\n"
}

// whose marks an order of this process.
func (w queue) whose(o entries.Order) string {
	if w.inv.Own(o) {
		return " (yours)"
	}
	return ""
}

func (w queue) age(o entries.Order) time.Duration {
	return max(w.now().Sub(o.IssuedAt), 0).Round(time.Second)
}

// dirNames names the first directories of an order.
func dirNames(dirs []plan.Assigned) string {
	switch len(dirs) {
	case 0:
		return ""
	case 1:
		return content.VisibleLine(dirs[0].Path)
	}
	return fmt.Sprintf("%s and %d more", content.VisibleLine(dirs[0].Path), len(dirs)-1)
}
