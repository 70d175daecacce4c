package investigate

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// opened is what calls showed of files below the target.
type opened struct {
	shown map[string]int64 // bytes by path, without files that are known to have changed since
	calls []openedCall
}

type openedCall struct {
	at   time.Time
	dirs map[string]bool
}

// covered finds which files were opened through this server.
type covered struct{ *work }

func (w *work) covered() covered { return covered{w} }

// openedFiles reads from the trace what was shown of the target's files since the investigation began. It is read once
// for each call.
func (w covered) openedFiles() *opened {
	if w.seen != nil {
		return w.seen
	}
	w.seen = &opened{shown: map[string]int64{}}
	if w.i.options.Trace == nil {
		return w.seen
	}
	for c, err := range w.i.options.Trace.Read(w.meta.StartedAt, nil) {
		if err != nil || c.Owner != w.in.Owner || len(c.Opened) == 0 {
			continue
		}
		call := openedCall{at: c.At, dirs: map[string]bool{}}
		for _, f := range c.Opened {
			rel, err := filepath.Rel(w.target, f.File)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			rel = filepath.ToSlash(rel)
			if now := w.file(rel); f.Hash == "" || now == nil || now.Hash == "" || now.Hash == f.Hash {
				w.seen.shown[rel] += f.Shown
			}
			call.dirs[path.Dir(rel)] = true
		}
		if len(call.dirs) > 0 {
			w.seen.calls = append(w.seen.calls, call)
		}
	}
	return w.seen
}

// coverage sums up how many of the own files and bytes of directories were opened.
func (w covered) coverage(dirs ...string) *entries.Coverage {
	opened := w.openedFiles().shown
	var c entries.Coverage
	for _, p := range dirs {
		for _, f := range w.dirs[p].files {
			c.Files++
			c.Bytes += f.Size
			if shown, ok := opened[f.Path]; ok {
				c.Opened++
				c.Shown += min(shown, f.Size)
			}
		}
	}
	return &c
}

// coverageText words the share of files and bytes that were opened, and the completeness that the note claims.
func (w covered) coverageText(dirs []string, rated *float64) string {
	c := w.coverage(dirs...)
	rating := ""
	if rated != nil {
		rating = fmt.Sprintf(" (you rated completeness %.2g)", *rated)
	}
	if c.Opened == 0 {
		return "not read through this server" + rating + "\n"
	}
	return "opened here: " + c.Text() + rating + "\n"
}

// turnsOf counts the calls that opened files of an order's directories since it was given out.
func (w acceptance) turnsOf(o entries.Order) int {
	n := 0
	for _, c := range w.covered().openedFiles().calls {
		of := func(d plan.Assigned) bool { return c.dirs[d.Path] }
		if !c.at.Before(o.IssuedAt) && slices.ContainsFunc(o.Dirs, of) {
			n++
		}
	}
	return n
}
