package source

import (
	"context"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// ScratchPrefix begins the names of files that commands keep between calls: scratch:/tmp/x is /tmp/x of a command.
const ScratchPrefix = "scratch:"

// scratchPlace is the scratch directory of one owner's commands.
type scratchPlace struct {
	root func() (*tree.Root, error) // the directory; it stays open
}

// Scratch returns the place scratch: of an owner. root returns its directory, and an error if there is none yet.
func Scratch(root func() (*tree.Root, error)) NamedPlace { return scratchPlace{root} }

// Resolve implements [NamedPlace].
func (p scratchPlace) Resolve(name string) (path string, ok bool, err error) {
	rest, ok := strings.CutPrefix(name, ScratchPrefix)
	if !ok {
		return "", false, nil
	}
	if rest = strings.Trim(rest, "/"); rest == "" {
		rest = "."
	}
	root, err := p.root()
	if err != nil {
		return "", true, err
	}
	rest, err = root.Rel(rest)
	return rest, true, err
}

// Name implements [Place].
func (p scratchPlace) Name(path string) string { return rootPlace{label: ScratchPrefix}.Name(path) }

// place returns the directory as the place of a root, whose names it shares.
func (p scratchPlace) place() (rootPlace, error) {
	root, err := p.root()
	return rootPlace{root: root, label: ScratchPrefix}, err
}

// List implements [Place].
func (p scratchPlace) List(
	ctx context.Context, at string, o ListOptions, visit func(Entry) error,
) (tree.Report, error) {
	place, err := p.place()
	if err != nil {
		return tree.Report{}, err
	}
	return place.List(ctx, at, o, visit)
}

// Open implements [Place].
func (p scratchPlace) Open(ctx context.Context, at string) (*Source, error) {
	place, err := p.place()
	if err != nil {
		return nil, err
	}
	return place.Open(ctx, at)
}

// Describe implements [Place].
func (p scratchPlace) Describe(ctx context.Context, at string) (Entry, error) {
	place, err := p.place()
	if err != nil {
		return Entry{}, err
	}
	return place.Describe(ctx, at)
}
