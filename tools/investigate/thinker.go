package investigate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Thinker answers orders through a model's endpoint.
type Thinker interface {
	// Think works on one task. An error means that the endpoint cannot be used: the rest stays mechanical.
	Think(ctx context.Context, t Task) (Thought, error)
}

// Task is one piece of work for a Thinker.
type Task struct {
	Prompt   string     // name of the prompt: survey, plan, directory or report
	Text     string     // of the order
	Turns    int        // completions that it may take
	Sources  source.Set // what its tools may read: the target, or the notes alone
	Owner    string
	Skip     []string                     // tools that are not offered
	Accept   func(note []byte) error      // checks what is handed in; the error goes back to the model
	Progress func(turn int, what string)  // may be nil
	Spend    func(prompt, completion int) // tokens that the endpoint reports; may be nil
}

// Thought is what a Thinker made of a task.
type Thought struct {
	Note    []byte // JSON of what was handed in, as the prompt asks for it; nil: nothing was
	Turns   int    // completions
	Partial string // why nothing was handed in: one of the reasons of entries
	By      string // "model NAME"
}

// What agents write into Thought.By and Thought.Partial. They may not import entries.
const (
	ByModel          = entries.Model // before the name of the model, in Thought.By
	OverBudget       = entries.OverBudget
	OverBudgetBefore = entries.OverBudgetBefore
	OutOfTurns       = entries.OutOfTurns
)

// Use has a Thinker answer orders: those of [Investigator.Run], and with forCallers those of the tool's callers. Call
// it before the first order.
func (i *Investigator) Use(t Thinker, forCallers bool) {
	i.options.Thinker, i.options.Endpoint = t, forCallers
}

// Turns of the steps that read nothing.
const (
	planTurns   = 3
	reportTurns = 5
)

// driver has a Thinker work on the orders of one investigation. Its work goes on while calls come and go.
type driver struct {
	i      *Investigator
	inv    *entries.Investigation
	caller Caller
	root   *tree.Root // the target, opened for this driver
	stop   context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed

	tried    map[string]bool // directories that were tried in this run
	progress func(done, total int64, message string)
	number   atomic.Int64 // of the order that is worked on
	orders   atomic.Int64 // all of them
	failed   error        // why the endpoint was given up
	spent    Spent
}

// Spent are the tokens that an endpoint reported.
type Spent struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
}

// Outcome is what a run came to.
type Outcome struct {
	Report
	Spent  Spent  `json:"spent"`
	Failed string `json:"endpoint_failed,omitempty"`
}

// Run investigates a directory to its end: through the Thinker, or by its files alone if there is none. It uses path,
// goal and fresh of the arguments. progress may be nil.
func (i *Investigator) Run(ctx context.Context, c Caller, a Args, progress func(done, total int64, message string)) (
	out Outcome, err error,
) {
	if err := i.mayKeep(false); err != nil {
		return out, err
	}
	w, err := i.open(ctx, a, tools.Input{Sources: c.Sources, Owner: c.Owner}, tools.Discard{})
	if err != nil {
		return out, err
	}
	if i.options.Thinker != nil {
		d, err := w.thinking().newDriver(c)
		if err != nil {
			return out, err
		}
		d.progress = progress
		if err := d.run(ctx); err != nil {
			return out, err
		}
		out.Spent = d.spent
		if d.failed != nil {
			out.Failed = d.failed.Error()
		}
	}
	out.Report, err = i.Report(ctx, c, w.name())
	return out, err
}

// thinking has a model answer the orders.
type thinking struct{ *work }

func (w *work) thinking() thinking { return thinking{w} }

// newDriver returns a driver for the investigation that a call is about. Its tools read the target alone.
func (w thinking) newDriver(c Caller) (*driver, error) {
	root, err := w.root.Sub(w.start)
	c.Sources = source.Set{Roots: []*tree.Root{root}}
	return &driver{i: w.i, inv: w.inv, caller: c, root: root, tried: map[string]bool{}}, err
}

// step runs do between Lock and unlock, on the state as it is then.
func (d *driver) step(ctx context.Context, do func(w *work) error) error {
	unlock, err := d.inv.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	w := d.i.workFor(ctx, d.caller)
	w.inv, w.root, w.start, w.silent = d.inv, d.root, ".", true
	if err := w.load(false); err != nil {
		return err
	}
	return do(w)
}

