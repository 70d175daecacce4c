package write

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of what is kept of a change.
const (
	maxKept   = 64 << 20       // bytes of old content
	pinnedFor = 24 * time.Hour // how long it is pinned
)

// Change is what is kept with the old content of a file, as the state of its observation.
type Change struct {
	Action  string      `json:"action"` // edit, write, append, move, copy, remove, undo
	Path    string      `json:"path"`   // absolute
	To      string      `json:"to,omitempty"`
	Before  string      `json:"before,omitempty"` // sha256 of the content; "": there was no file
	After   string      `json:"after,omitempty"`  // "": there is no file
	Mode    fs.FileMode `json:"mode,omitempty"`   // of a removed file
	Tree    bool        `json:"tree,omitempty"`   // the content is a tar archive of a directory
	Made    []string    `json:"made,omitempty"`   // directories that were made for it
	Over    string      `json:"over,omitempty"`   // sha256 of a file that was put at Path, in place of what was moved
	Session string      `json:"session,omitempty"`
}

// Files names the file, or both of a move.
func (c Change) Files() string {
	if c.To == "" {
		return c.Path
	}
	return c.Path + " -> " + c.To
}

// ChangeOf returns the change that an observation keeps the old content of.
func ChangeOf(o *observations.Observation) (c Change, ok bool) {
	if o == nil || len(o.Stats.State) == 0 || o.Tool == "" {
		return c, false
	}
	err := json.Unmarshal(o.Stats.State, &c)
	return c, err == nil && c.Action != "" && c.Path != ""
}

// journal is the record of a change: while it is made, the temporary name that must not stay; afterwards what is pinned.
type journal struct {
	id      observations.ID
	records records.Store
	made    bool // something is changed, perhaps not all

	Owner   string          `json:"owner"`
	Process string          `json:"process"`
	At      time.Time       `json:"at"`
	Dir     string          `json:"dir"` // absolute
	Temp    string          `json:"temp,omitempty"`
	Obs     observations.ID `json:"obs,omitempty"`
}

func (c *call) newJournal() (*journal, error) {
	if c.options.Records == nil {
		return nil, errors.New("nothing can be changed: the store cannot be written, where the old content is kept")
	}
	if at := c.swept.Load(); time.Since(time.Unix(at, 0)) > time.Hour && c.swept.CompareAndSwap(at, time.Now().Unix()) {
		_ = c.Sweep() // the next one tries again
	}
	process, err := c.options.Records.Process()
	return &journal{
		id: observations.RandomID(), records: c.options.Records, Owner: c.in.Owner, Process: process, At: time.Now().UTC(),
	}, err
}

// nameIn sets what is temporary to a name in the directory of a target: a change may make one after another in two.
func (j *journal) nameIn(t *target) { j.Dir, j.Temp = t.dir.Dir(), temporary+string(j.id) }

func (j *journal) key() records.Key {
	return records.Key{Kind: records.Change, Owner: j.Owner, Name: string(j.id)}
}

func (j *journal) write() error {
	body, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return j.records.Put(j.key(), body)
}

// end notes that the change is made, or was not: nothing temporary is left.
func (j *journal) end() error {
	if j.Obs == "" {
		return j.records.Delete(j.key())
	}
	j.Temp = ""
	return j.write()
}

// call is one call that makes a change.
type call struct {
	*Writer
	in      tools.Input
	out     tools.Output
	dry     bool
	discard bool      // the old content is not kept
	targets []*target // what is locked; the last one names the change
	kept    string    // obs:ID of the old content
	opened  []*before // closed when the call ends
}

// newCall returns a call on targets, which it closes. keep is the argument of that name.
func (w *Writer) newCall(in tools.Input, out tools.Output, keep *bool, targets ...*target) *call {
	return &call{Writer: w, in: in, out: out, discard: keep != nil && !*keep, targets: targets}
}

