package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// ErrNoRoot is answered by every tool that needs a directory where none was granted.
var ErrNoRoot = errors.New("no root: no directory was granted to this server; start it with --root DIR (obs:ID sources work without one)")

// Sources is what one caller may name: the roots granted and its own observations.
type Sources struct {
	Roots []*tree.Root
	Store *observations.Store // nil: nothing is kept
	Owner string

	NoRoot error // why there are no roots, where there are none; nil: [ErrNoRoot]
}

// A Source is an open text to look into: a workspace file or an observation. Offsets are of its bytes as stored.
type Source struct {
	io.ReaderAt        // an *os.File for a workspace file (but see unsized), an *observations.Reader for an observation
	Name        string // as it should be named in the next call: "src/a.go", "obs:k3v9q2m7x4ab"
	Size        int64
	Modified    time.Time
	Observation *observations.Observation // nil for a workspace file
	Encoding    content.Encoding          // by its first bytes

	kind   func() content.Kind
	closer io.Closer
	reader *observations.Reader // nil for a workspace file
}

// Open opens a file or an observation: a path, obs:ID, observation://ID or a printed `saved to` path.
// A name shown with \xNN or \u202e in it is taken as shown. Errors say what to do and echo at most 200 bytes.
func (s Sources) Open(ctx context.Context, name string) (*Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if id, is, err := s.observation(name); is {
		if err != nil {
			return nil, err
		}
		return s.openObservation(id)
	}
	if name == "" {
		return nil, errors.New("source is empty: name a file or obs:ID")
	}
	root, rel, shown, err := s.name(name)
	if err != nil {
		return nil, err
	}
	f, fi, err := root.OpenFile(rel)
	if err != nil {
		if real, ok := meant(root, rel); ok {
			rel = real
			f, fi, err = root.OpenFile(rel)
		}
	}
	err = s.named(err, root)
	switch {
	case errors.Is(err, tree.ErrGone):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && tree.IsGlob(rel):
		return nil, fmt.Errorf("%w; a source is one file: find with this glob lists what it matches", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w%s", err, instead(ctx, root, rel, strings.TrimSuffix(shown, strings.TrimSuffix(rel, "/")), tree.File))
	case errors.Is(err, tree.ErrNotFile) && isDir(root, rel):
		return nil, fmt.Errorf("%w; find with this path lists it", err)
	case err != nil:
		return nil, err
	}
	src := &Source{ReaderAt: f, Name: spell(shown), Size: fi.Size(), Modified: fi.ModTime(), closer: f}
	if src.Size == 0 {
		err = src.unsized()
	}
	if err == nil {
		err = src.look(path.Base(rel))
	}
	if err != nil {
		_ = f.Close()
		return nil, Unread(shown, err)
	}
	return src, nil
}

// Unread words that a file, named as the caller does, could not be read.
func Unread(shown string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err // it names the path again, below its root
	}
	return fmt.Errorf("read %s: %w", content.ClipBytes(shown, 200), err)
}

// maxUnsized is how much is taken of a file that tells no size, in bytes.
const maxUnsized = 1 << 20

// unsized reads a file that says it is empty: the kernel's own files (/proc, /sys) say so whatever they hold, and
// one that is being written may have said so a moment ago. What it holds now is the source.
func (s *Source) unsized() error {
	const page = 4096 // some take reads of whole pages only
	text := make([]byte, page)
	n, err := s.ReadAt(text, 0)
	if n == len(text) {
		text = make([]byte, maxUnsized+page)
		n, err = s.ReadAt(text, 0)
	}
	switch {
	case n > maxUnsized:
		return fmt.Errorf("it tells no size and holds over %d bytes, perhaps without an end; it cannot be looked into", maxUnsized)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case n > 0:
		s.ReaderAt, s.Size = bytes.NewReader(text[:n]), int64(n)
	}
	return nil
}

func (s Sources) openObservation(id observations.ID) (*Source, error) {
	r, err := s.Store.Open(s.Owner, id)
	if err != nil {
		return nil, Explain(id, err)
	}
	o := r.Observation
	src := &Source{ReaderAt: r, Name: observations.Prefix + string(id), Size: r.Size(), Modified: o.Created, Observation: &o, closer: r, reader: r}
	if err := src.look(""); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("read obs:%s: %w", id, err)
	}
	if o.Seen.Kind != "" {
		src.kind = func() content.Kind { return content.Kind(o.Seen.Kind) }
	}
	return src, nil
}

