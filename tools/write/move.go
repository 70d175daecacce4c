package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type moveArgs struct {
	From    string `json:"from" help:"File or directory to move."`
	To      string `json:"to" help:"Its new path, name included."`
	Copy    bool   `json:"copy,omitempty" help:"Copy the file: it stays where it is too."`
	Replace string `json:"replace,omitempty" jsonschema:"hash of file at to" help:"Hash of an existing file at the new path, which is replaced. Left out: there must be none."`
	Parents bool   `json:"parents,omitempty" help:"Make missing directories on the way."`
}

// Move returns the tool move.
func (w *Writer) Move() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "move",
		Title:       "Move",
		Description: "Move or copy a file.",
		Effect:      tools.Destructive,
		Toolset:     Toolset,
	}, w.move)
}

func (w *Writer) move(ctx context.Context, a moveArgs, in tools.Input, out tools.Output) error {
	if strings.HasSuffix(a.To, "/") {
		return fmt.Errorf("%s: it ends in /: add the new name", content.ClipBytes(a.To, 200))
	}
	from, err := w.target(in, a.From, false)
	if err != nil {
		return err
	}
	to, err := w.target(in, a.To, a.Parents)
	if err != nil {
		_ = from.dir.Close()
		return err
	}
	c := w.newCall(in, out, nil, from, to)
	return c.answer(ctx, func() (*step, error) {
		action := "move"
		if a.Copy {
			action = "copy"
		}
		return c.moving(ctx, action, from, to, a.Replace)
	})
}

// moving returns the step that moves or copies. hash is that of an existing file at the new path.
func (c *call) moving(ctx context.Context, action string, from, to *target, hash string) (*step, error) {
	at, err := from.dir.LstatIn(from.base)
	switch {
	case err != nil:
		return nil, from.wrap(err)
	case at.Mode().Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
		return nil, from.wrap(tree.ErrNotFile)
	case strings.HasPrefix(to.path+"/", from.path+"/"):
		return nil, to.wrap(errors.New("it is, or lies in, what is to be moved"))
	case !at.Mode().IsRegular() && (action == "copy" || hash != ""):
		return nil, from.wrap(errors.New("it is no file: only a file is copied, or replaces another one"))
	}
	s := &step{Change: Change{Action: action, Path: from.path, To: to.path}}
	s.says = map[string]string{"move": "moved", "copy": "copied"}[action] + " from " + from.shown
	if !at.Mode().IsRegular() {
		s.Mode = at.Mode()
		s.do = func(j *journal, keep func(string) error) error {
			if err := keep(""); err != nil {
				return err
			}
			return c.rename(from, to, false, j)
		}
		return s, nil
	}
	if s.src, err = c.open(ctx, from); err == nil && s.src == nil {
		err = from.wrap(fs.ErrNotExist)
	}
	if err == nil {
		s.old, err = c.expected(ctx, to, hash)
	}
	if err != nil {
		return nil, err
	}
	if s.old != nil {
		s.says += ", in place of hash " + s.old.hash()
		if hash == "" {
			return nil, to.wrap(fmt.Errorf("it exists, with %d bytes: replace=%s replaces it", s.old.size(), s.old.hash()))
		}
	}
	s.do = func(j *journal, keep func(string) error) error { return c.moveFile(ctx, s, from, to, j, keep) }
	return s, nil
}

// moveFile moves or copies a file: by a rename, or by a copy where that cannot be.
func (c *call) moveFile(ctx context.Context, s *step, from, to *target, j *journal, keep func(string) error) error {
	src := s.src
	if s.Action == "move" {
		err := keep(src.sum)
		if err == nil {
			err = errors.Join(from.unchanged(src), to.unchanged(s.old))
		}
		if err != nil {
			return err
		}
		err = c.rename(from, to, s.old != nil, j)
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EXDEV) {
			return err
		}
		keep = func(string) error { return nil } // it is kept
	}
	text := newContent{text: io.NewSectionReader(src, 0, src.size()), like: src.File}
	err := c.put(ctx, to, s.old, text, j, keep)
	if err == nil && s.Action == "move" {
		if err = from.unchanged(src); err == nil {
			err = from.dir.RemoveIn(from.base)
		}
	}
	return err
}

// rename moves within a file system.
func (c *call) rename(from, to *target, replace bool, j *journal) error {
	err := tree.Rename(from.dir, from.base, to.dir, to.base, replace)
	j.made = err == nil
	switch {
	case errors.Is(err, fs.ErrExist):
		return to.wrap(errors.New("it exists, and nothing was moved"))
	case err == nil && c.options.Fsync:
		return errors.Join(c.sync(from), c.sync(to))
	case err != nil:
		return fmt.Errorf("%s to %s: %w", from.shown, to.shown, err)
	}
	return nil
}
