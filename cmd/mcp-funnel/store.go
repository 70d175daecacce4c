package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

type storeCmd struct {
	Status  storeStatus  `cmd:"" default:"withargs" help:"Show what is kept where, and how much."`
	Migrate storeMigrate `cmd:"" help:"Bring the tables of --database to the version of this program, as each start does."`
	Copy    storeCopy    `cmd:"" help:"Copy observations, trace and records to another store."`
}

type storeStatus struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (c *storeStatus) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return s.WithKept(func(k *cli.Kept) error {
		u, err := k.Store.Usage()
		r := map[string]any{"store": k.Where(), "observations": u.Observations, "bytes": u.Bytes, "quota": u.Quota}
		text := fmt.Sprintf("store     %s: %s, %s of %s\n", cli.InLine(k.Where()), cli.ObservationsText(u.Observations),
			cli.BytesText(u.Bytes), cli.BytesText(u.Quota))
		if k.Database != nil && err == nil {
			d, wrong := k.Database.Status(ctx)
			alive, failed := k.Database.Replicas(ctx)
			u, err = k.Cache.Usage()
			err = errors.Join(err, wrong, failed)
			r["database"], r["replicas"] = d, alive
			r["cache"] = map[string]any{"dir": k.Cache.Dir(), "bytes": u.Bytes, "quota": u.Quota}
			text += fmt.Sprintf("database  %s, Postgres %s: tables of version %d, this program knows %d\n", d.Where, d.Server,
				d.Schema, d.Known)
			for _, t := range d.Tables {
				text += fmt.Sprintf("          %s: %s, about %d rows\n", t.Name, cli.BytesText(t.Bytes), t.Rows)
			}
			text += fmt.Sprintf("replicas  %s\ncache     %s: %s of %s\n", cmp.Or(strings.Join(alive, ", "), "none"),
				cli.InLine(k.Cache.Dir()), cli.BytesText(u.Bytes), cli.BytesText(u.Quota))
		}
		if err != nil {
			return err
		}
		return show(w, c.JSON, r, func() string { return text })
	})
}

type storeMigrate struct{}

func (storeMigrate) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if !s.IsRemote() {
		return cli.Usagef("a directory has no tables: set --store s3://BUCKET/PREFIX and --database")
	}
	return s.WithKept(func(k *cli.Kept) error {
		d, err := k.Database.Status(ctx)
		if err == nil {
			_, err = fmt.Fprintf(w.Out, "tables of %s: version %d before, %d now\n", d.Where, d.Found, d.Schema)
		}
		return err
	})
}

type storeCopy struct {
	From       string `arg:"" help:"Directory, or s3://BUCKET/PREFIX with --database."`
	To         string `arg:"" help:"The same; what is there stays."`
	ToDatabase string `env:"-" placeholder:"URL" help:"Database of TO, if FROM has another one."`

	skipped bool
}

func (*storeCopy) Help() string {
	return `It copies the observations of all owners with IDs, pins and times, the trace, and records, and verifies all
bytes. What is there already is skipped, so it can be stopped and repeated. Not copied: IDs that have expired, keys and
tokens, budgets of open sessions. Stop the servers of FROM before the last copy: what they store meanwhile may be missed.

  mcp-funnel --database postgres://funnel@db/funnel store copy ~/.local/state/mcp-funnel s3://bucket/prefix`
}

func (c *storeCopy) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	toDatabase := cmp.Or(c.ToDatabase, s.Database)
	if strings.HasPrefix(c.From, remote.Scheme) && strings.HasPrefix(c.To, remote.Scheme) && toDatabase == s.Database {
		return cli.Usagef("two buckets have two databases: add --to-database")
	}
	from, err := c.open(s, c.From, s.Database, "from")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.open(s, c.To, toDatabase, "to")
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	skip := func(what error) {
		c.skipped = true
		cli.PrintMessage(w.Err, fmt.Sprintf("skipped: %v", what))
	}
	if err := c.observations(ctx, s, w, from.Store, to, skip); err != nil {
		return err
	}
	calls, before, err := trace.Copy(from.Trace, to.Trace)
	if err != nil {
		return err
	}
	copied, there, err := records.Copy(from.Records, to.Records, skip)
	if err == nil {
		_, err = fmt.Fprintf(w.Out, "trace: %d calls copied, %d were there\nrecords: %d copied, %d were there\n",
			calls, before, copied, there)
	}
	if err == nil && c.skipped {
		err = cli.ErrFailed
	}
	return err
}

