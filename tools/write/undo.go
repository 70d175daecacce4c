package write

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// undo puts back what a change has changed, if that is still as the change left it. That is a change of its own.
func (w *Writer) undo(ctx context.Context, id string, keep *bool, in tools.Input, out tools.Output) error {
	src, err := in.Sources.Open(ctx, observations.Prefix+strings.TrimPrefix(id, observations.Prefix))
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was only read
	was, ok := ChangeOf(src.Observation)
	if !ok {
		return fmt.Errorf("%s: it keeps no change of a file: name the obs:ID that edit, write, move or remove gave", src.Name)
	}
	text, err := newPieces(piece{from: src, n: src.Size})
	if err != nil {
		return err
	}
	t, err := w.target(in, cmp.Or(was.To, was.Path), was.After == "") // directories removed since are made again
	if err != nil {
		return err
	}
	c := w.newCall(in, out, keep, t)
	if was.Action == "move" || was.Over != "" {
		back, err := w.target(in, was.Path, true)
		if err != nil {
			_ = t.dir.Close()
			return err
		}
		c.targets = append(c.targets, back)
	}
	if err = c.answer(ctx, func() (*step, error) { return c.undoing(ctx, was, src, text) }); err == nil {
		w.removeEmpty(was.Made)
	}
	return err
}

// undoing returns the step that undoes a change of the first target, whose old content is text. It is moved back to the
// second one, if there is one.
func (c *call) undoing(ctx context.Context, was Change, src *source.Source, text *pieces) (*step, error) {
	t, back := c.targets[0], c.targets[len(c.targets)-1]
	old, err := c.asLeft(ctx, t, was, text)
	if err != nil {
		return nil, err
	}
	says := "put back as it was before " + was.Action
	if was.After == "" {
		says += ", with its mode; owner and attributes are those of a new file"
	}
	switch {
	case back != t && was.Before == "":
		return c.moving(ctx, "move", t, back, was.Over)
	case back != t: // what was moved is copied back first, so that it is never missing
		s, err := c.moving(ctx, "undo", t, back, "")
		if err != nil {
			return nil, err
		}
		s.says, s.Over = "moved back; "+t.shown+" is as it was before", was.Before
		copied := s.do
		s.do = func(j *journal, keep func(string) error) error {
			if err := copied(j, keep); err != nil {
				return err
			}
			return c.put(ctx, t, old, newContent{text: text.reader(), mode: was.Mode}, j,
				func(string) error { return nil })
		}
		return s, nil
	case was.Tree:
		c.discard = true // there was nothing
		s := &step{Change: Change{Action: "undo"}, says: says}
		s.do = func(j *journal, keep func(string) error) error {
			if err := keep(""); err != nil {
				return err
			}
			return c.unpack(t, src, j)
		}
		return s, nil
	case was.Before == "": // it was created
		return c.removal(ctx, "undo", t, false)
	}
	s, err := c.replace(ctx, "undo", old, text, says)
	if err == nil {
		s.Mode = was.Mode
	}
	return s, err
}

// asLeft opens the file that a change left; nil if it left none, or a directory. If the file is another one by now, the
// error has what undoing would change in it.
func (c *call) asLeft(ctx context.Context, t *target, was Change, text *pieces) (*before, error) {
	if was.After == "" {
		at, err := t.dir.LstatIn(t.base)
		switch {
		case was.To == "" && !errors.Is(err, fs.ErrNotExist):
			return nil, t.wrap(errors.Join(err, errors.New("there is something again: move or remove it first")))
		case err == nil && was.Mode != 0 && at.Mode().Type() != was.Mode.Type():
			return nil, t.wrap(errors.New("it is no longer what was moved, and nothing was undone"))
		}
		return nil, nil //nolint:nilnil // there is none
	}
	old, err := c.open(ctx, t)
	switch {
	case err != nil:
		return nil, err
	case old == nil:
		return nil, t.wrap(errors.New("the file is gone: write with from and this obs:ID puts the old content back"))
	case old.sum == was.After:
		return old, nil
	}
	diff := ""
	if was.Before != "" {
		diff = text.diffFrom(ctx, old.text)
	}
	err = fmt.Errorf("it was changed after that: its hash is %s, not %s, and nothing was undone; "+
		"undo what came after first, or use edit", old.hash(), source.ShortHash(was.After))
	if diff != "" {
		err = fmt.Errorf("%w; what undoing would change now:\n%s", err, diff)
	}
	return nil, t.wrap(err)
}

// unpack puts back a directory under a temporary name, and then under its own.
func (c *call) unpack(t *target, src *source.Source, j *journal) error {
	j.nameIn(t)
	err := j.write()
	if err == nil {
		err = t.dir.UnpackIn(j.Temp, io.NewSectionReader(src, 0, src.Size))
	}
	if err == nil {
		err = tree.Rename(t.dir, j.Temp, t.dir, t.base, false)
	}
	if err != nil {
		return t.wrap(errors.Join(err, t.dir.RemoveAllIn(j.Temp)))
	}
	return nil
}

// Sweep removes what processes left that died in the middle of a change, and ends pins that are over. Call it when a
// server starts; while it runs it is called once an hour.
func (w *Writer) Sweep() error {
	if w.options.Records == nil {
		return nil
	}
	all, err := w.options.Records.List(records.Key{Kind: records.Change}, "*", true)
	for _, one := range all {
		j := &journal{id: observations.ID(one.Name), records: w.options.Records}
		if json.Unmarshal(one.Body, j) != nil || w.options.Records.Alive(j.Process) && j.Temp != "" {
			continue
		}
		over := time.Since(j.At) > pinnedFor
		if j.Temp != "" && !w.removeTemporary(j) && !over {
			continue // another server may have its directory
		}
		if over && j.Obs != "" {
			if e := w.options.Store.Pin(j.Owner, j.Obs, false); e == nil || errors.Is(e, observations.ErrNotFound) ||
				errors.Is(e, observations.ErrExpired) {
				j.Obs = ""
			}
		} else if j.Temp == "" {
			continue
		}
		err = errors.Join(err, j.end())
	}
	return err
}

// removeTemporary removes the temporary file of a change whose process died. It is not ok if its directory lies below none
// of those granted.
func (w *Writer) removeTemporary(j *journal) (ok bool) {
	if !strings.HasPrefix(j.Temp, temporary) || filepath.Base(j.Temp) != j.Temp {
		return false
	}
	for _, root := range w.options.Dirs {
		if dir, _, err := root.Parent(j.Dir+"/"+j.Temp, nil); err == nil {
			err = dir.RemoveAllIn(j.Temp)
			_ = dir.Close()
			return err == nil
		}
	}
	return false
}
