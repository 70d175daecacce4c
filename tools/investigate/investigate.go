// Package investigate has the tool investigate: it gives out pieces of a directory tree to look at, keeps the notes on
// them with the evidence it checked, and makes a report of them.
//
// The server keeps the state and checks the work; whoever thinks only answers. Everything but the thinking is
// deterministic: scan looks at the files, plan cuts the tree into units, entries keeps what was found, evidence looks
// up what a note cites.
package investigate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Toolset is the name of this package's toolset.
const Toolset = "investigation"

// promptVersion changes with the wording of orders; an investigation names the one it was made with.
const promptVersion = 2

// Options of the tool.
type Options struct {
	Records  records.Store          // where investigations are kept; nil: nothing can be kept, and the tool refuses
	ReadOnly error                  // why the store cannot be written: views work, orders are refused
	Limit    int64                  // bytes of all investigations: the least recently used ones are removed; 0: none
	Trace    trace.Store            // for coverage; nil: that is unknown
	Secret   func(text string) bool // reports a secret in a text: mechanical notes quote none. nil: nothing is looked for
	Slice    time.Duration          // a call that thinks through an endpoint answers within it; 45 s
	Thinker  Thinker                // answers orders through an endpoint; nil: the caller does
	Endpoint bool                   // orders of the tool's callers go to the Thinker
}

// Investigator gives out and takes back pieces of work. It is safe for concurrent use. Its leases end with its records.
type Investigator struct {
	options Options
	store   *entries.Store
	drivers sync.Map // *driver by the ID of the investigation that the Thinker works on
}

// New returns an Investigator. It opens nothing.
func New(o Options) *Investigator {
	o.Slice = cmp.Or(o.Slice, 45*time.Second)
	i := &Investigator{options: o}
	if o.Records != nil {
		i.store = entries.Open(o.Records, o.Limit, o.ReadOnly != nil)
	}
	return i
}

// Close stops the work of the Thinker.
func (i *Investigator) Close() {
	for _, d := range i.drivers.Range {
		d := d.(*driver)
		d.stop()
		<-d.done
	}
}

// Args are the arguments of the tool.
type Args struct {
	Path  string       `json:"path,omitempty" jsonschema:"directory, or inv:ID" help:"Directory to investigate, or an investigation: inv:ID. Default: the first root."`
	Goal  string       `json:"goal,omitempty" help:"What is to be found out, in one or two sentences. Another goal than before needs fresh."`
	Order string       `json:"order,omitempty" jsonschema:"ord:ID" help:"The work order that note answers: ord:ID. Without a note the order is shown again."`
	Note  tools.Object `json:"note,omitempty" jsonschema:"answer to the order, in the shape it asks for" help:"The answer to the order, in the shape that the order asks for. A plan alone, {\"plan\": {…}}, needs no order."`
	Show  string       `json:"show,omitempty" enum:"next|status|flags|weak|absent|report" help:"What to show: the next order (the default), the status, the flags, the entries that are least sure, the citations that are not there, or the report."`
	Fresh bool         `json:"fresh,omitempty" help:"Begin again under a new ID. The old investigation stays."`
}

const maxGoal = 1000

// goal returns the goal in one line.
func (a Args) goal() string { return oneLine(a.Goal) }

// oneLine returns a text that somebody wrote in one line, its hidden characters escaped.
func oneLine(text string) string { return content.VisibleLine(strings.Join(strings.Fields(text), " ")) }

// Check implements [tools.Checker].
func (a Args) Check() error {
	if a.Order == "" && a.Note != "" && !isPlanOnly(a.Note) {
		return errors.New("note answers an order: give order=ord:ID as well (a note {\"plan\": …} alone needs none)")
	}
	if len(a.Goal) > maxGoal {
		return fmt.Errorf("goal has %d bytes; at most %d", len(a.Goal), maxGoal)
	}
	if _, err := entries.ParseOrder(a.Order); a.Order != "" && err != nil {
		return err
	}
	if a.Show != "" && a.Show != "next" && (a.Order != "" || a.Note != "") {
		return errors.New("show looks at what is kept: leave out order and note")
	}
	return nil
}

// Tool returns the tool investigate. The tool of a nil Investigator can be listed, but not called.
func (i *Investigator) Tool() tools.Tool {
	if i == nil {
		i = New(Options{})
	}
	return tools.New(tools.Tool{
		Name:  "investigate",
		Title: "Investigate a directory",
		Description: "Understand a directory tree in resumable pieces: each answer is a work order. Do it with the other tools, then " +
			"call again with order and note. Kept for 90 days.",
		Effect:  tools.Writes,
		Paged:   true,
		Toolset: Toolset,
	}, i.run)
}

func (i *Investigator) run(ctx context.Context, a Args, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	view := a.Note == "" && a.Order == "" && a.Show != "" && a.Show != "next"
	if err := i.mayKeep(view && a.Goal == "" && !a.Fresh); err != nil {
		return err
	}
	w, err := i.open(ctx, a, in, out)
	if err != nil {
		return err
	}
	next := a.Note == "" && a.Order == "" && !view
	if next && i.options.Endpoint && i.options.Thinker != nil {
		return w.thinking().think()
	}
	unlock, err := w.inv.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if a.Note != "" || a.Order != "" {
		return w.answer(a)
	}
	if err := w.load(true); err != nil {
		return err
	}
	if w.created {
		if err := w.keepScan(); err != nil {
			return err
		}
	}
	if next {
		return w.next("")
	}
	text, rest, err := w.views().view(a.Show)
	if err != nil {
		return err
	}
	return w.showPage(text, rest)
}

