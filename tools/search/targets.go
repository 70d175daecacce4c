package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type place = tools.Place

// target is one file or observation to search.
type target struct {
	name string     // as the caller should name it
	root *tree.Root // nil: an observation
	path string     // below root
}

// targets hands on what there is to search, in order, looking at ctx.
func (s *searcher) targets(ctx context.Context, places []place, to func(target) error) error {
	for _, p := range places {
		var err error
		switch {
		case p.Observations:
			err = s.observed(ctx, to)
		case p.ID != "":
			err = to(target{name: observations.Prefix + string(p.ID)})
		case p.IsDir:
			err = s.walk(ctx, p, to)
		case s.glob == nil || s.glob.Match(path.Base(p.Path)):
			err = to(target{name: shown(p, p.Path), root: p.Root, path: p.Path})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) walk(ctx context.Context, p place, to func(target) error) error {
	r, err := p.Root.Walk(ctx, tree.Options{Start: p.Path, Glob: s.glob, All: s.All}, func(e tree.Entry) error {
		if e.Type != tree.File {
			return nil
		}
		return to(target{name: shown(p, e.Path), root: p.Root, path: e.Path})
	})
	s.report.Ignored += r.Ignored
	s.report.Unreadable += r.Unreadable
	s.report.CutRules += r.CutRules
	return err
}

// shown is a path as the caller should name it: one that reads like an
// observation gets "./" before it, and bytes that JSON cannot hold are made visible.
func shown(p place, rel string) string {
	name := p.Shown(rel)
	if lower := strings.ToLower(name[:min(len(name), len(observations.URIPrefix))]); strings.HasPrefix(lower, observations.Prefix) ||
		strings.HasPrefix(lower, observations.URIPrefix) {
		name = "./" + name
	}
	if !utf8.ValidString(name) {
		name = content.Visible(name, false)
	}
	return name
}

// observed hands on all observations by ID, but those made from observations: a
// search would find again what it or another query found before.
func (s *searcher) observed(ctx context.Context, to func(target) error) error {
	all, err := s.in.Sources.Store.List(s.in.Sources.Owner, false)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b observations.Observation) int { return cmp.Compare(a.ID, b.ID) })
	for i := range all {
		o := &all[i]
		if s.glob != nil && !named(s.glob, o) {
			continue
		}
		if derived(o) {
			s.derived++
			continue
		}
		if err := to(target{name: observations.Prefix + string(o.ID)}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// named says whether the glob takes an observation: by its ID, its name, its tool or its file.
func named(g *tree.Glob, o *observations.Observation) bool {
	return slices.ContainsFunc([]string{string(o.ID), o.Name, o.Tool, o.File}, func(name string) bool {
		return name != "" && g.Match(strings.ReplaceAll(name, "/", "∕")) // a name is one name, whatever is in it
	})
}

// derived says whether an observation was made from others: by its origin, or by the path a search was given.
func derived(o *observations.Observation) bool {
	if slices.ContainsFunc(o.Origin, isObservation) {
		return true
	}
	if o.Tool != "search" && o.Tool != "find" {
		return false
	}
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(o.Args, &a) == nil {
		return isObservation(a.Path)
	}
	// Over 4 KiB the arguments are kept as a clipped string.
	var clipped string
	return json.Unmarshal(o.Args, &clipped) == nil && strings.Contains(clipped, `"path":"obs:`)
}

func isObservation(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(name, observations.Prefix) || strings.HasPrefix(name, observations.URIPrefix)
}

// opened is a text to search.
type opened struct {
	io.Reader
	io.Closer
	part bool // an observation that was kept in part
}

// errBinary says that a file is not text.
var errBinary = errors.New("binary")

func (s *searcher) open(ctx context.Context, t target) (*opened, error) {
	if t.root == nil {
		return s.openObservation(ctx, t.name)
	}
	f, fi, err := t.root.OpenFile(t.path)
	if err != nil {
		return nil, err
	}
	r, err := text(f, fi.Size())
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &opened{Reader: r, Closer: closers{f, r}}, nil
}

func (s *searcher) openObservation(ctx context.Context, name string) (*opened, error) {
	src, err := s.in.Sources.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if src.Encoding == content.NoText {
		_ = src.Close()
		return nil, errBinary
	}
	r, err := src.Text()
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	return &opened{Reader: r, Closer: src, part: src.Observation != nil && src.Observation.Dropped > 0}, nil
}

type closers struct {
	f *os.File
	r io.Reader
}

func (c closers) Close() error {
	if p, ok := c.r.(*peeked); ok {
		p.free()
	}
	return c.f.Close()
}

// peeked is a file of which the first bytes were read to know what it holds.
type peeked struct {
	*os.File
	head *[]byte
	size int64
	n    int // of head
	pos  int64
}

var heads = sync.Pool{New: func() any { b := make([]byte, content.SniffSize); return &b }}

// text reads a file as UTF-8. A file in UTF-8 without byte order mark, which most are, can be read again.
func text(f *os.File, size int64) (io.Reader, error) {
	p := &peeked{File: f, size: size, head: heads.Get().(*[]byte)}
	var err error
	p.n, err = io.ReadFull(f, *p.head)
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !whole {
		p.free()
		return nil, err
	}
	head := (*p.head)[:p.n]
	encoding := content.UTF8
	if !plain(head) {
		encoding = content.Detect(head, whole)
	}
	switch {
	case encoding == content.NoText:
		p.free()
		return nil, errBinary
	case encoding == content.UTF8BOM:
		p.free()
		return io.NewSectionReader(f, 3, max(size-3, 0)), nil
	case encoding != content.UTF8:
		copied := bytes.Clone(head)
		p.free()
		return encoding.Reader(io.MultiReader(bytes.NewReader(copied), f)), nil
	case int64(p.n) > size || whole && int64(p.n) < size: // it says no size (/proc), or has just changed: what is read is what counts
		p.size = int64(p.n)
		if !whole {
			return struct{ io.Reader }{io.MultiReader(bytes.NewReader(bytes.Clone(head)), f)}, nil
		}
	}
	return p, nil
}

// plain says quickly what is true of most files: UTF-8 (perhaps cut in a character at its end), without NUL or byte order mark.
func plain(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if c := head[len(head)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-n:]) {
				head = head[:len(head)-n]
			}
			break
		}
	}
	return utf8.Valid(head)
}

func (p *peeked) free() {
	if p.head != nil {
		heads.Put(p.head)
		p.head = nil
	}
}

// Size is the file's as it was opened: what is written to it meanwhile is not read.
func (p *peeked) Size() int64 { return p.size }

func (p *peeked) Read(b []byte) (n int, err error) {
	left := p.size - p.pos
	switch {
	case left <= 0:
		return 0, io.EOF
	case p.pos < int64(p.n):
		n = copy(b, (*p.head)[p.pos:p.n])
	default:
		n, err = p.File.Read(b[:min(int64(len(b)), left)])
	}
	p.pos += int64(n)
	return n, err
}
