package investigate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Caller is who looks at investigations without calling the tool: the command line, resources.
type Caller struct {
	Sources source.Set
	Owner   string
	Count   func(text string) int // of tokens
}

// workFor returns the state of work that answers no call of the tool.
func (i *Investigator) workFor(ctx context.Context, c Caller) *work {
	in := tools.Input{Sources: c.Sources, Owner: c.Owner}
	return &work{i: i, ctx: ctx, in: in, out: tools.Discard{}, now: time.Now, tokens: c.Count}
}

// ErrNone is the error for a directory that nobody has investigated.
var ErrNone = errors.New("no investigation")

// Meta describes an investigation.
type Meta = entries.Meta

// named returns the investigation of a directory or inv:ID. An error begins with what the name is of.
func (i *Investigator) named(c Caller, of, name string) (*entries.Investigation, error) {
	inv, _, err := i.find(c.Sources, c.Owner, name)
	if errors.Is(err, entries.ErrUnknown) {
		err = fmt.Errorf("%s: %w", content.ClipBytes(strings.TrimSpace(of+name), 200), ErrNone)
	}
	return inv, err
}

// on runs do on an investigation that exists, named by directory or inv:ID.
func (i *Investigator) on(ctx context.Context, c Caller, name string, do func(w *work) error) error {
	if err := i.mayKeep(true); err != nil {
		return err
	}
	w := i.workFor(ctx, c)
	var err error
	if w.inv, err = i.named(c, "investigation ", name); err != nil {
		return err
	}
	if err := w.resolve(); err != nil {
		return err
	}
	unlock, err := w.inv.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.load(false); err != nil {
		return err
	}
	return do(w)
}

// List returns the investigations of an identity, the last used first.
func (i *Investigator) List(owner string) ([]Meta, error) {
	if err := i.mayKeep(true); err != nil {
		return nil, err
	}
	return i.store.List(owner)
}

// View returns the status, flags, weak entries or report of an investigation as text.
func (i *Investigator) View(ctx context.Context, c Caller, name, what string) (text string, err error) {
	err = i.on(ctx, c, name, func(w *work) error {
		text, _, err = w.views().view(what)
		return err
	})
	return text, err
}

// Report returns the report of an investigation.
func (i *Investigator) Report(ctx context.Context, c Caller, name string) (r Report, err error) {
	err = i.on(ctx, c, name, func(w *work) error {
		r, err = w.reports().makeReport()
		return err
	})
	return r, err
}

// makeReport makes the report and keeps it for inv:ID/report.
func (w reports) makeReport() (Report, error) {
	r, err := w.report()
	if err == nil {
		err = w.inv.Write(entries.ShownName, r)
	}
	if err == nil {
		err = evaluate(w.work)
	}
	return r, err
}

// Remove deletes an investigation and returns its ID.
func (i *Investigator) Remove(c Caller, name string) (id string, err error) {
	if err := i.mayKeep(false); err != nil {
		return "", err
	}
	inv, err := i.named(c, "", name)
	if err != nil {
		return "", err
	}
	m, err := inv.Meta()
	if err == nil {
		err = i.store.Remove(c.Owner, m.ID)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", content.ClipBytes(name, 200), err)
	}
	return m.ID, nil
}

// Verification is what looking at all notes again found.
type Verification struct {
	ID        string   `json:"id"`
	Entries   int      `json:"entries"`
	Citations int      `json:"citations"`
	Stale     []string `json:"stale"`  // entries of another state of the tree
	Lost      []string `json:"lost"`   // citations that held and no longer do, as "entry: citation"
	Absent    []string `json:"absent"` // other citations that are not there, likewise
}

// Holds reports whether nothing is out of date and nothing that is cited is absent.
func (v Verification) Holds() bool { return len(v.Stale)+len(v.Lost)+len(v.Absent) == 0 }

// Text is the verification in lines.
func (v Verification) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "inv:%s: %s, %s looked up\n", v.ID, content.Plural(int64(v.Entries), "entry", "entries"),
		content.Plural(int64(v.Citations), "citation", "citations"))
	for _, s := range v.Stale {
		fmt.Fprintf(&b, "out of date: %s\n", content.VisibleLine(s))
	}
	for _, s := range v.Lost {
		fmt.Fprintf(&b, "no longer holds: %s\n", content.VisibleLine(s))
	}
	for _, s := range v.Absent {
		fmt.Fprintf(&b, "not there: %s\n", content.VisibleLine(s))
	}
	if v.Holds() {
		b.WriteString("all hold\n")
	}
	return b.String()
}

// Verify looks up every citation again and compares every entry with the tree.
func (i *Investigator) Verify(ctx context.Context, c Caller, name string) (v Verification, err error) {
	err = i.on(ctx, c, name, func(w *work) error {
		v.ID, v.Stale, v.Lost, v.Absent = w.meta.ID, []string{}, []string{}, []string{}
		v.Entries = len(w.gone) + len(w.notes) + len(w.files)
		for _, p := range w.gone {
			v.Stale = append(v.Stale, p+" is gone")
		}
		for _, p := range sorted(w.notes) {
			if fresh, _ := w.fresh(p); !fresh {
				v.Stale = append(v.Stale, p)
			}
		}
		for _, p := range sorted(w.files) {
			if file := w.file(p); file == nil || file.Hash != w.files[p].Fingerprint {
				v.Stale = append(v.Stale, p)
			}
		}
		err := w.recheck(true, func(c claim, now []evidence.Citation) {
			v.Citations += len(now)
			for _, x := range now {
				if text := c.entry + ": " + citedText(x); x.Verdict != evidence.Holds && c.held(x) {
					v.Lost = append(v.Lost, text)
				} else if x.Verdict == evidence.Absent {
					v.Absent = append(v.Absent, text)
				}
			}
		})
		return cmp.Or(err, ctx.Err())
	})
	return v, err
}