// mayKeep returns why the store keeps no investigations, or none that can be changed.
func (i *Investigator) mayKeep(reads bool) error {
	if i.store == nil {
		return errNoStore
	}
	if err := i.options.ReadOnly; err != nil && !reads {
		return fmt.Errorf("the store can only be read: show=report, status, flags, weak and absent show what is kept: %w", err)
	}
	return nil
}

// open finds or makes the investigation that a call is about. The arguments are checked.
func (i *Investigator) open(ctx context.Context, a Args, in tools.Input, out tools.Output) (*work, error) {
	w := &work{i: i, ctx: ctx, in: in, out: out, now: time.Now, tokens: in.CountTokens}
	var err error
	if a.Order != "" && a.Path == "" {
		id, _ := entries.ParseOrder(a.Order)
		if w.inv, err = i.store.FindOrder(in.Owner, id); err != nil {
			return nil, unknownOrder(a.Order, err)
		}
		return w, w.resolve()
	}
	if a.Path == "" && len(in.Sources.Roots) > 1 {
		return nil, errors.New("there are several roots: name one by path")
	}
	var dir string
	w.inv, dir, err = i.find(in.Sources, in.Owner, a.Path)
	unknown := errors.Is(err, entries.ErrUnknown)
	switch {
	case err == nil && (dir == "" || !a.Fresh):
		return w, w.resume(a)
	case unknown && dir == "":
		return nil, fmt.Errorf("%s: %w, or expired: they are kept for 90 days from their last use; "+
			"investigate path=DIR begins one", content.ClipBytes(a.Path, 60), err)
	case err != nil && dir == "":
		return nil, fmt.Errorf("path: %w", err)
	case err != nil && !unknown:
		return nil, err
	}
	if err := w.resolveDir(dir); err != nil {
		return nil, err
	}
	w.created = true
	w.inv, err = i.store.Create(entries.Meta{
		Target: dir, Identity: in.Owner, Goal: a.goal(), PromptVersion: promptVersion,
	})
	if err == nil {
		w.meta, err = w.inv.Meta()
	}
	return w, err
}

// find returns the investigation that a name means: inv:ID, or a directory, which it returns too. The error is
// [entries.ErrUnknown] if there is none.
func (i *Investigator) find(
	sources source.Set, owner, name string,
) (inv *entries.Investigation, dir string, err error) {
	if id, ok := strings.CutPrefix(name, entries.Prefix); ok {
		id, _, _ = strings.Cut(id, "/")
		inv, err = i.store.Get(owner, strings.TrimSpace(id))
	} else if dir, err = sources.Directory(name); err == nil {
		inv, err = i.store.Find(owner, dir)
	}
	return inv, dir, err
}

// resume finds the directory of an investigation that exists. It refuses another goal than that of the investigation.
func (w *work) resume(a Args) error {
	if err := w.resolve(); err != nil {
		return err
	}
	goal := a.goal()
	if goal == "" || goal == w.meta.Goal {
		return nil
	}
	if w.meta.Goal == "" {
		unlock, err := w.inv.Lock()
		if err != nil {
			return err
		}
		defer unlock()
		w.meta.Goal = goal
		return w.inv.SetMeta(w.meta)
	}
	return fmt.Errorf("this directory is being investigated with another goal: %q; fresh=true begins again with yours",
		content.ClipBytes(w.meta.Goal, 200))
}

// resolve finds the directory of the investigation below the roots of the caller.
func (w *work) resolve() error {
	m, err := w.inv.Meta()
	if err != nil {
		return err
	}
	w.meta = m
	return w.resolveDir(m.Target)
}

func (w *work) resolveDir(dir string) error {
	for _, r := range w.in.Sources.Roots {
		rel, err := r.Rel(dir)
		if err != nil {
			continue
		}
		if fi, err := r.Stat(rel); err != nil {
			return fmt.Errorf("the directory %s: %w; what was found stays readable by %s",
				content.ClipBytes(dir, 200), err, w.name())
		} else if !fi.IsDir() {
			return fmt.Errorf("%s is no directory: name one, or read it", content.ClipBytes(dir, 200))
		}
		w.root, w.start, w.target = r, filepath.ToSlash(rel), dir
		return nil
	}
	return fmt.Errorf("the directory %s lies below no root of this server", content.ClipBytes(dir, 200))
}

// name returns the handle of the investigation.
func (w *work) name() string {
	if w.inv == nil {
		return "inv:ID"
	}
	return entries.Prefix + w.meta.ID
}

func unknownOrder(name string, err error) error {
	if !errors.Is(err, entries.ErrUnknown) {
		return err
	}
	return fmt.Errorf("%s: unknown order; investigate without arguments gives out the next one",
		content.ClipBytes(name, 60))
}
