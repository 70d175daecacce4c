package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	writing "github.com/mcp-funnel/mcp-funnel/tools/write"
)

type observationsCmd struct {
	AnyOwner bool `env:"-" help:"Include the observations of the identities of --token-file, not only those of the command line and stdio."`

	List   obsList   `cmd:"" help:"List observations, newest first."`
	Show   obsShow   `cmd:"" help:"Show the sidecar of an observation as JSON, and its receipt."`
	Cat    obsCat    `cmd:"" help:"Print an observation, byte for byte."`
	Verify obsVerify `cmd:"" help:"Read the data again and compare their SHA-256: of the given observations, or of all."`
	Pin    obsPin    `cmd:"" help:"Protect an observation from expiry and from removal for room; --off ends that."`
	Unpin  obsUnpin  `cmd:"" help:"End the protection of an observation."`
	Rename obsRename `cmd:"" help:"Name an observation; lists and pages show the name."`
	Prune  obsPrune  `cmd:"" help:"Expire observations that are too old, and the least recently used while those listed exceed --quota, except those used within the last minute."`
	Rm     obsRm     `cmd:"" help:"Delete the data of observations, pinned ones after a question; their IDs still name the calls that made them."`
}

func parseIDs(words []string) ([]observations.ID, error) {
	ids := make([]observations.ID, len(words))
	for i, word := range words {
		id, err := observations.ParseID(word)
		if err != nil {
			return nil, cli.Usagef("%w; observations list shows those there are", err)
		}
		ids[i] = id
	}
	return ids, nil
}

// forEachID runs do for every ID, also after an error. It prints each error, and returns cli.ErrFailed after any.
func forEachID(w *cli.Streams, ids []observations.ID, do func(observations.ID) error) (err error) {
	for _, id := range ids {
		if e := do(id); e != nil {
			cli.PrintMessage(w.Err, explain(id, e))
			err = cli.ErrFailed
		}
	}
	return err
}

