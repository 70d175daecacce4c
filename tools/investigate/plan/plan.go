// Package plan decides in which pieces and in which order the directories of a tree are looked at. Everything in it is
// pure: the same tree and plan give the same orders.
package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Tier is how closely a directory is looked at.
type Tier string

// The tiers.
const (
	Priority Tier = "priority"
	Default  Tier = "default"
	Shallow  Tier = "shallow"
	Skip     Tier = "skip"
)

// The orders in which a plan works.
const (
	LeafFirst     = "leaf-first"
	PriorityFirst = "priority-first"
)

// Turns of a directory by tier.
const (
	minTurns      = 5
	maxTurns      = 25
	priorityTurns = 15 // where a plan says nothing
	DefaultTurns  = 10
	shallowTurns  = 5
)

// Limits of a plan that somebody hands in.
const (
	maxNamed = 2000
	maxText  = 4000 // bytes of a reason or of the notes
)

// NamedDir is a directory that a plan names. In JSON a bare string is one too.
type NamedDir struct {
	Path           string `json:"path"`
	Reason         string `json:"reason,omitempty"`
	SuggestedTurns int    `json:"suggested_turns,omitempty"` // of a priority directory: 5–25; 0: 15
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *NamedDir) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &d.Path) == nil {
		return nil
	}
	type plain NamedDir
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	return in.Decode((*plain)(d))
}

// Plan says which directories matter. The zero value is the default plan.
type Plan struct {
	PriorityDirs []NamedDir `json:"priority_dirs,omitempty"`
	ShallowDirs  []NamedDir `json:"shallow_dirs,omitempty"`
	SkipDirs     []NamedDir `json:"skip_dirs,omitempty"`
	Order        string     `json:"investigation_order,omitempty"` // leaf-first, the default, or priority-first
	MaxOrders    int        `json:"max_orders,omitempty"`          // 0: no limit
	Notes        string     `json:"notes,omitempty"`
	Confidence   float64    `json:"confidence"` // 0 for a synthetic plan
	By           string     `json:"by,omitempty"`
}

// list is the directories of one tier.
type list struct {
	tier Tier
	dirs []NamedDir
}

// lists returns the directories that the plan names, by tier.
func (p *Plan) lists() []list {
	return []list{{Priority, p.PriorityDirs}, {Shallow, p.ShallowDirs}, {Skip, p.SkipDirs}}
}

// Texts returns the texts of a plan that may cite.
func (p *Plan) Texts() []*string {
	texts := []*string{&p.Notes}
	for _, l := range p.lists() {
		for i := range l.dirs {
			texts = append(texts, &l.dirs[i].Reason)
		}
	}
	return texts
}

// Check returns what is wrong with a plan that was handed in. Paths that do not exist are no fault: [Plan.Apply]
// reports them.
func (p *Plan) Check() error {
	switch {
	case p.Order != "" && p.Order != LeafFirst && p.Order != PriorityFirst:
		return fmt.Errorf("plan.investigation_order: %.40q is none of %s and %s", p.Order, LeafFirst, PriorityFirst)
	case p.MaxOrders < 0:
		return errors.New("plan.max_orders: it must be at least 0")
	case len(p.PriorityDirs)+len(p.ShallowDirs)+len(p.SkipDirs) > maxNamed:
		return fmt.Errorf("plan: it names over %d directories", maxNamed)
	case len(p.Notes) > maxText:
		return fmt.Errorf("plan.notes: %d bytes; at most %d", len(p.Notes), maxText)
	}
	for _, l := range p.lists() {
		for i, d := range l.dirs {
			if d.Path == "" || len(d.Reason) > maxText {
				return fmt.Errorf("plan.%s_dirs[%d]: a path is required, and a reason has at most %d bytes", l.tier, i, maxText)
			}
		}
	}
	return nil
}

// Dir is one directory of the tree.
type Dir struct {
	Path   string   // slash path; "." for the tree itself
	Subs   []string // paths of its directories, sorted
	Files  int      // of its own
	Tokens int64    // of their texts
	Value  int64    // bytes of its own sources: more of them are worth an order sooner
	Keep   bool     // holds nothing that an order would improve: fixtures, generated files, nothing at all
}

// Assigned is what a plan means for one directory.
type Assigned struct {
	Path   string `json:"path"`
	Tier   Tier   `json:"tier"`
	Turns  int    `json:"turns"`
	Reason string `json:"reason,omitempty"`
}

// Unit is what one order covers: directories that are looked at together, parents before what is below them.
type Unit struct {
	Dirs  []Assigned `json:"dirs"`
	Files int        `json:"files"`
	Turns int        `json:"turns"` // the most of its directories
	Tier  Tier       `json:"tier"`

	tokens, value int64
}