// open opens one of the two stores. Nothing in it expires or makes room, and a bucket has a cache of its own.
func (*storeCopy) open(s *cli.Settings, store, database, side string) (k *cli.Kept, err error) {
	at := *s
	at.Store, at.Database, at.HTTP, at.Quota, at.QuotaPerIdentity, at.MaxAge = store, database, "", 0, 0, 0
	if at.IsRemote() {
		if database == "" {
			return nil, cli.Usagef("%s goes with --database postgres://USER@HOST/NAME", store)
		}
		if at.Cache, err = at.StoreDir(); err != nil {
			return nil, err
		}
		at.Cache = filepath.Join(at.Cache, "copy-"+side)
		return at.OpenKept(nil)
	}
	at.Store = cli.ExpandPath(store)
	if _, err := os.Stat(at.Store); side == "from" && err != nil {
		return nil, err
	}
	if k, err = at.OpenKept(nil); err == nil && side == "to" {
		k.Trace, err = trace.Open(trace.Dir(k.Store.Dir()))
	}
	return k, err
}

// observations copies those of all owners, the oldest first.
func (c *storeCopy) observations(
	ctx context.Context, s *cli.Settings, w *cli.Streams, from *observations.Store, to *cli.Kept, skip func(error),
) error {
	if _, err := to.Store.Prune(false); err != nil { // it removes what a copy that was killed has left
		return err
	}
	list, err := from.List("", true)
	has, wrong := to.Store.List("", true)
	torn, failed := from.Damaged()
	foreign, bad := from.IDs()
	if err := errors.Join(err, wrong, failed, bad); err != nil {
		return err
	}
	there := map[observations.ID]observations.Observation{}
	for _, o := range has {
		there[o.ID] = o
	}
	copied, same, expired, done, total := 0, 0, 0, int64(0), int64(0)
	for i, o := range list {
		delete(foreign, o.ID)
		old, found := there[o.ID]
		switch {
		case o.Expired != nil || found && old.Expired != nil:
			expired++
		case found && (old.SHA256 != o.SHA256 || old.Owner != o.Owner):
			return fmt.Errorf("%s has another observation obs:%s; nothing was copied: remove one of both", to.Where(), o.ID)
		case found && !old.Lost && (!o.Pinned || old.Pinned):
			same++
		default:
			list[copied] = list[i]
			copied++
			total += o.Bytes + perObservation
		}
	}
	if err := room(s, to, total); err != nil {
		return err
	}
	bar := cli.NewBar(w.Err, "copy", time.Now())
	defer bar.End()
	list, copied = list[:copied], 0
	for _, o := range slices.Backward(list) {
		err := ctx.Err()
		switch {
		case err != nil:
		case there[o.ID].ID == o.ID && !there[o.ID].Lost:
			err = to.Store.Pin(o.Owner, o.ID, true)
		default:
			err = to.Store.Copy(from, o.Owner, o.ID)
		}
		switch {
		case err == nil:
			copied++
		case errors.Is(err, observations.ErrDamaged), errors.Is(err, fs.ErrExist), errors.Is(err, observations.ErrExpired):
			skip(err)
		default:
			return fmt.Errorf("%w; %s copied before: repeat the command to continue", err, cli.ObservationsText(copied))
		}
		done += o.Bytes + perObservation
		bar.Progress(done, total, "bytes")
	}
	for _, id := range torn {
		delete(foreign, id)
		if !slices.ContainsFunc(list, func(o observations.Observation) bool { return o.ID == id }) { // else it was named
			skip(fmt.Errorf("%w: obs:%s: its sidecar cannot be read", observations.ErrDamaged, id))
		}
	}
	for id := range foreign {
		skip(fmt.Errorf("obs:%s: its sidecar was written by another version of mcp-funnel", id))
	}
	_, err = fmt.Fprintf(w.Out, "observations: %d copied, %d were there, %d have expired\n", copied, same, expired)
	return err
}

// perObservation is about what an observation takes beside its bytes.
const perObservation = 8 << 10

// room returns an error if a store has no room for so many bytes more.
func room(s *cli.Settings, to *cli.Kept, need int64) error {
	u, err := to.Store.Usage()
	limits := s.Options().Store.Limits()
	left, raise := limits.Quota-u.Bytes, "raise --quota"
	if free := u.Free - limits.MinFree; to.Bucket == nil && free < left {
		left, raise = free, "free space on its disk, or lower --min-free"
	}
	if err == nil && need > left {
		err = fmt.Errorf("%s has room for %s, about %s are needed; nothing was copied: %s", to.Where(),
			cli.BytesText(max(left, 0)), cli.BytesText(need), raise)
	}
	return err
}
