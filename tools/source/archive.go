package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
)

// Limits of memory, in bytes: of the members that one call holds, and of one of them. A larger one lies in a temporary
// file without a name.
const (
	membersMemory = 64 << 20
	memberMemory  = 8 << 20
)

// NewContents returns the memory in which a call holds members of archives while it lists them.
func NewContents() *semaphore.Weighted { return semaphore.NewWeighted(membersMemory) }

// archivePlace is the place of a zip or a tar, perhaps compressed, below a root. Its paths are those of the members.
// Links are listed and not followed, and archives in it are files.
type archivePlace struct {
	rootPlace
	at string // the archive, below the root
}

// archive returns the archive that a path below the root names or leads into, and the path in it. Documents are none,
// though some are zips.
func (p rootPlace) archive(rel string) (a archivePlace, inner string, ok bool) {
	parts := strings.Split(strings.TrimSuffix(rel, "/"), "/")
	for i := range parts {
		at := existing(p.root, strings.Join(parts[:i+1], "/"))
		if fi, err := p.root.Stat(at); err == nil && fi.IsDir() {
			continue
		}
		f, fi, err := p.root.OpenFile(at)
		if err != nil {
			break
		}
		defer func() { _ = f.Close() }()
		inner = cmp.Or(strings.Join(parts[i+1:], "/"), ".")
		return archivePlace{p, at}, inner, !p.docs.Replaces(at) && packed.IsArchive(f, fi.Size())
	}
	return a, "", false
}

// ArchiveAt returns the archive that an entry of a location is; ok is false for other entries and other places. It looks
// into files alone whose names end as those of archives do.
func (l Location) ArchiveAt(e *Entry) (archive Location, ok bool) {
	p, below := l.Place.(rootPlace)
	if !below || !e.IsFile() || !packed.HasArchiveName(e.Path) {
		return l, false
	}
	a, _, ok := p.archive(e.Path)
	return Location{Place: a, Path: ".", IsDir: true}, ok
}

// Name implements [Place].
func (p archivePlace) Name(member string) string {
	return strings.TrimSuffix(p.rootPlace.Name(p.at)+"/"+member, "/.")
}

// walk visits the members of the archive, and returns what [packed.Walk] notes.
func (p archivePlace) walk(ctx context.Context, visit func(packed.Member) error) (note string, err error) {
	f, fi, err := p.root.OpenFile(p.at)
	if err != nil {
		return "", p.nameError(err)
	}
	defer func() { _ = f.Close() }()
	if note, err = packed.Walk(ctx, f, fi.Size(), visit); note != "" {
		note = p.Name(".") + ": " + note
	}
	return note, err
}

// entry returns the entry of a member.
func (p archivePlace) entry(m packed.Member) Entry {
	e := Entry{Path: m.Path, Type: tree.TypeOf(m.Mode), Size: m.Size, Modified: m.Modified, name: p.Name(m.Path)}
	if e.Type == tree.Dir {
		e.Size = 0
	}
	return e
}

// List implements [Place]. It lists in path order, with the directories that occur only in names of members; or with
// Contents in the order of the archive, of which it reads each member once. Of several members with one name it lists
// the last, as unpacking them would leave it.
func (p archivePlace) List(
	ctx context.Context, at string, o ListOptions, visit func(Entry) error,
) (report tree.Report, err error) {
	rel := func(name string) string { // the path below at; "" if there is none
		if below, ok := strings.CutPrefix(name, strings.TrimPrefix(at+"/", "./")); ok {
			return below
		} else if name == at {
			return path.Base(at)
		}
		return ""
	}
	outside := func(m packed.Member) bool { return rel(m.Path) == "" || m.Path == at && m.Mode.IsDir() }
	matches := func(m packed.Member) bool {
		name, g := rel(m.Path), o.Walk.Glob
		return (g == nil || g.Match(name)) && (o.Walk.Depth == 0 || strings.Count(name, "/") < o.Walk.Depth)
	}
	members, last := map[string]packed.Member{}, map[string]int{} // by path; last is the number of a member
	n, encrypted, again, first := 0, int64(0), map[string]bool{}, ""
	note, err := p.walk(ctx, func(m packed.Member) error {
		n++
		if outside(m) {
			return nil
		}
		if m.Why == packed.Encrypted {
			encrypted++
		}
		if last[m.Path] > 0 && !m.Mode.IsDir() {
			again[m.Path], first = true, cmp.Or(first, m.Path)
		}
		members[m.Path], last[m.Path] = m, n
		for dir := path.Dir(m.Path); dir != "." && members[dir].Path == ""; dir = path.Dir(dir) {
			members[dir] = packed.Member{Path: dir, Mode: fs.ModeDir, Modified: m.Modified}
		}
		return nil
	})
	if err != nil {
		return report, err
	}
	say := func(when bool, note string) {
		if when && o.Note != nil {
			o.Note(note)
		}
	}
	say(note != "", note)
	say(encrypted > 0, content.Plural(encrypted, "member is", "members are")+" encrypted in "+p.Name("."))
	say(first != "", fmt.Sprintf("%s more than once in %s, such as %s: %s",
		content.Plural(int64(len(again)), "name occurs", "names occur"), p.Name("."), first, lastIsRead))
	say(members[at].Mode.IsRegular() && packed.HasArchiveName(at), nestedNote(p.Name(at), "an archive"))
	if o.Contents == nil {
		all := slices.DeleteFunc(slices.Collect(maps.Values(members)), outside)
		slices.SortFunc(all, func(a, b packed.Member) int { // a directory comes before what is in it
			return strings.Compare(strings.ReplaceAll(a.Path, "/", "\x00"), strings.ReplaceAll(b.Path, "/", "\x00"))
		})
		return visitEach(ctx, all, matches, p.entry, visit)
	}
	n = 0
	_, err = p.walk(ctx, func(m packed.Member) error {
		if n++; last[m.Path] != n {
			return nil
		}
		if report.Files++; !matches(m) {
			return nil
		}
		e := p.entry(m)
		if m.Mode.IsRegular() {
			size := min(max(e.Size, 4<<10), memberMemory)
			if err := o.Contents.Acquire(ctx, size); err != nil {
				return err
			}
			src, err := p.source(ctx, m)
			e.held = &heldText{src, err, func() { o.Contents.Release(size) }}
		}
		return visit(e)
	})
	if errors.Is(err, tree.SkipAll) {
		err = nil
	}
	return report, err
}

