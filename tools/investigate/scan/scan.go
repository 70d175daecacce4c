// Package scan looks at every file of a directory tree once: what it is, how large, how old. No model takes part.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Options of Scan.
type Options struct {
	All   bool                  // hidden and ignored entries too, and those that are skipped by name
	Hash  bool                  // fill in File.Hash
	Count func(text string) int // of tokens; nil: none are counted

	// Last is the scan before: files that have not changed since are not opened. nil: every file is.
	Last *Tree

	// Progress is called with the number of files seen so far, and one of them; nil: it is not.
	Progress func(done int64, file string)
}

// File is one file of the tree. Links and special files are counted in [Tree.Other] and are not files here.
type File struct {
	Path string `json:"path"` // slash path below the directory that was scanned
	tree.Mark
	Lines     int64  `json:"lines"` // the last one may have no newline
	Tokens    int64  `json:"tokens"`
	Category  string `json:"category"` // see [Categories]
	Language  string `json:"language,omitempty"`
	MIME      string `json:"mime"`
	Binary    bool   `json:"binary,omitempty"`
	Generated bool   `json:"generated,omitempty"` // its head says so
	Hash      string `json:"hash,omitempty"`      // SHA-256 in hex
	Error     string `json:"error,omitempty"`     // why it was not read; lines, tokens and kind are then unknown

	// Bytes and tokens of its sample. They stay with a file that is known: a later scan, which opens few files or none,
	// estimates the tokens of all by the same samples.
	Sampled       int64 `json:"sampled,omitempty"`
	SampledTokens int64 `json:"sampled_tokens,omitempty"`
}

// Dir returns the directory of the file.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Skip is an entry that was not looked at.
type Skip struct {
	Path  string `json:"path"`
	Why   string `json:"why"`   // hidden, ignored or the name by which it is skipped
	Files int64  `json:"files"` // below it; 1 for a file, −1: not counted
}

// Tree is the result of a scan.
type Tree struct {
	Files   []File   `json:"files"` // in path order: names are compared one by one
	Dirs    []string `json:"dirs"`  // below the directory that was scanned, and "." for itself, in path order
	Other   int64    `json:"other"` // links and special files
	Skipped []Skip   `json:"skipped,omitempty"`
	Errors  []string `json:"errors,omitempty"`
	Ratio   float64  `json:"bytes_per_token"` // of the sampled texts
	Looked  int64    `json:"-"`               // files that were opened
	At      int64    `json:"at"`              // when the scan began, in nanoseconds since 1970
}

// maxErrors is how many errors a Tree holds. One more says how many others there were.
const maxErrors = 100

// Scan walks the directory start of a root. The error is that of ctx or of opening start; files that cannot be read
// have an Error each.
func Scan(ctx context.Context, root *tree.Root, start string, o Options) (*Tree, error) {
	s := &scanner{
		ctx: ctx, root: root, o: o, start: path.Clean(start), known: map[string]*File{}, jobs: make(chan job, 32),
	}
	if o.Last != nil {
		for i := range o.Last.Files {
			s.known[o.Last.Files[i].Path] = &o.Last.Files[i]
		}
	}
	s.tree.At = time.Now().UnixNano()
	s.tree.Dirs = []string{"."}
	var workers sync.WaitGroup
	failures := make([]error, runtime.GOMAXPROCS(0))
	for i := range failures {
		workers.Go(func() {
			panics.Into(&failures[i], s.work)
			for j := range s.jobs { // after a panic
				j.entry.In.Release()
			}
		})
	}
	report, err := root.Walk(ctx, tree.Options{Start: s.start, All: o.All, Hold: true, Skipped: s.skip}, s.visit)
	close(s.jobs)
	workers.Wait()
	if err = errors.Join(append(failures, err)...); panics.Again(err) != nil {
		return nil, err
	}
	if n := report.Unreadable; n > 0 {
		s.tree.Errors = append(s.tree.Errors, content.Plural(n, "directory", "directories")+" could not be read")
	}
	if n := report.Stores; n > 0 {
		s.skip(report.FirstStore, "a store of this program")
	}
	s.countSkipped()
	s.finish()
	return &s.tree, ctx.Err()
}

// scanner is the state of one scan: the walk passes files to workers.
//
//	walk ─► visit ─► jobs ─► look (workers) ─► files, by their number
type scanner struct {
	ctx   context.Context
	root  *tree.Root
	o     Options
	start string
	known map[string]*File // of the scan before

	tree       Tree
	files      []*File // by number
	pruned     *Skip   // the directory that is being skipped by its name
	prunedPath string  // its path as it is

	jobs   chan job
	looked atomic.Int64
}

type job struct {
	entry  tree.Entry
	file   *File
	number int
}

// below returns a path of the root as one of the directory that is scanned.
func (s *scanner) below(p string) string {
	return strings.TrimPrefix(p, s.start+"/")
}

// skip records an entry that the walk skips. It is called in the goroutine of the walk.
func (s *scanner) skip(p, why string) {
	s.tree.Skipped = append(s.tree.Skipped, Skip{Path: s.below(p), Why: why, Files: -1})
}