// instead is what may have been meant by a name that is not there: "" or the rest of a sentence.
// before stands before a path below the root when it is shown; only what is of one of the types may have been meant.
func instead(ctx context.Context, root *tree.Root, rel, before string, types ...tree.Type) string {
	dir, base := path.Split(strings.TrimSuffix(rel, "/"))
	var near []string
	_, err := root.Walk(ctx, tree.Options{Start: dir, Depth: 1}, func(e tree.Entry) error {
		name := path.Base(e.Path)
		if slices.Contains(types, e.Type) && len(base) < 100 && len(name) < 100 && distance(strings.ToLower(base), strings.ToLower(name)) <= 2 {
			near = append(near, VisibleName(spell(before+e.Path)))
		}
		if len(near) == 3 {
			return tree.SkipAll
		}
		return nil
	})
	if err != nil || len(near) == 0 {
		return "; find lists the files there are"
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// isDir says whether what could not be opened as a file is a directory: an error can then name the tool that lists it.
func isDir(root *tree.Root, rel string) bool {
	fi, err := root.Stat(rel)
	return err == nil && fi.IsDir()
}

// Explain words an error of the store for the model: which call made an expired observation, and the way on.
func Explain(id observations.ID, err error) error {
	var expired *observations.ExpiredError
	switch {
	case errors.As(err, &expired):
		return expired // it names the call that made it
	case errors.Is(err, observations.ErrNotFound):
		return fmt.Errorf("obs:%s: %w; find path=obs: lists those there are", id, observations.ErrNotFound)
	case errors.Is(err, observations.ErrDamaged):
		return fmt.Errorf("%w; repeat the call that made it", err) // it says of which
	default:
		return fmt.Errorf("open obs:%s: %w", id, err)
	}
}

// observation says whether name names an observation, and which.
func (s Sources) observation(name string) (id observations.ID, is bool, err error) {
	switch {
	case isObservation(name):
		id, err = observations.ParseID(name)
		if err != nil {
			err = fmt.Errorf("%q: %w: obs: and 12 of 0-9 a-z; find path=obs: lists those there are", content.ClipBytes(name, 200), observations.ErrMalformed)
		} else if s.Store == nil {
			err = fmt.Errorf("obs:%s: this server keeps no observations", id)
		}
		return id, true, err
	case s.Store != nil && filepath.IsAbs(name):
		id, is = s.Store.Find(name)
		return id, is, nil
	}
	return "", false, nil
}

func (s Sources) noRoot() error {
	if s.NoRoot != nil {
		return s.NoRoot
	}
	return ErrNoRoot
}

// locate finds the root that a path names and the way below it, to what is there.
func (s Sources) locate(name string) (root *tree.Root, rel, shown string, err error) {
	if root, rel, shown, err = s.name(name); err == nil {
		if real, ok := meant(root, rel); ok {
			rel = real
		}
	}
	return root, rel, shown, err
}

// meant is what a name that is not there stands for: one that was shown with its hidden characters made visible is accepted back.
func meant(root *tree.Root, rel string) (real string, ok bool) {
	if _, gone := root.Lstat(rel); gone == nil {
		return "", false
	}
	return asShown(root, rel)
}

// name is locate of a name as it stands, whether or not there is anything. One in the quotes in which it was shown is taken without
// them, where nothing has it as it stands.
func (s Sources) name(name string) (root *tree.Root, rel, shown string, err error) {
	if len(s.Roots) == 0 {
		return nil, "", "", s.noRoot()
	}
	root, rel, shown, err = s.below(name)
	if plain, ok := unquoted(name); ok && (err != nil || !there(root, rel)) {
		if r, at, as, unfit := s.below(plain); unfit == nil && there(r, at) {
			name, root, rel, shown, err = plain, r, at, as, nil
		}
	}
	if errors.Is(err, tree.ErrOutside) {
		err = fmt.Errorf("%w; %s", err, s.inside())
	}
	if err != nil {
		return nil, "", "", err
	}
	if strings.HasSuffix(name, "/") && rel != "." {
		rel += "/" // a directory is meant: a file of that name is refused where it is opened
	}
	return root, rel, shown, nil
}

func (s Sources) below(name string) (root *tree.Root, rel, shown string, err error) {
	if len(s.Roots) == 1 {
		rel, err = s.Roots[0].Rel(name)
		return s.Roots[0], rel, rel, err
	}
	labels := s.labels()
	if filepath.IsAbs(name) {
		for i, r := range s.Roots {
			if rel, err = r.Rel(name); err == nil {
				return r, rel, path.Join(labels[i], rel), nil
			}
		}
		return nil, "", "", err
	}
	clean := path.Clean(filepath.ToSlash(name))
	first, rest, _ := strings.Cut(clean, "/")
	for i, r := range s.Roots {
		if labels[i] == first {
			if rest == "" {
				rest = "."
			}
			rel, err = r.Rel(rest)
			return r, rel, path.Join(labels[i], rel), err
		}
	}
	if clean == "." {
		return nil, "", "", fmt.Errorf("%s: it names all roots, and no file: find lists them; %s", content.ClipBytes(name, 200), s.inside())
	}
	meant := ""
	for i, r := range s.Roots {
		if f, _, err := r.OpenFile(clean); err == nil {
			_ = f.Close()
			meant = "; did you mean " + content.ClipBytes(VisibleName(spell(path.Join(labels[i], clean))), 200) + "?"
			break
		}
	}
	return nil, "", "", fmt.Errorf("%s: %s%s", content.ClipBytes(name, 200), s.inside(), meant)
}

// inside says how a path names what may be named. It tells nothing of where the roots are.
func (s Sources) inside() string {
	if len(s.Roots) == 1 {
		return `a path is relative to the root, as "src/a.go" is; "." is the root itself`
	}
	return "a path begins with the name of a root: " + content.ClipBytes(strings.Join(s.labels(), ", "), 200)
}

// named has an error of one of several roots say the name by which it was called.
func (s Sources) named(err error, root *tree.Root) error {
	i := slices.Index(s.Roots, root)
	if len(s.Roots) < 2 || i < 0 {
		return err
	}
	if errors.Is(err, tree.ErrGone) {
		others := slices.Delete(s.labels(), i, i+1)
		return fmt.Errorf("%w, or name another root: %s", err, content.ClipBytes(strings.Join(others, ", "), 200))
	}
	if in := (*tree.NameError)(nil); errors.As(err, &in) {
		return &tree.NameError{Operation: in.Operation, Name: s.labels()[i] + "/" + in.Name, Err: in.Err}
	}
	return err
}

// labels are the roots' names, made unique: "src", "src-2".
func (s Sources) labels() []string {
	out := make([]string, len(s.Roots))
	taken := map[string]bool{}
	for i, r := range s.Roots {
		label := r.Name()
		for n := 2; taken[label]; n++ {
			label = fmt.Sprintf("%s-%d", r.Name(), n)
		}
		taken[label] = true
		out[i] = label
	}
	return out
}

// look reads the first bytes to know the encoding, and the kind once it is asked for: not who reads a text asks, nor who takes lines of it.
func (s *Source) look(name string) error {
	prefix := make([]byte, min(content.SniffSize, s.Size+1)) // one more, to see the end
	n, err := s.ReadAt(prefix, 0)
	whole := errors.Is(err, io.EOF)
	if err != nil && !whole {
		return err
	}
	text := prefix[:n]
	if s.Encoding = content.Detect(text, whole); !s.Plain() {
		text, err = io.ReadAll(io.LimitReader(s.Encoding.Reader(bytes.NewReader(text)), content.SniffSize))
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	s.kind = sync.OnceValue(func() content.Kind { return content.Sniff(text, whole, name) })
	return nil
}

// Kind is what the source is, by its first bytes, or as it was kept.
func (s *Source) Kind() content.Kind { return s.kind() }

// Binary says that the source is of that kind, which is known sooner than another.
func (s *Source) Binary() bool {
	return (s.Observation != nil || s.Encoding != content.UTF8) && s.Kind() == content.Binary
}

// Close lets go of the source.
func (s *Source) Close() error { return s.closer.Close() }

// Done ends a call that has looked into the source: it notes what else has to be known of it, and closes it.
func (s *Source) Done(out Output) {
	var d Decoded
	d.Add(s.Name, s.Encoding)
	d.Tell(out)
	s.Leave(out)
}

// Leave is Done for one of several sources, whose decoding is told once for all of them: see [Decoded].
func (s *Source) Leave(out Output) {
	if caveat := s.Caveat(); caveat != "" {
		out.Note(caveat)
	}
	_ = s.Close()
}

// Caveat says why what was seen of the source may not be all there was, or not all of one time: it was kept in part, or has changed
// since it was opened. A file that has only grown is what it was, as far as it was looked at. "": neither.
func (s *Source) Caveat() string {
	if o := s.Observation; o != nil && o.Dropped > 0 {
		return fmt.Sprintf("%s was kept in part, its first %d bytes of %d: nothing here tells of the rest", s.Name, o.Bytes, o.Bytes+o.Dropped)
	}
	f, ok := s.ReaderAt.(*os.File)
	if !ok {
		return ""
	}
	switch now, err := f.Stat(); {
	case err != nil || now.Size() > s.Size:
		return ""
	case now.Size() < s.Size:
		return fmt.Sprintf("%s became shorter during this call, from %d to %d bytes: what stands here is of no one time; call again", s.Name, s.Size, now.Size())
	case !now.ModTime().Equal(s.Modified):
		return s.Name + " was written to during this call: what stands here may be of no one time; call again"
	}
	return ""
}

// Plain says that the bytes as stored are the text (UTF-8 without BOM, or binary): offsets into one are offsets into the other.
func (s *Source) Plain() bool { return s.Encoding == "utf-8" || s.Encoding == "binary" }

// Text reads the text from its start, decoded to UTF-8.
func (s *Source) Text() (io.Reader, error) {
	r := io.NewSectionReader(s.ReaderAt, 0, s.Size)
	if s.Plain() {
		return r, nil
	}
	text, _, err := content.Decode(r)
	return text, err
}

// LineOffset returns a line at or before line (from 1) whose start is known, and its byte; 1, 0 where there is no index.
func (s *Source) LineOffset(line int64) (known, at int64) {
	if s.reader != nil && s.Plain() {
		if offset, at, err := s.reader.LineOffset(line); err == nil {
			return at, offset
		}
	}
	return 1, 0
}

// CharOffset is the same for chars, counted from 0.
func (s *Source) CharOffset(char int64) (known, at int64) {
	if s.reader != nil && s.Plain() {
		if offset, at, err := s.reader.CharOffset(char); err == nil {
			return at, offset
		}
	}
	return 0, 0
}

// A Place is where a search or a listing happens: all observations, one source, or a directory of a root.
type Place struct {
	Observations bool            // "obs:": all of this caller's observations
	ID           observations.ID // one observation, else ""
	Root         *tree.Root      // else nil
	Path         string          // below Root, slash; "." is the root itself
	IsDir        bool            // Path is a directory
	Prefix       string          // what stands before a path below Root when it is shown: "" or "rootname/"
}

// Places says what a path names; with several roots "." (or nothing) names all of them, each a place.
func (s Sources) Places(ctx context.Context, name string) ([]Place, error) {
	if strings.EqualFold(name, observations.Prefix) || strings.EqualFold(name, observations.URIPrefix) {
		if s.Store == nil {
			return nil, errors.New("this server keeps no observations")
		}
		return []Place{{Observations: true}}, nil
	}
	if id, is, err := s.observation(name); is {
		return []Place{{ID: id}}, err
	}
	if len(s.Roots) == 0 {
		return nil, s.noRoot()
	}
	if name == "" {
		name = "."
	}
	if len(s.Roots) > 1 && path.Clean(filepath.ToSlash(name)) == "." {
		var all []Place
		for i, label := range s.labels() {
			all = append(all, Place{Root: s.Roots[i], Path: ".", IsDir: true, Prefix: label + "/"})
		}
		return all, nil
	}
	root, rel, _, err := s.locate(name)
	if err != nil {
		return nil, err
	}
	p := Place{Root: root, Path: strings.TrimSuffix(rel, "/")}
	if len(s.Roots) > 1 {
		for i, r := range s.Roots {
			if r == root {
				p.Prefix = s.labels()[i] + "/"
			}
		}
	}
	fi, err := root.Stat(rel)
	err = s.named(err, root)
	switch {
	case errors.Is(err, tree.ErrGone):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && tree.IsGlob(name):
		return nil, fmt.Errorf("%w; path takes no glob, glob does", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w%s", err, instead(ctx, root, rel, p.Prefix, tree.File, tree.Dir))
	case err != nil:
		return nil, err
	}
	p.IsDir = fi.IsDir()
	return []Place{p}, nil
}

// Survey looks into places one after the other. A root among several that is gone is told, once, and the others are still
// looked into; where none is left that is the error.
type Survey struct {
	Left int               // how many places are still to be had
	Tell func(said string) // that one is gone
}

// Looked takes the error of looking into a place, and gives the one that ends the survey.
func (s *Survey) Looked(p Place, err error) error {
	if p.Prefix == "" || p.Path != "." || !errors.Is(err, tree.ErrGone) || s.Left <= 1 {
		return err
	}
	s.Left--
	s.Tell(fmt.Sprintf("the root %s %s: start the server again; what the other roots hold is found", strings.TrimSuffix(p.Prefix, "/"), tree.ErrGone))
	return nil
}

// Shown is the name of a path below the place's root, as the caller should name it.
func (p Place) Shown(path string) string { return spell(p.Prefix + path) }

// spell is how a path must be named in the next call: a file called obs:x needs a "./" not to be taken for an observation.
func spell(path string) string {
	if isObservation(path) {
		return "./" + path
	}
	return path
}

// isObservation says whether a source is named as an observation.
func isObservation(source string) bool {
	if source == "" || source[0] != 'o' && source[0] != 'O' { // as most of the paths that are found
		return false
	}
	lower := strings.ToLower(source)
	return strings.HasPrefix(lower, observations.Prefix) || strings.HasPrefix(lower, observations.URIPrefix)
}
