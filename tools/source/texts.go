package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// Text is one text that a [TextProvider] makes.
type Text struct {
	Path     string
	Size     int64
	Modified time.Time
}

// TextProvider makes the texts of a place, such as the notes of an investigation.
type TextProvider interface {
	// Texts lists the texts that find and search walk, in any order.
	Texts(ctx context.Context) ([]Text, error)

	// Text returns a text; it may be one that Texts does not list. Its errors name it as a caller does, and say what to
	// do.
	Text(ctx context.Context, path string) (text []byte, modified time.Time, err error)
}

// textPlace is a place whose texts are made when they are asked for.
type textPlace struct {
	prefix string // "inv:"
	texts  TextProvider
}

// Texts returns the place of a prefix, whose texts the provider makes.
func Texts(prefix string, provider TextProvider) NamedPlace { return textPlace{prefix, provider} }

// Resolve implements [NamedPlace].
func (p textPlace) Resolve(name string) (path string, ok bool, err error) {
	if len(name) < len(p.prefix) || !strings.EqualFold(name[:len(p.prefix)], p.prefix) {
		return "", false, nil
	}
	if path = strings.Trim(name[len(p.prefix):], "/"); path == "" {
		path = "."
	}
	return path, true, nil
}

// Name implements [Place].
func (p textPlace) Name(path string) string { return p.prefix + strings.TrimPrefix(path, ".") }

// List implements [Place].
func (p textPlace) List(
	ctx context.Context, at string, o ListOptions, visit func(Entry) error,
) (report tree.Report, err error) {
	var all []Text
	if at == "." {
		all, err = p.texts.Texts(ctx)
	} else {
		var e Entry
		if e, err = p.Describe(ctx, at); err == nil {
			all = append(all, Text{at, e.Size, e.Modified})
		}
	}
	if err != nil {
		return report, err
	}
	slices.SortFunc(all, func(a, b Text) int {
		if o.Newest {
			return b.Modified.Compare(a.Modified)
		}
		return strings.Compare(a.Path, b.Path)
	})
	g := o.Walk.Glob
	return visitEach(ctx, all, func(t Text) bool { return g == nil || g.Match(t.Path) }, p.entry, visit)
}

func (p textPlace) entry(t Text) Entry {
	return Entry{Path: t.Path, Type: tree.File, Size: t.Size, Modified: t.Modified, name: p.Name(t.Path)}
}

// Describe implements [Place].
func (p textPlace) Describe(ctx context.Context, at string) (Entry, error) {
	if at == "." {
		return Entry{Path: at, Type: tree.Dir, name: p.Name(at)}, nil
	}
	text, modified, err := p.texts.Text(ctx, at)
	if err != nil {
		return Entry{}, err
	}
	return p.entry(Text{at, int64(len(text)), modified}), nil
}

// Open implements [Place].
func (p textPlace) Open(ctx context.Context, at string) (*Source, error) {
	if at == "." {
		return nil, fmt.Errorf("%s is a place, not a text: find path=%s lists what is in it", p.prefix, p.prefix)
	}
	text, modified, err := p.texts.Text(ctx, at)
	if err != nil {
		return nil, err
	}
	src := &Source{
		ReaderAt: bytes.NewReader(text), Name: p.Name(at), Size: int64(len(text)), Modified: modified,
		closer: io.NopCloser(nil),
	}
	if err := src.sniff(""); err != nil {
		return nil, ReadError(p.Name(at), err)
	}
	return src, nil
}