// run works on orders until none is left, the endpoint fails or ctx ends, and writes the evaluation.
func (d *driver) run(ctx context.Context) error {
	defer func() { _ = d.root.Close() }()
	for d.failed == nil {
		var o entries.Order
		var task Task
		more := false
		err := d.step(ctx, func(w *work) (err error) {
			w.touchBy("endpoint")
			w.tried = d.tried
			if o, more, err = w.queue().choose(); err != nil || !more {
				return err
			}
			task = d.task(w, o)
			return nil
		})
		if err != nil {
			return errors.Join(err, d.step(context.WithoutCancel(ctx), evaluate))
		}
		if !more {
			break
		}
		if err := d.answer(ctx, o, task); err != nil {
			return err
		}
	}
	return d.step(ctx, evaluate)
}

func (d *driver) task(w *work, o entries.Order) Task {
	number, all := w.wording().position()
	t := Task{
		Owner: d.caller.Owner, Sources: d.caller.Sources,
		Spend: func(prompt, completion int) {
			d.spent.Prompt += int64(prompt)
			d.spent.Completion += int64(completion)
		},
	}
	if d.progress != nil {
		t.Progress = func(turn int, what string) {
			d.progress(int64(number-1), int64(all), fmt.Sprintf("%s, turn %d: %s", dirNames(o.Dirs), turn+1, what))
		}
	}
	if w.survey.Confidence >= filterFrom {
		t.Skip = w.survey.SkipTools
	}
	switch o.Step {
	case entries.Planning:
		t.Prompt, t.Turns, t.Sources = "plan", planTurns, source.Set{}
	case entries.Reporting:
		t.Prompt, t.Turns = "report", reportTurns
		t.Sources = source.Set{Places: []source.NamedPlace{d.i.Place(d.caller.Owner)}}
	default:
		t.Prompt = "directory"
		for _, a := range o.Dirs {
			t.Turns = max(t.Turns, a.Turns)
		}
	}
	t.Accept = func(note []byte) error { return checkThought(t.Prompt, note) }
	t.Text = w.wording().orderText(o)
	return t
}

// noteOf reads what was handed in for a prompt as a note.
func noteOf(prompt string, raw []byte) (Note, error) {
	var fields map[string]json.RawMessage
	if prompt != "directory" && json.Unmarshal(raw, &fields) == nil && fields[prompt] == nil {
		wrapped := map[string]any{prompt: fields}
		if flags := fields["flags"]; flags != nil && prompt == "report" {
			delete(fields, "flags")
			wrapped["flags"] = flags
		}
		var err error
		if raw, err = json.Marshal(wrapped); err != nil {
			return Note{}, err
		}
	}
	return parseNote(tools.Object(raw))
}

// checkThought checks what a model hands in before the conversation ends.
func checkThought(prompt string, raw []byte) error {
	n, err := noteOf(prompt, raw)
	switch {
	case err != nil:
		return err
	case prompt == "survey" && n.Survey == nil, prompt == "plan" && n.Plan == nil, prompt == "report" && n.Report == nil:
		return fmt.Errorf("%s is missing", prompt)
	case prompt == "directory" && len(n.Dirs) == 0:
		return errors.New("dirs is missing: one element for each directory")
	}
	return nil
}

// answer has the Thinker work on an order and keeps what it hands in.
func (d *driver) answer(ctx context.Context, o entries.Order, t Task) error {
	var survey *Survey
	if o.Step == entries.Planning {
		s := t
		s.Prompt, s.Accept = "survey", func(note []byte) error { return checkThought("survey", note) }
		thought, err := d.i.options.Thinker.Think(ctx, s)
		if err != nil && ctx.Err() == nil {
			d.failed = err
			return d.release(ctx, o)
		}
		if n, err := noteOf("survey", thought.Note); err == nil {
			survey = n.Survey
		}
	}
	thought, err := d.i.options.Thinker.Think(ctx, t)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), d.release(context.WithoutCancel(ctx), o))
	}
	d.failed = err
	return d.step(ctx, func(w *work) error {
		n, err := noteOf(t.Prompt, thought.Note)
		if err != nil { // also where nothing was handed in
			n = Note{}
		}
		n.by, n.turns = thought.By, thought.Turns
		for _, a := range o.Dirs {
			d.tried[a.Path] = true
		}
		switch {
		case o.Step == entries.Planning:
			_, err := w.acceptance().acceptPlan(n.Plan, survey, thought.By, &kept{})
			if err == nil {
				now := w.now().UTC()
				o.Answered = &now
				err = w.inv.PutOrder(o)
			}
			return err
		case err == nil:
			if _, _, err = w.acceptance().accept(o, n); err == nil {
				return nil
			}
			w.inv.Log("%s: what the model handed in was refused: %v", o.Name(), err)
			thought.Partial = "what was handed in was refused"
		}
		d.tried[triedStep(o.Step)] = true
		if d.failed != nil {
			w.inv.Log("%s: the endpoint was given up: %v", o.Name(), d.failed)
			return w.thinking().giveBack(o)
		}
		return w.thinking().keepPartial(o, n, thought)
	})
}