const lastIsRead = "the last of the members with one name is read"

// find calls take for each member at a path, which may be written as it was shown. The error is for a path that no
// member has; the note is that of walk.
func (p archivePlace) find(ctx context.Context, at string, take func(packed.Member)) (note string, err error) {
	found, outer := false, ""
	note, err = p.walk(ctx, func(m packed.Member) error {
		switch {
		case m.Path == at, content.VisibleLine(m.Path) == at, content.Visible(m.Path, false) == at:
			take(m)
		case strings.HasPrefix(m.Path, at+"/") && !found:
			take(packed.Member{Path: at, Mode: fs.ModeDir, Why: packed.Directory})
		case m.Mode.IsRegular() && (strings.HasPrefix(at, m.Path+"/") || strings.HasPrefix(at, m.Path+"#")):
			outer = m.Path
			return nil
		default:
			return nil
		}
		found = true
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no member %s; find path=%[1]s lists them", p.Name("."), content.ClipBytes(at, 200))
		if outer != "" {
			if src, failed := p.Open(ctx, outer); failed == nil {
				note = src.damage // with the note of walk
				_ = src.Close()
			}
		}
		if note != "" {
			err = fmt.Errorf("%w; %s", err, note)
		}
	}
	return note, err
}

// Describe implements [Place].
func (p archivePlace) Describe(ctx context.Context, at string) (e Entry, err error) {
	if at == "." {
		return Entry{Path: at, Type: tree.Dir, name: p.Name(at)}, nil
	}
	_, err = p.find(ctx, at, func(m packed.Member) { e = p.entry(m) })
	return e, err
}

// Open implements [Place]. Of several members with one name it opens the last.
func (p archivePlace) Open(ctx context.Context, at string) (src *Source, err error) {
	var failed error
	n := 0
	note, err := p.find(ctx, at, func(m packed.Member) {
		if n++; src != nil {
			_ = src.Close()
		}
		src, failed = p.source(ctx, m)
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, ReadError(p.Name(at), failed)
	}
	if src.addDamage(note); n > 1 {
		src.notes = append(src.notes, fmt.Sprintf("%d members have the name %s: %s", n, src.Name, lastIsRead))
	}
	return src, nil
}

// source returns a member as a source. Of one that is damaged, or larger than an observation may be, it has what was
// read, and says so.
func (p archivePlace) source(ctx context.Context, m packed.Member) (src *Source, err error) {
	if m.Why != "" {
		return nil, errors.New("it is " + m.Why)
	}
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	src = &Source{Name: p.Name(m.Path), Size: m.Size, Modified: m.Modified, closer: io.NopCloser(nil)}
	most := cmp.Or(p.most, observations.DefaultMaxObservation)
	r = content.WithContext(ctx, io.LimitReader(r, min(most, m.Size)+1))
	switch err = src.spool(r); {
	case src.Size > m.Size:
		src.addDamage(fmt.Sprintf("%s has more than the %d bytes that its archive says: they were not read", src.Name, m.Size))
	case src.Size > most:
		src.addDamage(fmt.Sprintf("%s was read in part, its first %d bytes of %d (--max-observation)", src.Name, most, m.Size))
	case src.Size < m.Size:
		src.addDamage(fmt.Sprintf("%s is damaged (%v): this answer covers only %d of its %d bytes, and they may be wrong",
			src.Name, cmp.Or(err, io.ErrUnexpectedEOF), src.Size, m.Size))
	case err != nil:
		src.addDamage(fmt.Sprintf("%s is damaged (%v): its bytes may be wrong", src.Name, err))
	}
	src.Size = min(src.Size, most, m.Size)
	if err = ctx.Err(); err == nil {
		err = src.unpack(true)
	}
	if err == nil {
		err = src.sniff(path.Base(m.Path))
	}
	if err != nil {
		_ = src.Close()
	}
	return src, err
}

// spool reads a text of about Size bytes into memory, or into a temporary file without a name if it is large.
func (s *Source) spool(r io.Reader) error {
	var b bytes.Buffer
	b.Grow(int(min(s.Size, memberMemory)) + bytes.MinRead)
	n, err := io.CopyN(&b, r, memberMemory)
	s.ReaderAt, s.Size = bytes.NewReader(b.Bytes()), n
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "mcp-funnel-member-*")
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name())
	n, err = io.Copy(f, io.MultiReader(&b, r))
	s.ReaderAt, s.Size, s.closer = io.NewSectionReader(f, 0, n), n, f // not a file that others may write to
	return err
}

// heldText is the text of an entry that was read while it was listed, or why it has none.
type heldText struct {
	src  *Source
	err  error
	free func()
}
