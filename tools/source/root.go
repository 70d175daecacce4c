package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// rootPlace is the place of a root.
type rootPlace struct {
	root   *tree.Root
	label  string   // its name among several roots, "" for the only one
	others []string // labels of the other roots
	docs   *Documents
	most   int64 // of a member of an archive, in bytes; 0: what an observation may have by default
}

// prefix returns what precedes a path below the root in its name.
func (p rootPlace) prefix() string {
	if p.label == "" {
		return ""
	}
	return p.label + "/"
}

// Name implements [Place].
func (p rootPlace) Name(path string) string { return quoteName(p.prefix() + path) }

// List implements [Place]: it walks in path order.
func (p rootPlace) List(ctx context.Context, at string, o ListOptions, visit func(Entry) error) (tree.Report, error) {
	if at != "." {
		if fi, err := p.root.Stat(at); err != nil {
			return tree.Report{}, err
		} else if !fi.IsDir() {
			return p.listOne(ctx, at, fi, o.Walk.Glob, visit)
		}
	}
	prefix := p.prefix()
	o.Walk.Start = at
	report, err := p.root.Walk(ctx, o.Walk, func(e tree.Entry) error {
		entry := Entry{Path: e.Path, Type: e.Type, Size: e.Size, Modified: e.Modified, prefix: prefix, mark: e.Mark}
		if e.Type == tree.Dir {
			entry.Size = 0 // what a file system reports for a directory differs between file systems and means nothing
		}
		if e.Type == tree.File {
			entry.root, entry.dir = p.root, e.In
		}
		return visit(entry)
	})
	if report.Stores > 0 {
		first := Entry{Path: report.FirstStore, prefix: prefix}
		report.FirstStore = first.Name()
	}
	return report, err
}

// listOne lists an entry that is no directory. The glob is matched against its last name.
func (p rootPlace) listOne(
	ctx context.Context, at string, fi fs.FileInfo, glob *tree.Glob, visit func(Entry) error,
) (tree.Report, error) {
	matches := func(fs.FileInfo) bool { return glob == nil || glob.Match(path.Base(at)) }
	entry := func(fi fs.FileInfo) Entry { return p.entry(at, fi) }
	return visitEach(ctx, []fs.FileInfo{fi}, matches, entry, visit)
}

// entry returns the entry at a path below the root, from the result of Stat.
func (p rootPlace) entry(at string, fi fs.FileInfo) Entry {
	e := Entry{Path: at, Type: tree.Other, Size: fi.Size(), Modified: fi.ModTime(), prefix: p.prefix(), root: p.root}
	e.mark = tree.MarkOf(fi)
	switch {
	case fi.IsDir():
		e.Type, e.Size = tree.Dir, 0
	case fi.Mode().IsRegular():
		e.Type = tree.File
	}
	return e
}

// Describe implements [Place].
func (p rootPlace) Describe(_ context.Context, at string) (Entry, error) {
	fi, err := p.root.Stat(at)
	if err != nil {
		return Entry{}, p.nameError(err)
	}
	return p.entry(at, fi), nil
}

// Open implements [Place].
func (p rootPlace) Open(ctx context.Context, at string) (*Source, error) {
	return p.open(ctx, at, p.prefix()+at)
}

// open opens the file at rel, which the caller named shown, or a table of a database.
func (p rootPlace) open(ctx context.Context, rel, shown string) (*Source, error) {
	table := ""
	f, fi, err := p.root.OpenFile(rel)
	if err != nil {
		if real := existing(p.root, rel); real != rel {
			rel = real
			f, fi, err = p.root.OpenFile(rel)
		} else if path, name, ok := cutTable(p.root, rel); ok {
			rel, table = path, name
			f, fi, err = p.root.OpenFile(rel)
		}
	}
	if err != nil {
		if a, inner, ok := p.archive(rel); ok && inner != "." {
			return a.Open(ctx, inner)
		}
	}
	err = p.nameError(err)
	switch {
	case errors.Is(err, tree.ErrGone):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && tree.IsGlob(rel):
		return nil, fmt.Errorf("%w; a source is one file: find with this glob lists the files that match", err)
	case errors.Is(err, fs.ErrNotExist):
		before := strings.TrimSuffix(shown, strings.TrimSuffix(rel, "/"))
		return nil, fmt.Errorf("%w%s", err, suggest(ctx, p.root, rel, before, tree.File))
	case errors.Is(err, tree.ErrNotFile) && isDir(p.root, rel):
		return nil, fmt.Errorf("%w; find with this path lists it", err)
	case err != nil:
		return nil, err
	}
	src := &Source{ReaderAt: f, Name: quoteName(shown), Size: fi.Size(), Modified: fi.ModTime(), closer: f}
	if table != "" {
		src.Name = strings.TrimSuffix(src.Name, "#"+table)
	}
	if src.Size == 0 {
		err = src.readUnsized()
	}
	if err == nil {
		err = p.docs.openDocument(ctx, rel, f, src)
	}
	if err == nil {
		err = src.openDatabase(ctx, f, table)
	}
	if err == nil && src.Document == nil && src.database == nil {
		err = src.unpack(false)
	}
	if err == nil && src.database == nil && table != "" {
		err = errors.New(cmp.Or(src.damage, "it is no SQLite database: only that has a #TABLE"))
	}
	if err == nil && src.database == nil {
		err = src.sniff(path.Base(rel))
	}
	for _, more := range []string{"-wal", "-journal"} {
		if fi, absent := p.root.Stat(rel + more); src.database != nil && absent == nil && fi.Size() > 0 {
			note := fmt.Sprintf("%s%s has %d bytes of changes that are not read", rel, more, fi.Size())
			src.database.beside = strings.TrimPrefix(src.database.beside+"; "+note, "; ")
		}
	}
	if err != nil {
		_ = src.Close()
		return nil, ReadError(shown, err)
	}
	return src, nil
}

// nameError puts the root's label before the name in an error, if there are several roots.
func (p rootPlace) nameError(err error) error {
	if p.label == "" {
		return err
	}
	if errors.Is(err, tree.ErrGone) {
		return fmt.Errorf("%w, or name another root: %s", err, content.ClipBytes(strings.Join(p.others, ", "), 200))
	}
	if in, ok := errors.AsType[*tree.NameError](err); ok {
		return &tree.NameError{Operation: in.Operation, Name: p.label + "/" + in.Name, Err: in.Err}
	}
	return err
}

// isDir reports whether a path that could not be opened as a file is a directory: an error can then name the tool
// that lists it.
func isDir(root *tree.Root, rel string) bool {
	fi, err := root.Stat(rel)
	return err == nil && fi.IsDir()
}