// step is a change that is ready to be made.
type step struct {
	Change
	says string               // what is done, in words
	diff []byte               // what differs then
	old  *before              // what is replaced or removed; nil: nothing
	src  *before              // what is moved or copied; nil: no file
	keep func() io.ReadCloser // returns what is kept if that is no file: a text that undoes the change
	then *pieces              // the new content, to remember; nil: none
	// do makes the change. It calls keep with the sha256 of the new content, "" for none, before anything is changed.
	do func(j *journal, keep func(after string) error) error
}

// answer makes the change that plan returns, with the directories of the targets locked, and writes the answer. With
// --confirm plan is also called before, to ask the client. If nothing is changed, directories that were made for it are
// removed.
func (c *call) answer(ctx context.Context, plan func() (*step, error)) error {
	defer func() {
		for _, t := range c.targets {
			_ = t.dir.Close()
		}
		for _, b := range c.opened {
			_ = b.Close()
		}
	}()
	says, err := c.make(ctx, plan)
	if err != nil {
		for _, t := range c.targets {
			c.removeEmpty(t.made)
		}
		return err
	}
	_, err = io.WriteString(c.out, says)
	return err
}

func (c *call) make(ctx context.Context, plan func() (*step, error)) (says string, err error) {
	t := c.targets[len(c.targets)-1]
	var asked *step
	if c.options.Confirm && !c.dry {
		if asked, err = plan(); err != nil {
			return "", err
		}
		s, text := asked, asked.diff
		if s.old == nil && s.then != nil { // a new file
			if text, err = s.then.part(0, maxAsked).bytes(); err != nil {
				return "", err
			}
		}
		name := content.VisibleLine(t.shown)
		what := fmt.Sprintf("%s %s (hash %s): %s", s.Action, name, cmp.Or(s.old.hash(), s.src.hash(), "none"), s.says)
		if err := c.confirm(ctx, what, text); err != nil {
			return "", err
		}
	}
	unlock, err := c.lockAll(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	s, err := plan()
	if err != nil {
		return "", err
	}
	if asked != nil && (asked.old.hash() != s.old.hash() || asked.src.hash() != s.src.hash() ||
		!bytes.Equal(asked.diff, s.diff)) {
		return "", t.wrap(errors.New("it was changed while the client was asked: nothing was written; call again"))
	}
	if c.dry {
		return fmt.Sprintf("%s: %s; nothing is written (dry_run); hash %s\n%s", t.shown, s.says, s.old.hash(), s.diff), nil
	}
	j, err := c.newJournal()
	if err != nil {
		return "", err
	}
	s.Path, s.Session = cmp.Or(s.Path, t.path), c.in.Session
	for _, t := range c.targets {
		s.Made = append(s.Made, t.made...)
	}
	err = s.do(j, func(after string) error {
		s.After = after
		err := c.keepOld(t, s, j)
		for _, t := range c.targets {
			if err == nil {
				err = t.from.CheckBelow(t.dir)
			}
		}
		return err
	})
	if err != nil && !j.made && j.Obs != "" && c.options.Store.Remove(c.in.Owner, j.Obs) == nil {
		j.Obs = "" // nothing was changed
	}
	if e := j.end(); err != nil {
		return "", errors.Join(err, e)
	} else if e != nil {
		c.out.Note(fmt.Sprintf("what is noted of the change could not be written: %v", e))
	}
	return c.report(t, s), nil
}

// report returns the answer.
func (c *call) report(t *target, s *step) string {
	if s.then != nil && s.then.size() <= maxCompared {
		if text, err := s.then.bytes(); err == nil {
			c.in.Sources.Versions.Remember(t.path, s.After, text)
		}
	}
	if s.old != nil {
		if n := osfile.Links(s.old.info); n > 1 {
			c.out.Note(fmt.Sprintf("it had %d names (hard links): the other %d keep the old content", n, n-1))
		}
	}
	says := t.shown + ": " + s.says
	if s.After != "" {
		says += "; hash " + source.ShortHash(s.After)
		if s.old != nil && s.After == s.old.sum {
			says += " as before: nothing differs"
		}
	}
	if c.kept == "" {
		says += "; it cannot be undone"
	} else {
		says += "; undo: " + c.kept
	}
	return says + "\n" + string(s.diff)
}

// keepOld stores what undoes a change. Its error leaves all as it is.
func (c *call) keepOld(t *target, s *step, j *journal) error {
	if c.discard {
		return nil
	}
	from := io.Reader(strings.NewReader(""))
	if s.keep != nil {
		text := s.keep()
		defer text.Close() //nolint:errcheck // ends who writes it, if not all is read
		from = text
	} else if s.old != nil {
		s.Before, s.Mode = s.old.sum, s.old.info.Mode()
		from = io.NewSectionReader(s.old, 0, s.old.size())
	}
	if s.old.size() > maxKept {
		return t.wrap(fmt.Errorf("nothing was changed: its old content of %d bytes is over %d MiB and would not be kept; "+
			"keep=false of edit, write or remove changes it without undo", s.old.size(), maxKept>>20))
	}
	state, err := json.Marshal(s.Change)
	if err != nil {
		return err
	}
	id, err := c.out.Store(tools.Stored{
		Long: from, Exact: true, Name: "before " + s.Action + " of " + t.shown,
		Args: map[string]string{"path": t.shown}, From: []string{t.shown}, State: state,
	})
	if err != nil {
		return t.wrap(fmt.Errorf("nothing was changed: what was there could not be kept: %w; "+
			"keep=false changes it without undo", err))
	}
	if j.Obs, err = observations.ParseID(id); err == nil {
		c.kept = observations.Prefix + id
		if err = j.write(); err == nil {
			err = c.options.Store.Pin(c.in.Owner, j.Obs, true)
		}
	}
	return err
}

// replace returns the step that gives the last target a new content in place of the file old; nil is no file, and the
// new one has the mode of the step then.
func (c *call) replace(ctx context.Context, action string, old *before, text *pieces, says string) (*step, error) {
	t := c.targets[len(c.targets)-1]
	s := &step{Change: Change{Action: action}, says: says, old: old, then: text}
	s.do = func(j *journal, keep func(string) error) error {
		to := newContent{text: text.reader(), mode: s.Mode}
		if old != nil {
			to.like = old.File
		}
		return c.put(ctx, t, old, to, j, keep)
	}
	if old == nil {
		return s, nil
	}
	var diff bytes.Buffer
	added, removed, err := text.diff(ctx, &diff, old.text)
	if s.diff = diff.Bytes(); added+removed > 0 {
		s.says += fmt.Sprintf(", +%d -%d lines", added, removed)
	}
	return s, err
}

// confirm asks the client whether a change is to be made.
func (c *call) confirm(ctx context.Context, what string, diff []byte) error {
	text := content.Visible(c.in.Mask(what+"\n"+string(diff)), false)
	if n := len(text); n > maxAsked {
		text = fmt.Sprintf("%s\n(a part is not shown: %d bytes in all)", content.ClipBytes(text, maxAsked), n)
	}
	params, err := json.Marshal(map[string]any{
		"mode": "form", "message": text,
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	})
	if err != nil {
		return err
	}
	raw, err := c.in.Ask(ctx, tools.Question{Method: "elicitation/create", Params: params})
	if err != nil {
		if _, cannot := errors.AsType[*tools.CapabilityError](err); cannot {
			err = fmt.Errorf("nothing was changed: each change must be confirmed (--confirm), and %w", err)
		}
		return err
	}
	var reply struct {
		Action string `json:"action"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil || reply.Action != "accept" {
		return fmt.Errorf("nothing was changed: the user did not accept it (%s)", content.ClipBytes(reply.Action, 40))
	}
	return nil
}

// maxAsked bounds the question about a change, in bytes.
const maxAsked = 4000
