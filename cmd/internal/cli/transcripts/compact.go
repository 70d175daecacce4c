package transcripts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Compact is the command compact.
type Compact struct {
	File     string   `arg:"" help:"Transcript of a client, or messages of an API as JSON."`
	Budget   int      `env:"-" placeholder:"TOKENS" help:"The client's next request must have at most so many tokens, system prompt and definitions of tools included if the session reports its usage."`
	Output   string   `env:"-" short:"o" placeholder:"FILE" help:"Where to write the transcript; the file must not exist. Default: standard output."`
	Last     int      `env:"-" name:"keep" default:"3" placeholder:"N" help:"Results that stay, the last ones. Default: 3."`
	KeepTool []string `env:"-" placeholder:"NAME" sep:"," help:"Tool whose results stay; repeatable."`
	Fork     bool     `env:"-" help:"Write a new session beside FILE, which its client can resume."`
	Expand   bool     `env:"-" help:"Restore a transcript that was compacted, byte for byte."`
	Forget   bool     `env:"-" help:"Forget what was replaced in FILE: its outputs may expire then."`
	JSON     bool     `env:"-" name:"json" help:"Print the figures as JSON."`
}

// Help returns the examples of the command's help.
func (c *Compact) Help() string {
	return `Replaces outputs of tools in a transcript by pointers to observations, so that
what the client sends next fits the budget. First go results that a later call
repeats, then receipts, then the oldest. Messages, errors and the last results
stay; every other byte is unchanged. FILE is never changed. The transcript goes
to standard output or -o, the figures to standard error. The exit code is 1 if
the budget cannot be met, or if the result is not known to fit: counts for the
model in FILE may be estimates. A note says if FILE does not report how large
the system prompt and the definitions of tools are.

Transcripts: session files of Claude Code, rollouts of Codex, and messages of
the Anthropic API, of OpenAI's chat completions and of its responses, as JSON.

Examples:

  mcp-funnel compact --budget 100000 session.jsonl -o smaller.jsonl
  mcp-funnel compact --expand smaller.jsonl -o session.jsonl
  mcp-funnel compact --budget 100000 --fork ~/.claude/projects/x/ID.jsonl`
}

// maxTranscript bounds the transcript that is read, in bytes. Where its texts stand is kept in memory.
const maxTranscript = 4 << 30

// elsewhere is the command that reads an output where this server is not offered.
const elsewhere = "mcp-funnel observations cat %s"

