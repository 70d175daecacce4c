package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/compaction"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/osfile"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/trace"
	"github.com/mcp-funnel/mcp-funnel/transcript"
)

type compact struct {
	File     string   `arg:"" help:"Transcript of a client, or messages of an API as JSON."`
	Budget   int      `env:"-" placeholder:"TOKENS" help:"What the client sends must have at most so many tokens."`
	Output   string   `env:"-" short:"o" placeholder:"FILE" help:"Where to write the transcript; the file must not exist. Default: standard output."`
	Last     int      `env:"-" name:"keep" default:"3" placeholder:"N" help:"Results that stay, the last ones. Default: 3."`
	KeepTool []string `env:"-" placeholder:"NAME" sep:"," help:"Tool whose results stay; repeatable."`
	Fork     bool     `env:"-" help:"Write a new session beside FILE, which its client can resume."`
	Expand   bool     `env:"-" help:"Restore a transcript that was compacted, byte for byte."`
	Forget   bool     `env:"-" help:"Forget what was replaced in FILE: its outputs may expire then."`
	JSON     bool     `env:"-" name:"json" help:"Print the figures as JSON."`
}

func (c *compact) Help() string {
	return `Replaces outputs of tools in a transcript by pointers to observations, so that
what the client sends next fits the budget. First go results that a later call
repeats, then receipts, then the oldest. Messages, errors and the last results
stay; every other byte is unchanged. FILE is never changed. The transcript goes
to standard output or -o, the figures to standard error. The exit code is 1 if
the budget cannot be met.

Transcripts: session files of Claude Code, rollouts of Codex, and messages of
the Anthropic API, of OpenAI's chat completions and of its responses, as JSON.

Examples:

  mcp-funnel compact --budget 100000 session.jsonl -o smaller.jsonl
  mcp-funnel compact --expand smaller.jsonl -o session.jsonl
  mcp-funnel compact --budget 100000 --fork ~/.claude/projects/x/ID.jsonl`
}

// maxTranscript bounds the transcript that is read into memory, in bytes. Parsing takes several times as much.
const maxTranscript = 512 << 20

// elsewhere is the command that reads an output where this server is not offered.
const elsewhere = "mcp-funnel observations cat %s"

