package ask

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
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
}

// bytesPerSecond is about how much text is indexed in a second; documents take longer.
const bytesPerSecond = 8 << 20

// Rest estimates how long the rest takes to index.
func (s IndexStatus) Rest() time.Duration {
	return time.Duration(float64(s.Bytes-s.IndexedBytes)/bytesPerSecond*float64(time.Second)) + time.Second
}

// IndexStatus compares the indexes with the files below a path, and indexes nothing.
func (k *Asker) IndexStatus(ctx context.Context, c Caller, path string) ([]IndexStatus, error) {
	return k.indexes(ctx, c, path, func(q *question) { q.deadline = time.Now().Add(-time.Hour) })
}

// UpdateIndex brings the indexes up to date with the files below a path.
func (k *Asker) UpdateIndex(ctx context.Context, c Caller, path string) ([]IndexStatus, error) {
	return k.indexes(ctx, c, path, func(q *question) { q.deadline = time.Time{} })
}

// RemoveIndex removes the indexes of the roots below which a path lies.
func (k *Asker) RemoveIndex(_ context.Context, c Caller, _ string) ([]IndexStatus, error) {
	for _, r := range c.Sources.Roots {
		if file := k.indexFile(r.Dir()); file != index.Memory {
			if err := index.Remove(file); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func (k *Asker) indexes(
	ctx context.Context, c Caller, path string, set func(*question),
) (all []IndexStatus, err error) {
	q := &question{k: k, ctx: ctx, caller: c, args: Args{Path: path}}
	set(q)
	if err := q.gather(); err != nil {
		return nil, err
	}
	defer q.close()
	if err := q.refresh(); err != nil {
		return nil, err
	}
	for _, p := range q.places {
		s := IndexStatus{
			Path: p.at.Name(), Files: p.status.Files, Indexed: p.status.Indexed, Bytes: p.status.Bytes,
			IndexedBytes: p.status.Done, NotSearchable: len(p.status.Unsearchable),
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
