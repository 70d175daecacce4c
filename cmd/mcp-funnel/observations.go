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
	"github.com/mcp-funnel/mcp-funnel/internal/source"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

type observationsCmd struct {
	AnyOwner bool `env:"-" help:"Include the observations of the identities of --token-file, not only those of the command line and stdio."`

	List   obsList   `cmd:"" help:"List observations, newest first."`
	Show   obsShow   `cmd:"" help:"Show the sidecar of an observation as JSON, and its receipt."`
	Cat    obsCat    `cmd:"" help:"Print an observation, byte for byte."`
	Verify obsVerify `cmd:"" help:"Read the data again and compare their SHA-256: of the given observations, or of all."`
	Pin    obsPin    `cmd:"" help:"Protect an observation from expiry and from removal for room; --off ends that."`
	Unpin  obsUnpin  `cmd:"" help:"End the protection of an observation."`
	Prune  obsPrune  `cmd:"" help:"Expire observations that are too old or exceed the quota, except those used within the last minute."`
	Rm     obsRm     `cmd:"" help:"Delete the data of observations, pinned ones after a question; their IDs still name the calls that made them."`
}

// openStore opens the store for commands that cannot work without it.
func (s *Settings) openStore() (*observations.Store, error) {
	return observations.OpenStore(s.options().Store)
}

// withStore runs do with the store open.
func (s *Settings) withStore(do func(*observations.Store) error) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return do(store)
}

// explainWrite adds to the error of a change what to do if the store cannot be written to.
func explainWrite(store *observations.Store, err error) error {
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

// forEachID runs do for every ID, also after an error; it fails at the end if any of them failed.
func forEachID(w *streams, words []string, do func(observations.ID) error) error {
	ids, err := parseIDs(words)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if e := do(id); e != nil {
			printMessage(w.err, explain(id, e))
			err = errFailed
		}
	}
	return err
}

// forEachInStore is forEachID for commands that use the store for nothing else.
func forEachInStore(
	s *Settings, w *streams, words []string, do func(*observations.Store, observations.ID) error,
) error {
	return s.withStore(func(store *observations.Store) error {
		return forEachID(w, words, func(id observations.ID) error { return do(store, id) })
	})
}

// owner returns the owner to use for an observation: that of the command line, or with --any-owner the one it has.
func (c *observationsCmd) owner(store *observations.Store, id observations.ID) string {
	if c.AnyOwner {
		if owner, err := store.Owner(id); err == nil {
			return owner
		}
	}
	return observations.Local
}

// list returns the observations in the store, and how many are left out because they belong to other owners.
func (c *observationsCmd) list(
	store *observations.Store, tombstones bool,
) (list []observations.Observation, others int, err error) {
	if list, err = store.List("", tombstones); err != nil || c.AnyOwner {
		return list, 0, err
	}
	all := len(list)
	list = slices.DeleteFunc(list, func(o observations.Observation) bool { return o.Owner != observations.Local })
	return list, all - len(list), nil
}

// reportOthers reports on standard error how many observations were left out.
func reportOthers(w *streams, others int, verb string) {
	if others > 0 {
		printMessage(w.err, observationsText(others)+" of other identities: --any-owner "+verb+" them too")
	}
}

// explain adds to an error of the store which command helps.
func explain(id observations.ID, err error) error {
	switch {
	case errors.Is(err, observations.ErrNotFound):
		return fmt.Errorf(
			"obs:%s: %w; observations list shows those there are, with --any-owner those of other identities too", id,
			observations.ErrNotFound,
		)
	case errors.Is(err, observations.ErrDamaged): // the error names the observation
		return fmt.Errorf("%w; repeat the call that made it, and delete it with mcp-funnel observations rm %s", err, id)
	case errors.Is(err, errUnwritable):
		return fmt.Errorf("obs:%s: %w", id, err)
	}
	return source.ExplainObservation(id, err)
}