func (s *scanner) visit(e tree.Entry) error {
	p := s.below(e.Path)
	if s.pruned != nil && strings.HasPrefix(p, s.prunedPath+"/") {
		if e.Type != tree.Dir {
			s.pruned.Files++
		}
		e.In.Release()
		return nil
	}
	s.endPruned()
	if !utf8.ValidString(p) { // it could not be kept: JSON has no such names
		s.pruned = &Skip{Path: strings.ToValidUTF8(p, "\ufffd"), Why: "its name is not UTF-8"}
		if s.prunedPath = p; e.Type != tree.Dir {
			s.pruned.Files = 1
			e.In.Release()
		}
		return nil
	}
	switch e.Type {
	case tree.Dir:
		if path.Base(p) == ".git" { // the walk does not enter it
			s.skip(e.Path, "git")
			return nil
		}
		if why := s.skippedByName(e.Path); why != "" {
			s.pruned, s.prunedPath = &Skip{Path: p, Why: why}, p
			return nil
		}
		s.tree.Dirs = append(s.tree.Dirs, p)
	case tree.File:
		f := &File{Path: p}
		s.files = append(s.files, f)
		if s.o.Progress != nil && len(s.files)%64 == 0 {
			s.o.Progress(int64(len(s.files)), p)
		}
		select {
		case s.jobs <- job{e, f, len(s.files) - 1}:
		case <-s.ctx.Done():
			e.In.Release()
			return s.ctx.Err()
		}
	default:
		s.tree.Other++
	}
	return nil
}

func (s *scanner) endPruned() {
	if s.pruned != nil {
		s.tree.Skipped = append(s.tree.Skipped, *s.pruned)
		s.pruned = nil
	}
}

// skippedByName returns why a directory is skipped by its name; "" if it is not.
func (s *scanner) skippedByName(p string) string {
	if s.o.All {
		return ""
	}
	switch base := path.Base(p); {
	case base == "node_modules", base == "__pycache__":
		return base
	case strings.HasSuffix(base, ".egg-info"):
		return "*.egg-info"
	case strings.Contains(strings.ToLower(base), "env"):
		if _, err := s.root.Lstat(path.Join(p, "pyvenv.cfg")); err == nil {
			return "virtual environment"
		}
	}
	return ""
}

// countSkipped counts the files below the directories that the walk did not enter.
func (s *scanner) countSkipped() {
	s.endPruned()
	for i := range s.tree.Skipped {
		k := &s.tree.Skipped[i]
		if k.Files >= 0 {
			continue
		}
		at := path.Join(s.start, k.Path)
		if fi, err := s.root.Lstat(at); err != nil || !fi.IsDir() {
			k.Files = 1
			continue
		}
		dir, err := s.root.Sub(at) // as a root, .git is a directory like others
		if err != nil {
			continue
		}
		if report, err := dir.Walk(s.ctx, tree.Options{All: true}, func(tree.Entry) error { return nil }); err == nil {
			k.Files = report.Files
		}
		_ = dir.Close()
	}
	slices.SortFunc(s.tree.Skipped, func(a, b Skip) int { return cmp.Compare(a.Path, b.Path) })
}

// finish fills in what needs all files.
func (s *scanner) finish() {
	var sampled, tokens int64
	for _, f := range s.files {
		sampled += f.Sampled
		tokens += f.SampledTokens
		if f.Error != "" {
			s.tree.Errors = append(s.tree.Errors, f.Path+": "+f.Error)
		}
	}
	if more := len(s.tree.Errors) - maxErrors; more > 0 {
		s.tree.Errors = append(s.tree.Errors[:maxErrors], fmt.Sprintf("and %d more", more))
	}
	s.tree.Ratio = defaultRatio
	if tokens > 0 {
		s.tree.Ratio = float64(sampled) / float64(tokens)
	}
	s.tree.Files = make([]File, len(s.files))
	for i, f := range s.files {
		if !f.Binary && f.Error == "" {
			f.Tokens = int64(float64(f.Size)/s.tree.Ratio + 0.5)
		}
		s.tree.Files[i] = *f
	}
	s.files, s.tree.Looked = nil, s.looked.Load()
}

// defaultRatio is the bytes of a token where no text was sampled.
const defaultRatio = 3.5

// settled is how long before a scan a file must have changed for its mark to be trusted later: a kernel's clock for
// files ticks every few milliseconds, so that a write right after the scan may leave the mark as it was.
const settled = 2 * time.Second

// unchanged returns the entry of the previous scan for a file that cannot have changed since; ok is false if it has none.
func (s *scanner) unchanged(path string, m tree.Mark) (f File, ok bool) {
	last := s.known[path]
	if last == nil || last.Mark != m || last.Error != "" || last.Hash == "" && s.o.Hash ||
		max(m.Changed, m.Modified) >= s.o.Last.At-int64(settled) {
		return f, false
	}
	return *last, true
}

// Describe returns the tree in one line.
func (t *Tree) Describe() string {
	return fmt.Sprintf("%s in %s", content.Plural(int64(len(t.Files)), "file", "files"),
		content.Plural(int64(len(t.Dirs)), "directory", "directories"))
}
