package investigate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

// Kept is what an investigation keeps, as it was written.
type Kept struct {
	Meta
	Dirs    map[string]entries.Dir // by their path below the target
	Files   map[string]entries.File
	Flags   []entries.Flag // the worst first
	Report  Report         // as it was shown last; zero: never
	Damaged int            // entries that cannot be read

	work *work
}

// Quality is what an entry says of itself.
type Quality = entries.Quality

// Kept returns an investigation of a caller by its ID, without inv:. It does not look at the tree, and does not count as
// a use. It takes no lock: each entry is whole, but they may be of different times.
func (i *Investigator) Kept(ctx context.Context, c Caller, id string) (k Kept, err error) {
	if err := i.mayKeep(true); err != nil {
		return k, err
	}
	w := i.workFor(ctx, c)
	if w.inv, err = i.store.Peek(c.Owner, id); err != nil {
		return k, fmt.Errorf("inv:%s: %w", content.ClipBytes(id, 40), ErrNone)
	}
	w.tree = &scan.Tree{}
	meta, err := w.inv.Meta()
	dirs, damaged, dirErr := w.inv.Dirs()
	files, more, fileErr := w.inv.Files()
	flags, flagErr := w.flags()
	k = Kept{Meta: meta, Dirs: dirs, Files: files, Flags: flags, Damaged: damaged + more, work: w}
	_, readErr := w.inv.Read(entries.ShownName, &k.Report)
	_, scanErr := w.inv.Read(entries.ScanName, w.tree)
	w.index()
	return k, cmp.Or(err, dirErr, fileErr, flagErr, readErr, scanErr)
}

// Cited is a citation as it was looked up now.
type Cited struct {
	evidence.Citation
	Lost bool // it held when its entry was written, and no longer does
}

// Cited looks up the citations of texts of an entry on a path in the files as they are now. The error is that of a
// target which cannot be read.
func (k Kept) Cited(of string, entry Quality, texts ...*string) (all []Cited, err error) {
	if err := k.work.resolve(); err != nil {
		return nil, err
	}
	for _, text := range texts {
		for _, now := range evidence.Check(*text, k.work.dirOf(of), k.work.reader()) {
			lost := now.Verdict != evidence.Holds && now.Verdict != evidence.Moved && claim{before: entry.Evidence}.held(now)
			all = append(all, Cited{now, lost})
		}
	}
	return all, nil
}
