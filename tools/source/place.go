package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// Place is a tree of sources that find, search and read can walk: a root, or obs:. Paths are slash-separated; "." is
// the place itself. Implementations are safe for concurrent use.
type Place interface {
	// List calls visit for the entries below path, or for the one entry at path if that is no directory. It ends
	// without an error if visit returns [tree.SkipAll]. The report counts the entries found, also after an error.
	List(ctx context.Context, path string, o ListOptions, visit func(Entry) error) (tree.Report, error)

	// Open opens the source at path. Its errors name the source as a caller does, and say what to do.
	Open(ctx context.Context, path string) (*Source, error)

	// Describe returns the entry at path; with "." that is the place itself, a directory.
	Describe(ctx context.Context, path string) (Entry, error)

	// Name returns the name by which a call should name a path.
	Name(path string) string
}

// NamedPlace is a place that is chosen by the form of a name, such as the prefix "obs:".
type NamedPlace interface {
	Place

	// Resolve returns the path that a name means; ok is false if the name does not belong to this place. The error is
	// for a name that belongs to it but is malformed.
	Resolve(name string) (path string, ok bool, err error)
}

// ListOptions say what [Place.List] lists.
type ListOptions struct {
	Walk   tree.Options // Start is not used
	Newest bool         // the newest first, in places that are not walked by path
	// Damaged, if set, receives the names of the caller's observations whose file or description is missing or torn. The
	// command line and stdio also get those whose owner is unknown.
	Damaged func(names []string)
	// Contents, if set, reads the files of archives while they are listed, for [Entry.Held]. Each must be released. It is
	// the memory in which all listings of a call hold them: see [NewContents].
	Contents *semaphore.Weighted
	// Note, if set, receives what could not be listed of an archive.
	Note func(string)
}

// visitEach is the end of [Place.List] for values in memory: it visits the entry of each value that matches. The report
// counts the values, matching or not, up to the last one visited.
func visitEach[T any](
	ctx context.Context, all []T, matches func(T) bool, entry func(T) Entry, visit func(Entry) error,
) (report tree.Report, err error) {
	for _, one := range all {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		report.Files++
		if !matches(one) {
			continue
		}
		if err := visit(entry(one)); errors.Is(err, tree.SkipAll) {
			break
		} else if err != nil {
			return report, err
		}
	}
	return report, nil
}

// Entry is one entry of a place.
type Entry struct {
	Path        string
	Type        tree.Type
	Size        int64
	Modified    time.Time
	Observation *observations.Observation // nil for other entries

	name   string // "": prefix and Path
	prefix string
	root   *tree.Root
	mark   tree.Mark
	dir    *tree.Held // the open directory of the file, nil if it is not held
	held   *heldText  // of a member of an archive, nil if it was not read
}

// Name returns the name by which a call should name the entry.
func (e *Entry) Name() string {
	if e.name != "" {
		return e.name
	}
	return quoteName(e.prefix + e.Path) // made on demand: most entries of a search are never shown
}

// IsFile reports whether the entry is a file below a root, which OpenFile opens.
func (e *Entry) IsFile() bool { return e.root != nil }

// OpenFile opens a file below a root without looking at its content, faster than [Place.Open].
func (e *Entry) OpenFile() (tree.Opened, error) {
	if e.dir != nil {
		return e.dir.Open(e.Path)
	}
	return e.root.Opened(e.Path)
}

// Mark returns what differs between versions of a file, if the listing has Walk.Stat. It has only size and time for
// entries that are not files below a root.
func (e *Entry) Mark() tree.Mark {
	if e.root == nil {
		return tree.Mark{Size: e.Size, Modified: e.Modified.UnixNano()}
	}
	return e.mark
}

// Held returns the text of an entry that was listed with Contents, or why it has none; ok is false for other entries.
// Releasing the entry closes it.
func (e *Entry) Held() (src *Source, ok bool, err error) {
	if e == nil || e.held == nil {
		return nil, false, nil
	}
	return e.held.src, true, e.held.err
}

// Release releases what a listing with Hold or Contents keeps for the entry. It may be called again.
func (e *Entry) Release() {
	if e.held != nil {
		if e.held.src != nil {
			_ = e.held.src.Close()
		}
		e.held.free()
		e.held = nil
	}
	e.dir.Release()
	e.dir = nil
}

// Location is a directory or one source of a place, as a call names it.
type Location struct {
	Place Place
	Path  string
	IsDir bool
}

// List lists the location: see [Place.List].
func (l Location) List(ctx context.Context, o ListOptions, visit func(Entry) error) (tree.Report, error) {
	return l.Place.List(ctx, l.Path, o, visit)
}

// Name returns the name of the location.
func (l Location) Name() string { return l.Place.Name(l.Path) }

// Peek is [Place.Open], but does not count as a use of an observation: [Source.Use] does.
func (l Location) Peek(ctx context.Context, path string) (*Source, error) {
	if p, ok := l.Place.(observationPlace); ok {
		return p.peek(path)
	}
	return l.Place.Open(ctx, path)
}

// Dir returns the directory of the root that the location is below; ok is false in other places.
func (l Location) Dir() (dir string, ok bool) {
	if p, ok := l.Place.(rootPlace); ok {
		return p.root.Dir(), true
	}
	return "", false
}

// Created returns when the file at a path was created; [errors.ErrUnsupported] if the system does not know.
func (l Location) Created(path string) (time.Time, error) {
	p, ok := l.Place.(rootPlace)
	if !ok {
		return time.Time{}, errors.ErrUnsupported
	}
	f, _, err := p.root.OpenFile(path)
	if err != nil {
		return time.Time{}, p.nameError(err)
	}
	defer func() { _ = f.Close() }()
	return tree.Created(f)
}

// MissingRoots lets a call on several roots continue if one of them was removed: it reports the root and drops the
// error, unless no root is left.
type MissingRoots struct {
	Left   int               // locations that are not missing
	Report func(note string) // of a missing root
}

// Check takes the error of a location and returns the one that ends the call.
func (m *MissingRoots) Check(l Location, err error) error {
	root, ok := l.Place.(rootPlace)
	if !ok || root.label == "" || l.Path != "." || !errors.Is(err, tree.ErrGone) || m.Left <= 1 {
		return err
	}
	m.Left--
	m.Report(fmt.Sprintf("the root %s %s: start the server again; the other roots were searched", root.label, tree.ErrGone))
	return nil
}
