package source

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

var errNoObservations = errors.New("this server keeps no observations")

// observationPlace is the place obs: of one owner. Its paths are IDs.
type observationPlace struct {
	store   *observations.Store
	owner   string
	noPaths bool // the path of a data file is no name
}

// Observations returns the place obs: of an owner. With a nil store every name of an observation is an error.
func Observations(store *observations.Store, owner string) NamedPlace {
	return observationPlace{store: store, owner: owner}
}

// ObservationsByID is [Observations] for callers on other machines: the path of a data file is no name to them.
func ObservationsByID(store *observations.Store, owner string) NamedPlace {
	return observationPlace{store: store, owner: owner, noPaths: true}
}

// Resolve implements [NamedPlace]: names are obs:, obs:ID, observation://ID and a printed `saved to` path.
func (p observationPlace) Resolve(name string) (path string, ok bool, err error) {
	switch {
	case strings.EqualFold(name, observations.Prefix), strings.EqualFold(name, observations.URIPrefix):
		if p.store == nil {
			return "", true, errNoObservations
		}
		return ".", true, nil
	case observations.IsName(name):
		id, err := observations.ParseID(name)
		if err != nil {
			return "", true, malformed(name)
		}
		if p.store == nil {
			return "", true, fmt.Errorf("obs:%s: %w", id, errNoObservations)
		}
		return string(id), true, nil
	case p.store != nil && !p.noPaths && filepath.IsAbs(name):
		id, ok := p.store.Find(name)
		return string(id), ok, nil
	}
	return "", false, nil
}

func malformed(name string) error {
	return fmt.Errorf("%q: %w: an ID is obs: and 12 characters of 0-9 a-z; find path=obs: lists all",
		content.ClipBytes(name, 200), observations.ErrMalformed)
}

// Name implements [Place].
func (p observationPlace) Name(path string) string {
	return observations.Prefix + strings.TrimPrefix(path, ".")
}

// List implements [Place]. The glob is matched against ID, name, tool and file of an observation.
func (p observationPlace) List(
	ctx context.Context, at string, o ListOptions, visit func(Entry) error,
) (report tree.Report, err error) {
	var all []*observations.Observation
	if at == "." {
		var damaged []observations.ID
		all, damaged, err = p.store.Listing(p.owner, false, o.Damaged != nil)
		if names := p.ownNames(damaged); len(names) > 0 {
			o.Damaged(names)
		}
	} else {
		var e Entry
		if e, err = p.Describe(ctx, at); err == nil {
			all = append(all, e.Observation)
		}
	}
	if err != nil {
		return report, err
	}
	if o.Newest {
		slices.SortFunc(all, observations.Newest)
	}
	g := o.Walk.Glob
	matches := func(o *observations.Observation) bool { return g == nil || o.HasName(g.Match) }
	return visitEach(ctx, all, matches, p.entry, visit)
}

// ownNames returns the names of damaged observations that the caller may know of.
func (p observationPlace) ownNames(damaged []observations.ID) (names []string) {
	for _, id := range damaged {
		owner, err := p.store.Owner(id)
		if owner == p.owner || err != nil && p.owner == observations.Local {
			names = append(names, p.Name(string(id)))
		}
	}
	return names
}

func (p observationPlace) entry(o *observations.Observation) Entry {
	name := p.Name(string(o.ID))
	return Entry{Path: string(o.ID), Type: tree.File, Size: o.Bytes, Modified: o.Created, Observation: o, name: name}
}

// Describe implements [Place]. It counts as a use of the observation.
func (p observationPlace) Describe(ctx context.Context, at string) (Entry, error) {
	if at == "." {
		return Entry{Path: at, Type: tree.Dir, name: p.Name(at)}, nil
	}
	src, err := p.Open(ctx, at)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = src.Close() }()
	return p.entry(src.Observation), nil
}

// Open implements [Place].
func (p observationPlace) Open(_ context.Context, at string) (*Source, error) {
	src, err := p.peek(at)
	if err == nil {
		src.Use()
	}
	return src, err
}

// peek is Open, but does not count as a use of the observation.
func (p observationPlace) peek(at string) (*Source, error) {
	if at == "." {
		return nil, malformed(observations.Prefix)
	}
	id := observations.ID(at)
	r, err := p.store.Peek(p.owner, id)
	if err != nil {
		return nil, ExplainObservation(id, err)
	}
	o := r.Observation
	src := &Source{
		ReaderAt: r, Name: observations.Prefix + string(id), Size: r.Size(), Modified: o.Created, Observation: &o,
		closer: r, index: r,
	}
	if err := src.sniff(""); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("read obs:%s: %w", id, err)
	}
	if o.Stats.Kind != "" {
		src.kind = func() content.Kind { return content.Kind(o.Stats.Kind) }
	}
	return src, nil
}

// ExplainObservation returns an error of the store in words for the model: it names the call that made an expired
// observation, or the next call.
func ExplainObservation(id observations.ID, err error) error {
	var expired *observations.ExpiredError
	switch {
	case errors.As(err, &expired):
		return expired // names the call that made it
	case errors.Is(err, observations.ErrNotFound):
		return fmt.Errorf("obs:%s: %w; find path=obs: lists all observations", id, observations.ErrNotFound)
	case errors.Is(err, observations.ErrDamaged):
		return fmt.Errorf("%w; repeat the call that made it", err) // err names it
	default:
		return fmt.Errorf("open obs:%s: %w", id, err)
	}
}