type obsList struct {
	All  bool `env:"-" help:"Include expired observations and those whose data are missing."`
	JSON bool `env:"-" name:"json" help:"Print one JSON object per line."`
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
	defer reportOthers(w, others, "lists")
	if l.JSON {
		for _, o := range list {
			if err := writeJSON(w.out, listed{s.maskFields(o), o.Pinned, o.Lost}, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.out, "nothing is kept in", inLine(store.Dir()))
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0) // it writes at Flush, which returns the error
	head, whose := "ID\tMADE\tTOOL\tKIND\tLINES\tBYTES\t", func(observations.Observation) string { return "" }
	if of.AnyOwner {
		head, whose = head+"OWNER\t", func(o observations.Observation) string { return inLine(o.Owner) + "\t" }
	}
	_, _ = fmt.Fprintln(t, head+"NAME")
	for _, o := range list {
		o = s.maskFields(o)
		_, _ = fmt.Fprintf(t, "obs:%s\t%s\t%s\t%s\t%d\t%d\t%s%s\n", o.ID, o.Created.Local().Format(listTime),
			inLine(o.Tool), inLine(o.Stats.Kind), o.Stats.Lines, o.Bytes, whose(o), inLine(label(o)))
	}
	return t.Flush()
}

// listTime is local time with its offset from UTC: errors and files of the store name times in UTC.
const listTime = "2006-01-02 15:04:05 -07:00"

// listed is the JSON of an observation, with facts that its sidecar does not hold.
type listed struct {
	observations.Observation
	Pinned bool `json:"pinned,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// label returns the name or else the call of an observation, after its state in brackets.
func label(o observations.Observation) string {
	label := o.Name
	if label == "" && len(o.Args) > len("{}") {
		label = string(o.Args)
	}
	label = content.Clip(label, 60) // the state below is never clipped
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

// maskFields returns an observation with the secrets in its name, arguments, origin and receipt masked.
func (s *Settings) maskFields(o observations.Observation) observations.Observation {
	mask := s.masker()
	o.Name, _ = mask.String(o.Name)
	o.Cause, _ = mask.String(o.Cause)
	o.Stats.Receipt, _ = mask.String(o.Stats.Receipt)
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
	return forEachInStore(s, w, []string{c.ID}, func(store *observations.Store, id observations.ID) error {
		o, err := store.Stat(of.owner(store, id), id)
		if err != nil {
			return err
		}
		o = s.maskFields(o)
		receipt := content.Visible(o.Stats.Receipt, false)
		o.Stats.Receipt = ""
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
	return forEachInStore(s, w, c.IDs, func(store *observations.Store, id observations.ID) error {
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
	Off bool     `env:"-" help:"Remove the pin."`
}

func (c *obsPin) Run(s *Settings, w *streams, of *observationsCmd) error {
	return forEachInStore(s, w, c.IDs, func(store *observations.Store, id observations.ID) error {
		return explainWrite(store, store.Pin(of.owner(store, id), id, !c.Off))
	})
}

type obsUnpin struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsUnpin) Run(s *Settings, w *streams, of *observationsCmd) error {
	return (&obsPin{IDs: c.IDs, Off: true}).Run(s, w, of)
}

type obsPrune struct {
	DryRun bool `env:"-" name:"dry" help:"Only report what would be removed."`
}

func (c *obsPrune) Run(s *Settings, w *streams) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	p, err := store.Prune(c.DryRun)
	if err != nil {
		return explainWrite(store, err)
	}
	verb := "removed"
	if c.DryRun {
		verb = "would remove"
	}
	_, err = fmt.Fprintf(
		w.out, "%s %s, %s; %d stay, %s%s\n", verb, observationsText(p.Removed), bytesText(p.Bytes), p.Kept,
		bytesText(p.KeptBytes), sparedText(p),
	)
	return err
}

// sparedText says how many observations over a limit were not removed, and why; "" if none.
func sparedText(p observations.Pruned) string {
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
