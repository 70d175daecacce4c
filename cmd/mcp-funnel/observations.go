package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type observationsCmd struct {
	AnyOwner bool `env:"-" help:"Also what belongs to the identities of --token-file, not only to the command line and stdio."`

	List   obsList   `cmd:"" help:"List what is kept, newest first."`
	Show   obsShow   `cmd:"" help:"Show what is known of one: its sidecar as JSON, and its receipt."`
	Cat    obsCat    `cmd:"" help:"Print one, byte for byte."`
	Verify obsVerify `cmd:"" help:"Read the data again and compare sha256: of those named, or of all."`
	Pin    obsPin    `cmd:"" help:"Keep from expiry and from making room; --off lets go."`
	Prune  obsPrune  `cmd:"" help:"Expire what is too old or too much now, but not what was used within the last minute."`
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

// owner is whose an observation is taken to be: of the command line, or with --any-owner of whoever has it.
func (c *observationsCmd) owner(store *observations.Store, id observations.ID) string {
	if c.AnyOwner {
		if owner, err := store.Whose(id); err == nil {
			return owner
		}
	}
	return observations.Local
}

// list is what is kept, and how many of it are left out because they are others'.
func (c *observationsCmd) list(store *observations.Store, tombstones bool) (list []observations.Observation, others int, err error) {
	if list, err = store.List("", tombstones); err != nil || c.AnyOwner {
		return list, 0, err
	}
	all := len(list)
	list = slices.DeleteFunc(list, func(o observations.Observation) bool { return o.Owner != observations.Local })
	return list, all - len(list), nil
}

// tellOthers says on standard error what was left out.
func tellOthers(w *streams, others int, verb string) {
	if others > 0 {
		complain(w.err, observationsText(int64(others))+" of other identities: --any-owner "+verb+" them too")
	}
}

// explain words an error of the store for a person at a terminal.
func explain(id observations.ID, err error) error {
	if errors.Is(err, observations.ErrNotFound) {
		return fmt.Errorf("obs:%s: %w; observations list shows those there are, with --any-owner those of other identities too", id, observations.ErrNotFound)
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
	All  bool `env:"-" help:"Expired ones too, and those whose data are gone."`
	JSON bool `env:"-" name:"json" help:"One JSON object a line."`
}

func (l *obsList) Run(s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	list, others, err := of.list(store, l.All)
	if err != nil {
		return err
	}
	defer tellOthers(w, others, "lists")
	if l.JSON {
		for _, o := range list {
			if err := writeJSON(w.out, listed{s.bare(o), o.Pinned, o.Lost}, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.out, "nothing is kept in", inLine(store.Dir()))
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0) // it writes, and may fail, at its flush
	head, whose := "ID\tMADE\tTOOL\tKIND\tLINES\tBYTES\t", func(observations.Observation) string { return "" }
	if of.AnyOwner {
		head, whose = head+"OWNER\t", func(o observations.Observation) string { return inLine(o.Owner) + "\t" }
	}
	_, _ = fmt.Fprintln(t, head+"NAME")
	for _, o := range list {
		o = s.bare(o)
		_, _ = fmt.Fprintf(t, "obs:%s\t%s\t%s\t%s\t%d\t%d\t%s%s\n", o.ID, o.Created.Local().Format("2006-01-02 15:04:05"),
			inLine(o.Tool), inLine(o.Seen.Kind), o.Seen.Lines, o.Bytes, whose(o), inLine(label(o)))
	}
	return t.Flush()
}

// listed is an observation as JSON, with what its sidecar does not say.
type listed struct {
	observations.Observation
	Pinned bool `json:"pinned,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// label is the name of an observation or the call it comes from, behind what is to be known of it.
func label(o observations.Observation) string {
	label := o.Name
	if label == "" && len(o.Args) > 2 {
		label = string(o.Args)
	}
	label = content.Clip(label, 60) // what is to be known of it stands whole
	if o.Pinned {
		label = "[pinned] " + label
	}
	if o.Expired != nil {
		label = "[expired] " + label
	}
	if o.Lost {
		label = "[damaged: its data are gone] " + label
	}
	if o.Dropped > 0 {
		label = fmt.Sprintf("[in part, of %d bytes] %s", o.Bytes+o.Dropped, label)
	}
	return label
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

func (c *obsShow) Run(s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, []string{c.ID}, func(id observations.ID) error {
		o, err := store.Look(of.owner(store, id), id)
		if err != nil {
			return err
		}
		o = s.bare(o)
		receipt := content.Visible(o.Seen.Receipt, false)
		o.Seen.Receipt = ""
		if err := writeJSON(w.out, o, "  "); err != nil {
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

func (c *obsCat) Run(s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error {
		r, err := store.Open(of.owner(store, id), id)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		_, err = io.Copy(w.out, io.NewSectionReader(r, 0, r.Size()))
		return err
	})
}

type obsPin struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
	Off bool     `env:"-" help:"Let go of it."`
}

func (c *obsPin) Run(s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error { return changed(store, store.Pin(of.owner(store, id), id, !c.Off)) })
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
	_, err = fmt.Fprintf(w.out, "%s %s, %s; %d stay, %s%s\n", verb, observationsText(int64(p.Removed)), bytesText(p.Bytes), p.Kept, bytesText(p.KeptBytes), spared(p))
	return err
}

// spared says what is too old or too much, yet stays, and why; "": nothing.
func spared(p observations.Pruned) string {
	var why []string
	for _, k := range []struct {
		n    int
		text string
	}{
		{p.Fresh, "used within the last minute (prune again after it)"},
		{p.Pinned, "pinned"},
		{p.Busy, "in use or not to be removed"},
	} {
		if k.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", k.n, k.text))
		}
	}
	if len(why) == 0 {
		return ""
	}
	return ", of them, though too old or too much, " + strings.Join(why, ", ")
}

type obsRm struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsRm) Run(s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return each(w, c.IDs, func(id observations.ID) error {
		o, err := store.Look(of.owner(store, id), id)
		if err == nil || !errors.Is(err, observations.ErrExpired) {
			err = store.Remove(of.owner(store, id), id)
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
