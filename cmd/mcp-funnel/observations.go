package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type observationsCmd struct {
	List   obsList   `cmd:"" help:"List what is kept, newest first."`
	Show   obsShow   `cmd:"" help:"Show what is known of one: its sidecar as JSON, and its receipt."`
	Cat    obsCat    `cmd:"" help:"Print one, byte for byte."`
	Verify obsVerify `cmd:"" help:"Read the data again and compare sha256: of those named, or of all."`
	Pin    obsPin    `cmd:"" help:"Keep from expiry and from making room; --off lets go."`
	Prune  obsPrune  `cmd:"" help:"Expire what is too old or too much now."`
	Rm     obsRm     `cmd:"" help:"Delete the data; the ID goes on saying which call made it."`
}

// openStore is for commands that are about the store: here it must open.
func (s *Settings) openStore() (*observations.Store, error) {
	return observations.OpenStore(s.storeOptions())
}

// changed words the error of a change in a store, where that cannot be written to.
func changed(store *observations.Store, err error) error {
	if err == nil || store.Unwritable() == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return fmt.Errorf("%w: %s: %w: make it writable, or choose another with --store", errUnwritable, store.Dir(), err)
}

var errUnwritable = errors.New("the store cannot be written to")

func parseIDs(words []string) ([]observations.ID, error) {
	ids := make([]observations.ID, len(words))
	for i, word := range words {
		id, err := observations.ParseID(word)
		if err != nil {
			return nil, usagef("%w; observations list shows those there are", err)
		}
		ids[i] = id
	}
	return ids, nil
}

// each runs do for every ID and goes on after an error; it fails at the end if any failed.
func each(w *streams, words []string, do func(observations.ID) error) error {
	ids, err := parseIDs(words)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if e := do(id); e != nil {
			complain(w.err, explain(id, e))
			err = errFailed
		}
	}
	return err
}

// explain words an error of the store for a person at a terminal.
func explain(id observations.ID, err error) error {
	if errors.Is(err, observations.ErrNotFound) {
		return fmt.Errorf("obs:%s: %w; observations list shows those there are", id, observations.ErrNotFound)
	}
	if errors.Is(err, observations.ErrDamaged) { // it says of which
		return fmt.Errorf("%w; repeat the call that made it, and let go of it by: mcp-funnel observations rm %s", err, id)
	}
	if errors.Is(err, errUnwritable) {
		return fmt.Errorf("obs:%s: %w", id, err)
	}
	return tools.Explain(id, err)
}

type obsList struct {
	All  bool `env:"-" help:"Expired ones too."`
	JSON bool `env:"-" name:"json" help:"One JSON object a line."`
}

func (l *obsList) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	list, err := store.List(observations.Local, l.All)
	if err != nil {
		return err
	}
	if l.JSON {
		e := json.NewEncoder(w.out)
		for _, o := range list {
			if err := e.Encode(s.bare(o)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.out, "nothing is kept in", store.Dir())
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0) // it writes, and may fail, at its flush
	_, _ = fmt.Fprintln(t, "ID\tMADE\tTOOL\tKIND\tLINES\tBYTES\tNAME")
	for _, o := range list {
		o = s.bare(o)
		mark := o.Name
		if mark == "" && len(o.Args) > 2 {
			mark = string(o.Args)
		}
		if o.Pinned {
			mark = "[pinned] " + mark
		}
		if o.Expired != nil {
			mark = "[expired] " + mark
		}
		if o.Dropped > 0 {
			mark = fmt.Sprintf("[in part, of %d bytes] %s", o.Bytes+o.Dropped, mark)
		}
		_, _ = fmt.Fprintf(t, "obs:%s\t%s\t%s\t%s\t%d\t%d\t%s\n", o.ID, o.Created.Local().Format("2006-01-02 15:04:05"), o.Tool, o.Seen.Kind, o.Seen.Lines, o.Bytes, content.Visible(content.Clip(mark, 60), false))
	}
	return t.Flush()
}