// Run compacts a transcript, restores one, or forgets it.
func (c *Compact) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	switch {
	case c.Budget <= 0 && !c.Expand && !c.Forget:
		return cli.Usagef("--budget must be more than 0: write how many tokens the client may send, such as --budget 100000")
	case c.Fork && (c.Output != "" || c.Expand || c.Forget):
		return cli.Usagef("--fork writes a new session beside the file: leave out -o, --expand and --forget")
	case c.Forget && c.Expand:
		return cli.Usagef("--forget and --expand exclude each other: restore the transcript with --expand first")
	case c.Last < 0:
		return cli.Usagef("--keep is the number of results that stay: 0 for none")
	case c.Forget && c.Output != "":
		return cli.Usagef("--forget writes nothing: leave out -o")
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	t, file, err := readTranscript(c.File)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	to, err := c.target(t)
	if err != nil {
		return err
	}
	defer to.discard()
	app, err := s.Open(w, true)
	if err != nil {
		return err
	}
	defer app.Close()
	if app.Store == nil {
		return errors.New("there is no store to keep the outputs in: name a directory with --store DIR")
	}
	maps := sessionMaps{app.Records, app.Store}
	keeper := &keeper{ctx: ctx, app: app}
	if c.Expand { // it only reads, and a map is replaced in one step
		m, err := maps.load(t)
		if err != nil {
			return err
		}
		return c.expand(t, m, keeper, to, w)
	}
	unlock, err := maps.lock()
	if err != nil {
		return err
	}
	defer unlock()
	maps.forgetOld(compaction.Key(t))
	m, err := maps.load(t)
	if err != nil {
		return err
	}
	if c.Forget {
		return c.forget(app, maps, t, m, w)
	}
	counter, notes := counterOf(t, app)
	earlier := m.Budget
	// To Compact 0 results that stay are the default, and -1 is none.
	out, r, err := compaction.Compact(t, m, keeper, compaction.Options{
		Budget: c.Budget, Keep: cmp.Or(c.Last, -1), KeepTool: c.KeepTool, Count: counter.Count, Path: elsewhere,
		Mask: s.MaskText(), Margin: counter.Model().Error,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if earlier > 0 && c.Budget > earlier && r.Replayed > 0 {
		notes = append(notes, fmt.Sprintf("what a budget of %d replaced stays replaced (%d): to begin anew, run compact"+
			" --forget %s first", earlier, r.Replayed, c.File))
	}
	f := figures{r, append(notes, t.Notes()...)}
	if err := c.finish(app, maps, t, m, out, f, to, w); err != nil {
		return err
	}
	return c.judge(f, w)
}

// counterOf returns the counter of the model in a transcript, and of --model if it names none that is known.
func counterOf(t *transcript.Transcript, app *cli.App) (*tokens.Counter, []string) {
	if t.Model == "" {
		return app.Counter, nil
	}
	m, err := tokens.Parse(t.Model)
	if err != nil {
		return app.Counter, []string{t.Model + " is a model that is not known: tokens are counted by --model"}
	}
	if m.Estimated() {
		return tokens.For(m), []string{fmt.Sprintf("tokens of %s are estimated, ±%.0f %%", t.Model, 100*m.Error)}
	}
	return tokens.For(m), nil
}

// figures are what compact prints as JSON.
type figures struct {
	compaction.Report
	Notes []string `json:"notes,omitempty"` // what is counted by an estimate, or not at all
}

// judge prints the notes on the figures. It returns an error if the result, which was written, is not known to fit.
func (c *Compact) judge(r figures, w *cli.Streams) error {
	if c.JSON { // they have the notes
		if r.Doubt != "" {
			return cli.ErrFailed // the figures say why
		}
		return nil
	}
	if r.Note != "" {
		r.Notes = append(r.Notes, r.Note)
	}
	for _, note := range r.Notes {
		cli.PrintMessage(w.Err, "note: "+cli.InLine(note))
	}
	if r.Doubt != "" {
		return fmt.Errorf("%s: the result was written, and is not known to fit the budget of %d tokens: %s", c.File,
			c.Budget, r.Doubt)
	}
	return nil
}

// finish writes what was compacted, its map and its figures.
func (c *Compact) finish(
	app *cli.App, maps sessionMaps, t *transcript.Transcript, m *compaction.Map, out transcript.Bytes, r figures,
	to *target, w *cli.Streams,
) error {
	if err := maps.save(t, m); err != nil {
		return err
	}
	if c.Fork {
		if err := c.fork(maps, out, m, to, w); err != nil {
			return err
		}
	} else if err := to.write(w, out); err != nil {
		return err
	}
	err := app.Trace.Append(trace.Call{
		At: time.Now(), Session: t.Session, Owner: observations.Local, Tool: "compact", Status: "success", Verdict: "ok",
		Via: trace.ViaCompaction, SeenTokens: int64(r.Before), ShownTokens: int64(r.After),
	}, nil)
	if err != nil {
		app.Log.Warn("the compaction is not in the trace", "cause", err)
	}
	if c.JSON {
		return cli.WriteJSON(w.Err, r, "")
	}
	text := fmt.Sprintf("%d tokens before, %d after: %s replaced now, %d before", r.Before, r.After,
		content.Plural(int64(r.Replaced), "output", "outputs"), r.Replayed)
	if r.Rest > 0 {
		text += fmt.Sprintf("; %d of both are what the client reported beside the transcript", r.Rest)
	}
	if r.Gone > 0 {
		text += fmt.Sprintf(", %d of the map not found", r.Gone)
	}
	if r.BreakEven > 0 {
		text += fmt.Sprintf("; the client's cache misses %d tokens once, which pays after %s", r.Rewritten,
			content.Plural(int64(r.BreakEven), "turn", "turns"))
	}
	if r.Foreign > 0 {
		text += "; " + content.Plural(int64(r.Foreign), "output is a pointer", "outputs are pointers") +
			" already, and not of this store"
	}
	if t.Unknown > 0 {
		text += "; " + content.Plural(int64(t.Unknown), "line", "lines") + " of an unknown kind unchanged"
	}
	cli.PrintMessage(w.Err, text)
	return nil
}

// expand writes the restored transcript.
func (c *Compact) expand(t *transcript.Transcript, m *compaction.Map, k *keeper, to *target, w *cli.Streams) error {
	out, e, err := compaction.Expand(t, m, k)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	var left error
	if len(e.Left) > 0 {
		left = fmt.Errorf("%s: %s of outputs that this store has no map for, the first in line %d: %s;"+
			" name the store of their compaction with --store, unless it was told to --forget them", c.File,
			content.Plural(int64(len(e.Left)), "pointer", "pointers"), e.Left[0].Line,
			content.Clip(e.Left[0].Text, 200))
	}
	if left != nil && e.Restored == 0 {
		return left
	}
	if err := to.write(w, out); err != nil {
		return err
	}
	cli.PrintMessage(w.Err, content.Plural(int64(e.Restored), "text", "texts")+" restored")
	return left
}

// target is where a transcript goes: standard output, or a file that did not exist. It is made before anything is
// stored, so that a name that cannot be written costs nothing.
type target struct {
	f    *os.File // nil: standard output
	id   string   // of a fork's session
	keep bool
}

func (c *Compact) target(t *transcript.Transcript) (*target, error) {
	to := &target{}
	path := c.Output
	switch {
	case c.Forget || !c.Fork && path == "":
		return to, nil
	case c.Fork:
		if err := t.Forkable(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
		to.id = uuid.NewString()
		name := to.id + ".jsonl"
		if t.Format == transcript.Codex {
			name = "rollout-" + time.Now().Format("2006-01-02T15-04-05") + "-" + name
		}
		path = filepath.Join(filepath.Dir(c.File), name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists already, and is not replaced: choose another name", path)
	}
	to.f = f
	return to, err
}

// write writes the whole transcript.
func (t *target) write(w *cli.Streams, out transcript.Bytes) error {
	to := w.Out
	if t.f != nil {
		to = t.f
	}
	_, err := io.Copy(to, io.NewSectionReader(out, 0, out.Size()))
	if err == nil && t.f != nil {
		err = t.f.Close() // it may be the first to say that the disk is full
	}
	t.keep = err == nil
	return err
}

// discard closes the file, and removes it unless it was written.
func (t *target) discard() {
	if t.f == nil {
		return
	}
	_ = t.f.Close()
	if !t.keep {
		_ = os.Remove(t.f.Name())
	}
}

// fork writes a new session beside the file, and its map, and says how it is resumed.
func (c *Compact) fork(maps sessionMaps, out transcript.Bytes, m *compaction.Map, to *target, w *cli.Streams) error {
	t, err := transcript.ReadFrom(out)
	if err != nil {
		return err
	}
	fork, lines, err := t.Fork(to.id, uuid.NewString)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	forked, err := transcript.ReadFrom(fork)
	if err != nil {
		return err
	}
	if err := maps.save(forked, m.Moved(lines, to.id)); err != nil {
		return err
	}
	if err := to.write(w, fork); err != nil {
		return err
	}
	command := "claude --resume "
	if t.Format == transcript.Codex {
		command = "codex resume "
	}
	cli.PrintMessage(w.Err, fmt.Sprintf("%s is the new session; resume it with: %s", to.f.Name(), command+to.id))
	return nil
}

// forget unpins the outputs of a map that no other map refers to, and removes it.
func (c *Compact) forget(
	app *cli.App, maps sessionMaps, t *transcript.Transcript, m *compaction.Map, w *cli.Streams,
) error {
	others, err := maps.referred(compaction.Key(t))
	if err != nil {
		return err
	}
	stay, gone, unpinned := 0, 0, map[string]bool{}
	rest := &compaction.Map{V: m.V, Format: m.Format}
	for _, s := range m.Swaps {
		switch {
		case t.Session == "" && !s.Uses(t): // of another transcript that begins alike
			rest.Swaps = append(rest.Swaps, s)
			others[s.Observation] = true
		case others[s.Observation]:
			stay++
		case !unpinned[s.Observation]: // a result in two lines has two swaps
			unpin(app, s.Observation)
			unpinned[s.Observation] = true
			gone++
		}
	}
	if err := maps.records.Delete(mapOf(compaction.Key(t))); err != nil {
		return err
	}
	if err := maps.save(t, rest); err != nil {
		return err
	}
	text := content.Plural(int64(gone), "output", "outputs") + " may expire now"
	if stay > 0 {
		text += fmt.Sprintf("; %d more stay for another transcript, such as a fork", stay)
	}
	cli.PrintMessage(w.Err, text)
	return nil
}

// readTranscript reads a transcript of this user: a regular file, never through a link. The caller closes the file
// after the last use of the transcript.
func readTranscript(path string) (*transcript.Transcript, io.Closer, error) {
	f, info, err := osfile.OpenOwn(path)
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxTranscript {
		_ = f.Close()
		return nil, nil, fmt.Errorf("%s has %d bytes, and at most %d are read", path, info.Size(), maxTranscript)
	}
	t, err := transcript.ReadFrom(io.NewSectionReader(f, 0, info.Size())) // what the client adds meanwhile is left out
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, f, nil
}
