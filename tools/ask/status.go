package ask

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// IndexStatus is how far the index of one place covers its files.
type IndexStatus struct {
	Path          string `json:"path"`
	Files         int    `json:"files"`
	Indexed       int    `json:"indexed"`
	Bytes         int64  `json:"bytes"`
	IndexedBytes  int64  `json:"indexed_bytes"`
	NotSearchable int    `json:"not_searchable"`
	IndexBytes    int64  `json:"index_bytes"`
	Passages      int    `json:"passages,omitempty"` // with an embedding model: of these files
	Vectors       int    `json:"vectors,omitempty"`  // passages that have one
}

// bytesPerSecond is about how much text is indexed in a second; documents take longer.
const bytesPerSecond = 8 << 20

// Rest estimates how long the rest takes to index.
func (s IndexStatus) Rest() time.Duration {
	return time.Duration(float64(s.Bytes-s.IndexedBytes)/bytesPerSecond*float64(time.Second)) + time.Second
}

// Progress reports how far the work is; see [tools.Output].
type Progress func(done, total int64, message string)

// Indexes compares the indexes with the files below a path. With update it brings them up to date.
func (k *Asker) Indexes(
	ctx context.Context, set source.Set, path string, update bool, p Progress,
) (all []IndexStatus, err error) {
	q := &question{k: k, ctx: ctx, in: tools.Input{Sources: set}, progress: p, args: Args{Path: path}}
	if q.deadline = time.Now().Add(-time.Hour); update {
		q.deadline = time.Now().Add(noLimit)
	}
	if err := q.gather(); err != nil {
		return nil, err
	}
	defer q.close()
	if err := q.refresh(); err != nil {
		return nil, q.removeDamaged(err)
	}
	if k.options.Embedder != nil {
		if err := q.embedPassages(); err != nil {
			return nil, fmt.Errorf("the index has all words, but not all vectors: %w", err)
		}
	}
	for _, p := range q.places {
		s := IndexStatus{
			Path: p.at.Name(), Files: p.status.Files, Indexed: p.status.Indexed, Bytes: p.status.Bytes,
			IndexedBytes: p.status.Done, NotSearchable: len(p.status.Unsearchable),
		}
		if k.options.Embedder != nil {
			if _, s.Passages, s.Vectors, err = p.index.Nearest(ctx, nil, 0, 0, 0, p.has); err != nil {
				return nil, err
			}
		}
		if dir, ok := p.at.Dir(); ok {
			s.Path = filepath.Join(dir, p.at.Path)
			if at, err := os.Stat(k.indexFile(dir)); err == nil {
				s.IndexBytes = at.Size()
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// RemoveIndexes removes the indexes of the roots.
func (k *Asker) RemoveIndexes(set source.Set) error {
	for _, r := range set.Roots {
		if file := k.indexFile(r.Dir()); file != index.Memory {
			if err := index.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}