// Top returns the first directory of the unit, which contains most of the others.
func (u *Unit) Top() string { return u.Dirs[0].Path }

// Applied is a plan applied to a tree. Each directory is in exactly one of Units, Skipped, Kept and Dropped.
type Applied struct {
	Units   []Unit     // in the order of work: the units of child directories come first
	Skipped []Assigned // with the plan's reason
	Kept    []string   // directories whose mechanical note is enough
	Dropped []string   // directories for which max_orders leaves no order
	Unknown []string   // paths of the plan that do not exist
}

// Directories share an order up to so many files, directories (the order names them all) and tokens (the turns of an
// order read about as many).
const (
	bundle       = 40
	bundleDirs   = 12
	bundleTokens = 20_000
)

// Apply assigns each directory a tier and turns, bundles small ones, and orders the units. dir returns the directory of
// a path, nil if there is none; resolve returns the path that a name of the plan means.
func (p Plan) Apply(dir func(path string) *Dir, resolve func(name string) string) Applied {
	a := &applier{plan: p, dir: dir, named: map[string]Assigned{}}
	a.readPlan(resolve)
	a.emit(a.build(".", Assigned{Tier: Default, Turns: DefaultTurns}))
	a.out.Units = a.order()
	slices.Sort(a.out.Kept)
	return a.out
}

// applier is the state of Apply.
type applier struct {
	plan  Plan
	dir   func(path string) *Dir
	named map[string]Assigned // by the plan: the most specific one wins
	units []Unit
	out   Applied
}

// readPlan resolves the paths of the plan. Of several entries for one directory the one that asks for more counts.
func (a *applier) readPlan(resolve func(name string) string) {
	for _, l := range a.plan.lists() {
		for _, d := range l.dirs {
			turns := 0
			switch l.tier {
			case Priority:
				turns = min(max(cmp.Or(d.SuggestedTurns, priorityTurns), minTurns), maxTurns)
			case Shallow:
				turns = shallowTurns
			}
			at := resolve(d.Path)
			if a.dir(at) == nil {
				a.out.Unknown = append(a.out.Unknown, d.Path)
			} else if before, twice := a.named[at]; !twice || before.Turns < turns {
				a.named[at] = Assigned{at, l.tier, turns, d.Reason}
			}
		}
	}
}

// build makes the units of a directory and of all below it. It returns the unit at the top if that may still be bundled
// with others, else nil. from is what the plan's most specific path above says. It holds for what is below, too, but
// for Priority.
func (a *applier) build(dir string, from Assigned) *Unit {
	if named, ok := a.named[dir]; ok {
		from = named
	}
	own, d := from, a.dir(dir)
	own.Path = dir
	if from.Tier == Priority {
		from = Assigned{Tier: Default, Turns: DefaultTurns}
	}
	var open []*Unit
	for _, child := range d.Subs {
		if u := a.build(child, from); u != nil {
			open = append(open, u)
		}
	}
	switch {
	case own.Tier == Skip:
		a.out.Skipped = append(a.out.Skipped, own)
		a.pack(open)
		return nil
	case d.Keep && len(open) == 0:
		a.out.Kept = append(a.out.Kept, dir)
		return nil
	}
	u := &Unit{Dirs: []Assigned{own}, Files: d.Files, Turns: own.Turns, Tier: own.Tier, tokens: d.Tokens, value: d.Value}
	if own.Tier == Priority {
		a.pack(open)
		a.emit(u)
		return nil
	}
	all, same := *u, true
	for _, o := range open {
		all.add(o)
		same = same && o.Tier == u.Tier
	}
	switch {
	case same && all.small():
		return &all
	case !u.small():
		a.emit(u)
		u = nil
	}
	a.pack(open)
	return u
}

// small reports whether a unit may be one of several in an order.
func (u *Unit) small() bool {
	return u.Files <= bundle && len(u.Dirs) <= bundleDirs && u.tokens <= bundleTokens
}

func (u *Unit) add(o *Unit) {
	u.Dirs = append(u.Dirs, o.Dirs...)
	u.Files += o.Files
	u.Turns = max(u.Turns, o.Turns)
	u.tokens += o.tokens
	u.value += o.value
}

// pack emits siblings, several in one unit as long as they are small.
func (a *applier) pack(open []*Unit) {
	var packed []*Unit
next:
	for _, o := range open {
		for _, p := range packed {
			both := Unit{}
			both.add(p)
			if both.add(o); p.Tier == o.Tier && both.small() {
				p.add(o)
				continue next
			}
		}
		packed = append(packed, o)
	}
	for _, p := range packed {
		a.emit(p)
	}
}

func (a *applier) emit(u *Unit) {
	if u != nil {
		a.units = append(a.units, *u)
	}
}
