package investigate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
)

// Kept is what an investigation keeps, as it was written: nobody looks at the tree for it.
// Citation is a place that an entry cites.
type Citation = evidence.Citation

type Kept struct {
	Meta
	Dirs    map[string]entries.Dir // by their path below the target
	Files   map[string]entries.File
	Flags   []entries.Flag // the worst first
	Report  Report         // as it was shown last; zero: never
	Damaged int            // entries that cannot be read
}

// Kept returns an investigation by its ID, without inv:. It does not count as a use. Without a lock its entries may be
// of different times; each of them is whole.
func (i *Investigator) Kept(owner, id string) (k Kept, err error) {
	if err := i.mayKeep(true); err != nil {
		return k, err
	}
	inv, err := i.store.Peek(owner, id)
	if err != nil {
		return k, fmt.Errorf("inv:%s: %w", content.ClipBytes(id, 40), ErrNone)
	}
	var failed [5]error
	var damaged int
	k.Meta, failed[0] = inv.Meta()
	k.Dirs, k.Damaged, failed[1] = inv.Dirs()
	k.Files, damaged, failed[2] = inv.Files()
	k.Flags, failed[3] = (&work{inv: inv}).flags()
	_, failed[4] = inv.Read(entries.ShownName, &k.Report)
	k.Damaged += damaged
	return k, errors.Join(failed[:]...)
}

// Cited is a citation as it was looked up now.
type Cited struct {
	evidence.Citation
	Lost bool // it held when its entry was written, and no longer does
}

// Cited looks up the citations of texts about a path of an investigation; before are those of its entry. It reads at
// most 16 MiB of files: what would need more has the verdict unknown. The error is that of a target that is gone.
func (i *Investigator) Cited(
	ctx context.Context, c Caller, k Kept, of string, before []Citation, texts ...string,
) (all []Cited, err error) {
	w := i.workFor(ctx, c)
	if err := w.resolveDir(k.Target); err != nil {
		return nil, err
	}
	dir := path.Dir(of)
	if _, ok := k.Dirs[of]; ok || of == "general" {
		dir = map[bool]string{true: of, false: "."}[ok]
	}
	files := &unscanned{w, 2 * maxRead}
	for _, text := range texts {
		for _, now := range evidence.Check(text, dir, files) {
			lost := now.Verdict != evidence.Holds && now.Verdict != evidence.Moved && (claim{before: before}).held(now)
			all = append(all, Cited{now, lost})
		}
	}
	return all, nil
}

// unscanned reads files of a target that was not scanned; see [evidence.Reader].
type unscanned struct {
	w    *work
	left int // bytes that may be read
}

// Exists implements [evidence.Reader].
func (u *unscanned) Exists(p string) bool {
	_, err := u.w.root.Stat(u.below(p))
	return err == nil
}

// below returns a path below the root; tools name files below that.
func (u *unscanned) below(p string) string {
	at := path.Join(u.w.start, p)
	if _, err := u.w.root.Stat(at); err != nil && strings.HasPrefix(p, u.w.start+"/") {
		return p
	}
	return at
}

// Read implements [evidence.Reader].
func (u *unscanned) Read(p string) ([]byte, error) {
	if u.left < maxRead {
		return nil, errors.New("not looked up: too much would have to be read for one page")
	}
	b, err := u.w.read(strings.TrimPrefix(u.below(p), u.w.start+"/"))
	u.left -= len(b)
	return b, err
}