// forEachInStore is forEachID for the IDs of a command line, and for commands that use the store for nothing else.
func forEachInStore(
	s *cli.Settings, w *cli.Streams, words []string, do func(*observations.Store, observations.ID) error,
) error {
	return s.WithStore(func(store *observations.Store) error {
		ids, err := parseIDs(words)
		if err != nil {
			return err
		}
		return forEachID(w, ids, func(id observations.ID) error { return do(store, id) })
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
func reportOthers(w *cli.Streams, others int, verb string) {
	if others > 0 {
		cli.PrintMessage(w.Err, cli.ObservationsText(others)+" of other identities: --any-owner "+verb+" them too")
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
	case errors.Is(err, cli.ErrUnwritable):
		return fmt.Errorf("obs:%s: %w", id, err)
	}
	return source.ExplainObservation(id, err)
}

type obsList struct {
	All     bool `env:"-" help:"Include expired observations and those whose data are missing."`
	Changes bool `env:"-" help:"List the changes of files that can be undone: what was changed, when, by which session."`
	JSON    bool `env:"-" name:"json" help:"Print one JSON object per line."`
}

func (l *obsList) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return s.WithStore(func(store *observations.Store) error { return l.print(s, w, of, store) })
}

func (l *obsList) print(s *cli.Settings, w *cli.Streams, of *observationsCmd, store *observations.Store) error {
	list, others, err := of.list(store, l.All)
	if err != nil {
		return err
	}
	defer reportOthers(w, others, "lists")
	if l.Changes {
		list = onlyChanges(list)
	}
	if l.JSON {
		for _, o := range list {
			if err := cli.WriteJSON(w.Out, listed{maskFields(s, o), o.Pinned, o.Lost}, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		what := "nothing"
		if l.Changes {
			what = "no change of a file"
		}
		_, err := fmt.Fprintln(w.Out, what, "is kept in", cli.InLine(store.Dir()))
		return err
	}
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0) // it writes at Flush, which returns the error
	if l.Changes {
		_, _ = fmt.Fprintln(t, "ID\tMADE\tCHANGE\tFILE\tBYTES BEFORE\tSESSION")
		for _, o := range list {
			c, _ := writing.ChangeOf(&o)
			files, _ := s.Masker().String(c.Files())
			_, _ = fmt.Fprintf(t, "obs:%s\t%s\t%s\t%s\t%d\t%s\n", o.ID, o.Created.Local().Format(listTime), cli.InLine(c.Action),
				cli.InLine(files), o.Bytes, cli.InLine(c.Session))
		}
		return t.Flush()
	}
	head, whose := "ID\tMADE\tTOOL\tKIND\tLINES\tBYTES\t", func(observations.Observation) string { return "" }
	if of.AnyOwner {
		head, whose = head+"OWNER\t", func(o observations.Observation) string { return cli.InLine(o.Owner) + "\t" }
	}
	_, _ = fmt.Fprintln(t, head+"NAME")
	for _, o := range list {
		o = maskFields(s, o)
		_, _ = fmt.Fprintf(t, "obs:%s\t%s\t%s\t%s\t%d\t%d\t%s%s\n", o.ID, o.Created.Local().Format(listTime),
			cli.InLine(o.Tool), cli.InLine(o.Stats.Kind), o.Stats.Lines, o.Bytes, whose(o), cli.InLine(label(o)))
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
func maskFields(s *cli.Settings, o observations.Observation) observations.Observation {
	mask := s.Masker()
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
	if len(o.Stats.State) > 0 {
		o.Stats.State = mask.JSON(o.Stats.State)
	}
	return o
}

type obsShow struct {
	ID string `arg:"" help:"obs:ID or ID."`
}

func (c *obsShow) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return forEachInStore(s, w, []string{c.ID}, func(store *observations.Store, id observations.ID) error {
		o, err := store.Stat(of.owner(store, id), id)
		if err != nil {
			return err
		}
		o = maskFields(s, o)
		receipt := content.Visible(o.Stats.Receipt, false)
		o.Stats.Receipt = ""
		if err := cli.WriteJSON(w.Out, o, "  "); err != nil {
			return err
		}
		if receipt != "" {
			_, err = fmt.Fprintf(w.Out, "\n%s\n", receipt)
		}
		return err
	})
}

type obsCat struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsCat) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return forEachInStore(s, w, c.IDs, func(store *observations.Store, id observations.ID) error {
		r, err := store.Open(of.owner(store, id), id)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		_, err = io.Copy(w.Out, io.NewSectionReader(r, 0, r.Size()))
		return err
	})
}

type obsPin struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
	Off bool     `env:"-" help:"Remove the pin."`
}

func (c *obsPin) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return forEachInStore(s, w, c.IDs, func(store *observations.Store, id observations.ID) error {
		return cli.ExplainWrite(store, store.Pin(of.owner(store, id), id, !c.Off))
	})
}

type obsUnpin struct {
	IDs []string `arg:"" name:"id" help:"obs:ID or ID, one or more."`
}

func (c *obsUnpin) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return (&obsPin{IDs: c.IDs, Off: true}).Run(s, w, of)
}

type obsRename struct {
	ID   string `arg:"" help:"obs:ID or ID."`
	Name string `arg:"" help:"At most 200 bytes; '' removes the name."`
}

func (c *obsRename) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	return forEachInStore(s, w, []string{c.ID}, func(store *observations.Store, id observations.ID) error {
		return cli.ExplainWrite(store, store.Rename(of.owner(store, id), id, c.Name))
	})
}

type obsPrune struct {
	DryRun bool `env:"-" name:"dry" help:"Only report what would be removed."`
}

func (c *obsPrune) Run(s *cli.Settings, w *cli.Streams) error {
	return s.WithStore(func(store *observations.Store) error {
		p, err := store.Prune(c.DryRun)
		if err != nil {
			return cli.ExplainWrite(store, err)
		}
		verb := "removed"
		if c.DryRun {
			verb = "would remove"
		}
		_, err = fmt.Fprintf(w.Out, "%s %s, %s; %d stay, %s%s\n", verb, cli.ObservationsText(p.Removed),
			cli.BytesText(p.Bytes), p.Kept, cli.BytesText(p.KeptBytes), sparedText(p))
		return err
	})
}

// sparedText says how many observations over a limit were not removed, and why; "" if none.
func sparedText(p observations.Pruned) string {
	var why []string
	add := func(n int, text string) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(p.Fresh, "used within the last minute (prune again after it)")
	add(p.Pinned, "pinned")
	add(p.Busy, "in use or not to be removed")
	if len(why) == 0 {
		return ""
	}
	return ", of them, though too old or too much, " + strings.Join(why, ", ")
}
