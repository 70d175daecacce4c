package investigate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// ScanReport is what a scan found.
type ScanReport = scan.Report

// Scan looks at every file below a directory, the first root by default, without keeping anything. count counts tokens;
// progress may be nil.
func Scan(ctx context.Context, sources source.Set, name string, all bool, count func(string) int,
	progress func(done, total int64, message string)) (ScanReport, error) {
	if name == "" && len(sources.Roots) > 1 {
		return ScanReport{}, errors.New("there are several roots: name a directory")
	}
	dir, err := sources.Directory(name)
	if err != nil {
		return ScanReport{}, err
	}
	o := scan.Options{All: all, Count: func(text []byte) int { return count(string(text)) }}
	if progress != nil {
		o.Progress = func(done int64, file string) { progress(done, 0, "files; now "+file) }
	}
	for _, r := range sources.Roots {
		rel, err := r.Rel(dir)
		if err != nil {
			continue
		}
		t, err := scan.Scan(ctx, r, filepath.ToSlash(rel), o)
		if err != nil {
			return ScanReport{}, err
		}
		return t.Report(dir), nil
	}
	return ScanReport{}, fmt.Errorf("%s lies below no root", dir)
}
