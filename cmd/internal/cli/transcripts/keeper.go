package transcripts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
)

// keeper stores outputs as observations of the command line, pinned.
type keeper struct {
	ctx context.Context
	app *cli.App
}

// Keep implements [compaction.Keeper].
func (k *keeper) Keep(tool, args, text string) (compaction.Kept, error) {
	name := strings.TrimSpace(tool + " " + args)
	a, err := k.app.Keep(k.ctx, strings.NewReader(text), funnel.Request{Name: name})
	if err != nil {
		return compaction.Kept{}, err
	}
	r := a.Receipts[0]
	switch {
	case !r.Kept || r.Truncated:
		return compaction.Kept{}, fmt.Errorf("it was not kept whole: %s",
			cmp.Or(r.NotKept, "mcp-funnel doctor shows why"))
	case r.Redacted:
		return compaction.Kept{}, errors.New("the store has masked text only (--redact-store), which cannot be restored")
	}
	id := observations.ID(r.ObservationID)
	if err := k.app.Store.Pin(observations.Local, id, true); err != nil {
		return compaction.Kept{}, err
	}
	o, err := k.app.Store.Stat(observations.Local, id)
	if err != nil {
		k.Release(string(id))
		return compaction.Kept{}, err
	}
	return compaction.Kept{
		ID: observations.Prefix + string(id), Kind: r.Kind, Lines: r.Lines, Tokens: r.Tokens, Receipt: o.Stats.Receipt,
	}, nil
}

// Has implements [compaction.Keeper].
func (k *keeper) Has(name, sum string) bool {
	text, err := k.Read(name)
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != sum {
		return false
	}
	id, err := observations.ParseID(name)
	if err != nil {
		return false
	}
	o, err := k.app.Store.Stat(observations.Local, id)
	return err == nil && (o.Pinned || k.app.Store.Pin(observations.Local, id, true) == nil)
}

// Read implements [compaction.Keeper].
func (k *keeper) Read(name string) ([]byte, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, err
	}
	r, err := k.app.Store.Open(observations.Local, id)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

func (k *keeper) Release(name string) { unpin(k.app, name) }

// unpin lets an output expire; one that is gone already is no error.
func unpin(a *cli.App, name string) {
	id, err := observations.ParseID(name)
	if err == nil {
		err = a.Store.Pin(observations.Local, id, false)
	}
	if err != nil && !errors.Is(err, observations.ErrNotFound) {
		a.Log.Warn("an output stays pinned", "observation", name, "cause", err)
	}
}

// Room returns the quota without what is pinned already, and without what the writers reserve ahead.
func (k *keeper) Room() (int64, error) {
	u, err := k.app.Store.Usage()
	if err != nil {
		return 0, err
	}
	if u.Quota <= 0 {
		return u.Free, nil
	}
	list, err := k.app.Store.List(observations.Local, false)
	if err != nil {
		return 0, err
	}
	room := u.Quota - compaction.Writers*u.Ahead
	for _, o := range list {
		if o.Pinned {
			room -= o.Bytes
		}
	}
	return min(max(room, 0), u.Free), nil
}
