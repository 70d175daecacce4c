package write

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxTree is how many files, links and directories one call removes.
const maxTree = 1000

type removeArgs struct {
	Path string `json:"path" help:"File or directory to remove."`
	Tree bool   `json:"tree,omitempty" jsonschema:"with all in it" help:"Remove a directory with all that is in it, at most 1,000 files."`
	Keep *bool  `json:"keep,omitempty" help:"false: the content is not kept, and the change cannot be undone. Needed for over 64 MiB."`
}

// Remove returns the tool remove.
func (w *Writer) Remove() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "remove",
		Title:       "Remove",
		Description: "Remove a file or empty directory.",
		Effect:      tools.Destructive,
		Toolset:     Toolset,
		Whole:       tools.Whole{Lines: shownLines},
	}, w.remove)
}

func (w *Writer) remove(ctx context.Context, a removeArgs, in tools.Input, out tools.Output) error {
	t, err := w.target(in, a.Path, false)
	if err != nil {
		return err
	}
	c := w.newCall(in, out, a.Keep, t)
	return c.answer(ctx, func() (*step, error) { return c.removal(ctx, "remove", t, a.Tree) })
}

// removal returns the step that removes a target: a file, or a directory, which must be empty unless all is set.
func (c *call) removal(ctx context.Context, action string, t *target, all bool) (*step, error) {
	at, err := t.dir.LstatIn(t.base)
	if err != nil {
		return nil, t.wrap(err)
	}
	if at.Mode()&fs.ModeSymlink != 0 {
		return nil, t.wrap(errors.New("it is a link, which is not removed, and neither is what it leads to"))
	}
	s := &step{Change: Change{Action: action, Mode: at.Mode(), Tree: at.IsDir()}}
	var names []string
	still := func(now fs.FileInfo, _ string) bool {
		return isFile(now, at)
	}
	if at.IsDir() {
		files := 1 // itself
		if all {
			files = maxTree
		}
		pack := func(base string, to io.Writer) (names []string, err error) {
			return t.dir.PackIn(ctx, base, to, files, maxKept)
		}
		was := sha256.New()
		names, err = pack(t.base, was)
		if err != nil && !all && len(names) > files {
			err = errors.New("it is a directory that is not empty: tree=true removes it with all that is in it")
		}
		if err != nil {
			return nil, t.wrap(err)
		}
		s.says = "removed, " + content.Plural(int64(len(names)), "directory", "files and directories")
		if all {
			s.diff = []byte(strings.Join(names, "\n") + "\n")
		}
		still = func(_ fs.FileInfo, base string) bool {
			now := sha256.New()
			_, err := pack(base, now)
			return err == nil && bytes.Equal(now.Sum(nil), was.Sum(nil))
		}
		s.keep = func() io.ReadCloser {
			r, w := io.Pipe()
			go func() {
				_, err := pack(t.base, w)
				w.CloseWithError(err)
			}()
			return r
		}
	} else if s.old, err = c.open(ctx, t); err != nil {
		return nil, err
	} else {
		s.says = fmt.Sprintf("removed, %d bytes, hash %s", s.old.size(), s.old.hash())
	}
	s.do = func(j *journal, keep func(string) error) error {
		if err := keep(""); err != nil {
			return err
		}
		return c.take(t, still, names, j)
	}
	return s, nil
}

// take removes a target as it was, a directory with the given names in it. It gets a temporary name first, so that nothing
// is lost that another program writes: still reports whether what has that name now is what was kept.
func (c *call) take(t *target, still func(now fs.FileInfo, base string) bool, names []string, j *journal) error {
	j.nameIn(t)
	err := j.write()
	if err == nil {
		err = tree.Rename(t.dir, t.base, t.dir, j.Temp, true)
	}
	if err != nil {
		return t.wrap(err)
	}
	now, err := t.dir.LstatIn(j.Temp)
	if err == nil && !still(now, j.Temp) {
		err = errors.New("it was changed by another program during this call: it stays; call again")
	} else if err == nil {
		j.made = true
		if err = t.dir.RemoveNamesIn(j.Temp, names); err != nil {
			how := "what was there was not kept"
			if c.kept != "" {
				how = "move it away, and write with undo=" + c.kept + " puts back all that was there"
			}
			err = fmt.Errorf("it was removed in part at most: %w; the rest stays: %s", err, how)
		}
	}
	if err != nil {
		if e := tree.Rename(t.dir, j.Temp, t.dir, t.base, false); e != nil {
			err = fmt.Errorf("%w; it is called %s now: %w", err, j.Temp, e)
		}
		j.Temp = "" // it is no longer to be removed
	}
	if err == nil && c.options.Fsync {
		err = c.sync(t)
	}
	return t.wrap(err)
}