// bare is what is known of an observation with its secrets masked: its call may have named some.
func (s *Settings) bare(o observations.Observation) observations.Observation {
	mask := s.masker()
	o.Name, _ = mask.String(o.Name)
	o.Cause, _ = mask.String(o.Cause)
	o.Seen.Receipt, _ = mask.String(o.Seen.Receipt)
	o.Origin = slices.Clone(o.Origin)
	for i := range o.Origin {
		o.Origin[i], _ = mask.String(o.Origin[i])
	}
	if len(o.Args) > 0 {
		o.Args = mask.JSON(o.Args)
	}
	return o
}

type obsShow struct {
	ID string `arg:"" help:"obs:ID or ID."`
}

func (c *obsShow) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, []string{c.ID}, func(id observations.ID) error {
		o, err := store.Look(observations.Local, id)
		if err != nil {
			return err
		}
		o = s.bare(o)
		receipt := content.Visible(o.Seen.Receipt, false)
		o.Seen.Receipt = ""
		e := json.NewEncoder(w.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(o); err != nil {
			return err
		}
		if receipt != "" {
			_, err = fmt.Fprintf(w.out, "\n%s\n", receipt)
		}
		return err
	})
}

type obsCat struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsCat) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error {
		r, err := store.Open(observations.Local, id)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		_, err = io.Copy(w.out, io.NewSectionReader(r, 0, r.Size()))
		return err
	})
}

type obsVerify struct {
	IDs []string `arg:"" name:"id" optional:"" help:"obs:ID or ID; none: all."`
}

func (c *obsVerify) Run(ctx context.Context, s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	words := c.IDs
	var halves []observations.ID
	if len(words) == 0 {
		if halves, err = store.Damaged(); err != nil {
			return err
		}
		list, err := store.List(observations.Local, false)
		if err != nil {
			return err
		}
		for _, o := range list {
			words = append(words, string(o.ID))
		}
	}
	good, bar := 0, newBar(w.err, "verify")
	err = each(w, words, func(id observations.ID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := store.Verify(observations.Local, id); err != nil {
			return err
		}
		good++
		bar.progress(int64(good), int64(len(words)), "observations")
		return nil
	})
	bar.end()
	if err != nil && !errors.Is(err, errFailed) { // no ID was looked at
		return err
	}
	for _, id := range halves {
		if _, e := fmt.Fprintf(w.err, "mcp-funnel: obs:%s: %v: its data or its sidecar is missing or unreadable; repeat the call that made it\n", id, observations.ErrDamaged); e != nil {
			return e
		}
		err = errFailed
	}
	if _, e := fmt.Fprintf(w.out, "%d of %d intact\n", good, len(words)+len(halves)); e != nil {
		return e
	}
	return err
}

type obsPin struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
	Off bool     `env:"-" help:"Let go of it."`
}

func (c *obsPin) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error { return changed(store, store.Pin(observations.Local, id, !c.Off)) })
}

type obsPrune struct {
	DryRun bool `env:"-" name:"dry" help:"Only say what would go."`
}

func (c *obsPrune) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	p, err := store.Prune(c.DryRun)
	if err != nil {
		return changed(store, err)
	}
	verb := "removed"
	if c.DryRun {
		verb = "would remove"
	}
	_, err = fmt.Fprintf(w.out, "%s %s, %s; %d stay, %s\n", verb, observationsText(int64(p.Removed)), bytesText(p.Bytes), p.Kept, bytesText(p.KeptBytes))
	return err
}

type obsRm struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsRm) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error {
		o, err := store.Look(observations.Local, id)
		if err == nil || !errors.Is(err, observations.ErrExpired) {
			err = store.Remove(observations.Local, id)
		}
		switch {
		case errors.Is(err, observations.ErrExpired): // it is gone already, as was asked
			return nil
		case err == nil && o.Pinned:
			complain(w.err, "removed obs:"+string(id)+", which was pinned")
		}
		return changed(store, err)
	})
}

// observationsText is a number of them.
func observationsText(n int64) string {
	if n == 1 {
		return "1 observation"
	}
	return fmt.Sprintf("%d observations", n)
}

// bytesText is a size as people read it: 1.5 MiB.
func bytesText(n int64) string {
	const units = "KMGT"
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	v, u := float64(n)/(1<<10), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

// shortTime is a duration as people read it.
func shortTime(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
