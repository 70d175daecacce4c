package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/embed"
)

// vectorTables are made when a model is used for the first time. The trigger deletes a vector with its passage, also
// where a process without a model removes that: IDs of passages are used again.
const vectorTables = `
CREATE TABLE IF NOT EXISTS model (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (chunk INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS chunk_deleted AFTER DELETE ON chunks BEGIN DELETE FROM vectors WHERE chunk = old.id; END;
`

// UseModel prepares the index for the vectors of a model, and deletes those of another one.
func (x *Index) UseModel(ctx context.Context, name string) error {
	return x.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, vectorTables); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, "SELECT 1 FROM model WHERE name = ?", name).Scan(new(int))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM vectors; DELETE FROM model; INSERT INTO model VALUES (?)", name)
		return err
	})
}

// WithoutVector returns the next passages that have no vector. After is the last one that was returned before; the zero
// Hit begins.
func (x *Index) WithoutVector(ctx context.Context, after Hit, limit int) (all []Hit, err error) {
	err = x.each(ctx, "SELECT "+place+", 0.0 FROM chunks c JOIN files f ON f.id = c.file WHERE c.id > ? AND "+
		"NOT EXISTS (SELECT 1 FROM vectors WHERE chunk = c.id) ORDER BY c.id LIMIT ?", []any{after.id, limit},
		func(h Hit) bool {
			all = append(all, h)
			return true
		})
	return all, err
}

// AddVectors stores the vectors of passages, except of those that were removed or changed meanwhile. They must be as
// long as those that are stored.
func (x *Index) AddVectors(ctx context.Context, model string, hits []Hit, vectors [][]float32) error {
	return x.write(ctx, func(tx *sql.Tx) error {
		var length int
		err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT length(vector) / 4 FROM vectors LIMIT 1), ?) FROM model "+
			"WHERE name = ?", len(vectors[0]), model).Scan(&length)
		if errors.Is(err, sql.ErrNoRows) {
			return errors.New("another process uses another model for this index")
		}
		for i, h := range hits {
			if err == nil && len(vectors[i]) != length {
				err = lengthError(len(vectors[i]), length)
			}
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO vectors SELECT c.id, ? FROM chunks c JOIN files f "+
				"ON f.id = c.file WHERE c.id = ? AND c.start = ? AND c.stop = ? AND f.path = ? AND f.mark = ?",
				Pack(vectors[i]), h.id, h.Start, h.End, h.Path, h.Mark)
		}
		return err
	})
}

func lengthError(got, stored int) error {
	return fmt.Errorf("its vectors have %d numbers, those of the index %d; if the model changed, run mcp-funnel index rm",
		got, stored)
}

// Unit returns the vector with the direction of v and the length 1, or zeros.
func Unit(v []float32) []float32 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	by := 1 / math.Sqrt(cmp.Or(sum, 1))
	u := make([]float32, len(v))
	for i, f := range v {
		u[i] = float32(float64(f) * by)
	}
	return u
}

// Pack returns the bytes of the unit vector of v: float32, little-endian.
func Pack(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range Unit(v) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// Cosine returns the cosine of the angle between a unit vector and a packed one of the same length.
func Cosine(unit []float32, packed []byte) float64 {
	var sum float32
	for i, f := range unit {
		sum += f * math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return float64(sum)
}

// Nearest returns the passages of the files that of accepts whose cosine with a unit vector is at least least. The
// nearest come first, at most perFile of one file. Their Score is the cosine above the mean of all passages of these
// files. Nearest also counts these passages, and those that have a vector; with a nil unit vector it only counts.
func (x *Index) Nearest(
	ctx context.Context, unit []float32, least float64, limit, perFile int, of func(path string) bool,
) (hits []Hit, passages, vectors int, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT "+place+", v.vector FROM chunks c JOIN files f "+
		"ON f.id = c.file LEFT JOIN vectors v ON v.chunk = c.id")
	if err != nil {
		return nil, 0, 0, fmt.Errorf("read the index: %w", err)
	}
	defer func() { _ = rows.Close() }()
	mean := 0.0
	for rows.Next() {
		var h Hit
		var packed sql.RawBytes
		if err := rows.Scan(h.fields(&packed)...); err != nil {
			return nil, 0, 0, err
		}
		if !of(h.Path) {
			continue
		}
		if passages++; len(packed) == 0 {
			continue
		}
		if vectors++; unit == nil {
			continue
		}
		if len(packed) != 4*len(unit) {
			return nil, 0, 0, lengthError(len(unit), len(packed)/4)
		}
		h.Score = Cosine(unit, packed)
		if mean += h.Score; h.Score >= least {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	count := map[int64]int{}
	hits = slices.DeleteFunc(hits, func(h Hit) bool {
		count[h.file]++
		return count[h.file] > perFile
	})
	hits = hits[:min(len(hits), limit)]
	for i := range hits {
		hits[i].Score -= mean / float64(vectors)
	}
	return hits, passages, vectors, rows.Err()
}

// NearestMeaning returns the passages of the files that of accepts whose built-in vector has a cosine of at least least
// with a query. The nearest come first, at most perFile of one file; their Score is the cosine.
func (x *Index) NearestMeaning(
	ctx context.Context, to *embed.Query, least float64, limit, perFile int, of func(path string) bool,
) (hits []Hit, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT f.id, f.path, m.vectors FROM meanings m JOIN files f ON f.id = m.file")
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	defer func() { _ = rows.Close() }()
	type near struct {
		file   int64
		nth    int // passage of the file
		cosine float64
	}
	nearer := func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) }
	var all []near
	for rows.Next() {
		var file int64
		var path string
		var vectors sql.RawBytes
		if err := rows.Scan(&file, &path, &vectors); err != nil {
			return nil, err
		}
		if !of(path) {
			continue
		}
		before := len(all)
		for n := range len(vectors) / embed.Dimensions {
			if c := to.Cosine(vectors[n*embed.Dimensions : (n+1)*embed.Dimensions]); c >= least {
				all = append(all, near{file, n, c})
			}
		}
		slices.SortStableFunc(all[before:], nearer)
		all = all[:min(len(all), before+perFile)]
		if len(all) > 64*limit {
			slices.SortStableFunc(all, nearer)
			all = all[:limit]
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, nearer)
	for _, n := range all[:min(len(all), limit)] {
		err := x.each(ctx, "SELECT "+place+", ? FROM chunks c JOIN files f ON f.id = c.file WHERE c.file = ? "+
			"ORDER BY c.id LIMIT 1 OFFSET ?", []any{n.cosine, n.file, n.nth}, func(h Hit) bool {
			hits = append(hits, h)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}