// triedStep is the key of a step among directories that were tried: no directory is called so.
func triedStep(s entries.Step) string { return "\x00" + string(s) }

func (d *driver) release(ctx context.Context, o entries.Order) error {
	return d.step(ctx, func(w *work) error { return w.thinking().giveBack(o) })
}

// giveBack ends the lease of an order that was not answered.
func (w thinking) giveBack(o entries.Order) error {
	o.Process = ""
	return w.inv.PutOrder(o)
}

// keepPartial keeps what there is of an order whose note was not handed in: the summaries of its files, or else what
// the files say of themselves.
func (w thinking) keepPartial(o entries.Order, n Note, t Thought) error {
	if o.Step != entries.Directory {
		return w.giveBack(o)
	}
	w.inv.Log("%s: no note: %s", o.Name(), t.Partial)
	n = Note{Flags: n.Flags, by: n.by, turns: n.turns, partial: t.Partial} // what was refused would be refused again
	confidence := entries.MechanicalConfidence
	for _, a := range o.Dirs {
		d := w.dirs[a.Path]
		if d == nil || !slices.Contains(o.Open, a.Path) {
			continue
		}
		var parts []string
		for _, f := range d.files {
			if e, ok := w.files[f.Path]; ok {
				parts = append(parts, e.Summary)
			}
		}
		one := NoteDir{
			Path: a.Path, Summary: strings.Join(parts, " "), DominantCategory: d.dominant(), Confidence: &confidence,
			ConfidenceReason: "the note was not handed in",
		}
		if one.Summary == "" {
			one.Summary, one.DominantCategory = w.describer().mechanical(d), "unknown"
		}
		one.Summary = content.Clip(one.Summary, maxSummary)
		n.Dirs = append(n.Dirs, one)
	}
	if len(n.Dirs) == 0 {
		return w.giveBack(o)
	}
	_, _, err := w.acceptance().accept(o, n)
	return err
}

// think has the Thinker work on orders. The call waits for it for a slice; the work goes on between calls.
func (w thinking) think() error {
	d, err := w.i.driverOf(w.work)
	if err != nil {
		return err
	}
	timer := time.NewTimer(w.i.options.Slice)
	defer timer.Stop()
	// The next call starts a new one; another call that waited for this one may have done so.
	forget := func() { w.i.drivers.CompareAndDelete(w.meta.ID, d) }
	select {
	case <-d.done:
		forget()
		if d.err != nil {
			return d.err
		}
		text := fmt.Sprintf("done: %s; investigate path=%s show=report shows the report\n", w.name(), w.name())
		if d.failed != nil {
			text = fmt.Sprintf("the endpoint was given up (%s): the rest is described by its files alone; investigate path=%s "+
				"show=report shows the report\n", content.ClipBytes(d.failed.Error(), 200), w.name())
		}
		return w.out.Page().Text([]byte(text))
	case <-w.ctx.Done():
		d.stop()
		<-d.done
		forget()
		return context.Cause(w.ctx)
	case <-timer.C:
	}
	return w.out.Page().Text(fmt.Appendf(nil, "%s: order %d of ~%d; the endpoint works on, call again to continue\n",
		w.name(), d.number.Load(), d.orders.Load()))
}

// driverOf returns the driver of an investigation, and starts it if there is none.
func (i *Investigator) driverOf(w *work) (*driver, error) {
	d, err := w.thinking().newDriver(Caller{Owner: w.in.Owner, Count: w.tokens})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	d.stop, d.done = stop, make(chan struct{})
	d.number.Store(1)
	d.orders.Store(1)
	d.progress = func(done, total int64, _ string) {
		d.number.Store(done + 1)
		d.orders.Store(total)
	}
	if before, runs := i.drivers.LoadOrStore(w.meta.ID, d); runs {
		stop()
		return before.(*driver), d.root.Close()
	}
	go func() {
		defer close(d.done)
		panics.Into(&d.err, func() { d.err = d.run(ctx) })
	}()
	return d, nil
}