func (c *compact) Run(ctx context.Context, s *Settings, w *streams) error {
	if c.Budget <= 0 && !c.Expand && !c.Forget {
		return usagef(
			"--budget must be more than 0: write how many tokens the client may send, such as --budget 100000",
		)
	}
	if c.Fork && (c.Output != "" || c.Expand || c.Forget) {
		return usagef("--fork writes a new session beside the file: leave out -o, --expand and --forget")
	}
	t, err := readTranscript(c.File)
	if err != nil {
		return err
	}
	app, err := s.open(w, true)
	if err != nil {
		return err
	}
	defer app.close()
	if app.store == nil {
		return errors.New("there is no store to keep the outputs in: name a directory with --store DIR")
	}
	unlock, err := lockMaps(app.store)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := loadMap(app.store, t)
	if err != nil {
		return err
	}
	keeper := &keeper{ctx: ctx, app: app}
	switch {
	case c.Forget:
		return c.forget(app, t, m, w)
	case c.Expand:
		out, restored, err := compaction.Expand(t, m, keeper)
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if err := c.write(w, out); err != nil {
			return err
		}
		printMessage(w.err, content.Plural(int64(restored), "text", "texts")+" restored")
		return nil
	}
	out, r, err := compaction.Compact(t, m, keeper, compaction.Options{
		Budget: c.Budget, Keep: keepOf(c.Last), KeepTool: c.KeepTool, Count: app.counter.Count, Path: elsewhere,
	})
	if err != nil && r.Replaced > 0 { // what was stored stays until the map is forgotten
		err = errors.Join(err, saveMap(app.store, t, m))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return c.finish(app, t, m, out, r, w)
}

// keepOf returns the option for a number of results that stay: 0 is none.
func keepOf(last int) int {
	if last <= 0 {
		return -1
	}
	return last
}

// finish writes what was compacted, its map and its figures.
func (c *compact) finish(
	app *app, t *transcript.Transcript, m *compaction.Map, out []byte, r compaction.Report, w *streams,
) error {
	if err := saveMap(app.store, t, m); err != nil {
		return err
	}
	if c.Fork {
		if err := c.fork(app, out, m, w); err != nil {
			return err
		}
	} else if err := c.write(w, out); err != nil {
		return err
	}
	err := app.trace.Append(trace.Call{
		At: time.Now(), Session: t.Session, Owner: observations.Local, Tool: "compact", Status: "success", Verdict: "ok",
		Via: trace.ViaCompaction, SeenTokens: int64(r.Before), ShownTokens: int64(r.After),
	})
	if err != nil {
		app.log.Warn("the compaction is not in the trace", "cause", err)
	}
	if c.JSON {
		return writeJSON(w.err, r, "")
	}
	text := fmt.Sprintf("%d tokens before, %d after: %s replaced now, %d before", r.Before, r.After,
		content.Plural(int64(r.Replaced), "output", "outputs"), r.Replayed)
	if r.Gone > 0 {
		text += fmt.Sprintf(", %d of the map not found", r.Gone)
	}
	if r.BreakEven > 0 {
		text += fmt.Sprintf("; the client's cache misses %d tokens once, which pays after %s", r.Rewritten,
			content.Plural(int64(r.BreakEven), "turn", "turns"))
	}
	if t.Unknown > 0 {
		text += "; " + content.Plural(int64(t.Unknown), "line", "lines") + " of an unknown kind unchanged"
	}
	printMessage(w.err, text)
	return nil
}

// write writes the transcript to standard output, or to a file that does not exist yet.
func (c *compact) write(w *streams, out []byte) error {
	if c.Output == "" {
		_, err := w.out.Write(out)
		return err
	}
	return writeNew(c.Output, out)
}

// writeNew writes a file that must not exist.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and is not replaced: choose another name", path)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// fork writes a new session beside the file, and its map, and says how it is resumed.
func (c *compact) fork(app *app, out []byte, m *compaction.Map, w *streams) error {
	t, err := transcript.Read(out)
	if err != nil {
		return err
	}
	id := newUUID()
	fork, lines, err := t.Fork(id, newUUID)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	name, command := id+".jsonl", "claude --resume "+id
	if t.Format == transcript.Codex {
		name, command = "rollout-"+time.Now().Format("2006-01-02T15-04-05")+"-"+id+".jsonl", "codex resume "+id
	}
	path := filepath.Join(filepath.Dir(c.File), name)
	if err := writeNew(path, fork); err != nil {
		return err
	}
	forked, err := transcript.Read(fork)
	if err != nil {
		return err
	}
	if err := saveMap(app.store, forked, m.Moved(lines, id)); err != nil {
		return err
	}
	printMessage(w.err, fmt.Sprintf("%s is the new session; resume it with: %s", path, command))
	return nil
}

// newUUID returns a random UUID of version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// forget unpins the outputs of a map that no other map refers to, and removes it.
func (c *compact) forget(app *app, t *transcript.Transcript, m *compaction.Map, w *streams) error {
	root, err := mapsDir(app.store)
	if err != nil {
		return err
	}
	others := referred(root, mapName(t))
	_ = root.Close()
	stay := 0
	for _, s := range m.Swaps {
		if others[s.Observation] {
			stay++
			continue
		}
		id, err := observations.ParseID(s.Observation)
		if err == nil {
			err = app.store.Pin(observations.Local, id, false)
		}
		if err != nil && !errors.Is(err, observations.ErrNotFound) {
			app.log.Warn("an output stays pinned", "observation", s.Observation, "cause", err)
		}
	}
	if err := removeMap(app.store, t); err != nil {
		return err
	}
	text := content.Plural(int64(len(m.Swaps)-stay), "output", "outputs") + " may expire now"
	if stay > 0 {
		text += fmt.Sprintf("; %d more stay for another transcript, such as a fork", stay)
	}
	printMessage(w.err, text)
	return nil
}

// readTranscript reads a transcript of this user: a regular file, never through a link.
func readTranscript(path string) (*transcript.Transcript, error) {
	f, info, err := osfile.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info.Size() > maxTranscript {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are read", path, info.Size(), maxTranscript)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTranscript+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxTranscript {
		return nil, fmt.Errorf("%s grew over %d bytes while it was read", path, maxTranscript)
	}
	t, err := transcript.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// keeper stores outputs as observations of the command line, pinned.
type keeper struct {
	ctx context.Context
	app *app
}

func (k *keeper) Keep(tool, args, text string) (compaction.Kept, error) {
	a, err := k.app.funnel.Call(k.ctx, funnel.Request{
		Tool: keepTool(
			strings.NewReader(text),
		), Args: json.RawMessage("{}"), Who: localSession(), Sources: k.app.sources,
		Keep: funnel.Always, Name: strings.TrimSpace(tool + " " + args),
	})
	if err != nil {
		return compaction.Kept{}, err
	}
	r := a.Receipts[0]
	switch {
	case !r.Kept || r.Truncated:
		return compaction.Kept{}, errors.New("it was not kept whole (mcp-funnel doctor shows why)")
	case r.Redacted:
		return compaction.Kept{}, errors.New(
			"the store has masked text only (--redact-store), which cannot be restored",
		)
	}
	id := observations.ID(r.ObservationID)
	if err := k.app.store.Pin(observations.Local, id, true); err != nil {
		return compaction.Kept{}, err
	}
	o, err := k.app.store.Stat(observations.Local, id)
	if err != nil {
		return compaction.Kept{}, err
	}
	return compaction.Kept{
		ID: observations.Prefix + string(
			id,
		), Kind: r.Kind, Lines: r.Lines, Tokens: r.Tokens, Receipt: o.Stats.Receipt,
	}, nil
}

func (k *keeper) Has(name string) bool {
	id, err := observations.ParseID(name)
	if err != nil {
		return false
	}
	_, err = k.app.store.Stat(observations.Local, id)
	return err == nil
}

func (k *keeper) Read(name string) ([]byte, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, err
	}
	r, err := k.app.store.Open(observations.Local, id)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

func (k *keeper) Release(name string) {
	id, err := observations.ParseID(name)
	if err == nil {
		err = k.app.store.Pin(observations.Local, id, false)
	}
	if err != nil {
		k.app.log.Warn("an output stays pinned", "observation", name, "cause", err)
	}
}

// Room returns the quota without what is pinned already.
func (k *keeper) Room() (int64, error) {
	u, err := k.app.store.Usage()
	if err != nil {
		return 0, err
	}
	if u.Quota <= 0 {
		return u.Free, nil
	}
	list, err := k.app.store.List(observations.Local, false)
	if err != nil {
		return 0, err
	}
	room := u.Quota
	for _, o := range list {
		if o.Pinned {
			room -= o.Bytes
		}
	}
	return min(max(room, 0), u.Free), nil
}
