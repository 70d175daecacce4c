package investigate

import (
	"context"
	"errors"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

// ScanReport is what a scan found.
type ScanReport = scan.Report

// scanned returns the state of work on a directory of which nothing is kept: the first root by default.
func (i *Investigator) scanned(ctx context.Context, c Caller, name string, o scan.Options) (*work, error) {
	if name == "" && len(c.Sources.Roots) > 1 {
		return nil, errors.New("there are several roots: name a directory")
	}
	w := i.workFor(ctx, c)
	dir, err := c.Sources.Directory(name)
	if err == nil {
		err = w.resolveDir(dir)
	}
	if err != nil {
		return nil, err
	}
	o.Count = w.tokens
	w.tree, err = scan.Scan(ctx, w.root, w.start, o)
	return w, err
}

// Scan looks at every file below a directory without keeping anything. progress may be nil.
func (i *Investigator) Scan(ctx context.Context, c Caller, name string, all bool,
	progress func(done, total int64, message string)) (r ScanReport, err error) {
	o := scan.Options{All: all}
	if progress != nil {
		o.Progress = func(done int64, file string) { progress(done, 0, "files; now "+file) }
	}
	w, err := i.scanned(ctx, c, name, o)
	if err == nil {
		r = w.tree.Report(w.target)
	}
	return r, err
}

// Estimate is what investigating a directory would take.
type Estimate struct {
	Files       int   `json:"files"`
	Directories int   `json:"directories"`
	Tokens      int64 `json:"tokens"` // of all text
	Orders      int   `json:"orders"` // by the default plan
	Price       int64 `json:"price_tokens"`
}

// Estimate looks at a directory and keeps nothing.
func (i *Investigator) Estimate(ctx context.Context, c Caller, name string) (e Estimate, err error) {
	w, err := i.scanned(ctx, c, name, scan.Options{})
	if err != nil {
		return e, err
	}
	w.index()
	w.apply()
	return Estimate{
		Files: len(w.tree.Files), Directories: len(w.tree.Dirs), Tokens: w.tree.Totals()[0].Tokens,
		Orders: len(w.applied.Units), Price: w.price(w.applied.Units),
	}, nil
}
