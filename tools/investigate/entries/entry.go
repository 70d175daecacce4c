package entries

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
)

// Values of Quality.By: who wrote an entry.
const (
	Agent      = "agent"
	Mechanical = "mechanical"
	Model      = "model " // and its name
)

// Values of Quality.PartialReason.
const (
	OverBudget       = "context budget reached"
	OverBudgetBefore = "context budget reached before files processed"
	OutOfTurns       = "max turns reached"
)

// MechanicalConfidence is the confidence of what no model wrote.
const MechanicalConfidence = 0.3

// Coverage says what of a directory was read through this server since the investigation began. It comes from the
// trace.
type Coverage struct {
	Files  int   `json:"files"` // of the directory's own
	Opened int   `json:"opened"`
	Bytes  int64 `json:"bytes"`
	Shown  int64 `json:"shown"`
}

// Text says what was opened in words.
func (c *Coverage) Text() string {
	share := int64(0)
	if c.Bytes > 0 {
		share = (100*c.Shown + c.Bytes/2) / c.Bytes
	}
	return fmt.Sprintf("%d of %d files, %d %% of the bytes", c.Opened, c.Files, share)
}

// Quality is what an entry says of itself, and what was checked of it.
type Quality struct {
	Confidence       *float64            `json:"confidence,omitempty"` // 0–1
	ConfidenceReason string              `json:"confidence_reason,omitempty"`
	Completeness     *float64            `json:"completeness,omitempty"` // 0–1, as rated by its writer
	By               string              `json:"by,omitempty"`
	Partial          bool                `json:"partial,omitempty"`
	PartialReason    string              `json:"partial_reason,omitempty"`
	Evidence         []evidence.Citation `json:"evidence,omitempty"`
	Fingerprint      string              `json:"fingerprint,omitempty"` // of what it describes
	Order            string              `json:"order,omitempty"`
}

// Dir is what was found in one directory.
type Dir struct {
	Path             string    `json:"path"`          // absolute
	RelativePath     string    `json:"relative_path"` // below the target; "." for itself
	ChildCount       int       `json:"child_count"`   // files and directories in it
	Summary          string    `json:"summary"`
	DominantCategory string    `json:"dominant_category"`
	NotableFiles     []string  `json:"notable_files,omitempty"`
	StillUnknown     string    `json:"still_unknown,omitempty"`
	CachedAt         time.Time `json:"cached_at"`
	Quality
	Coverage *Coverage `json:"coverage,omitempty"`
}

// File is what was found in one file.
type File struct {
	Path          string    `json:"path"`
	RelativePath  string    `json:"relative_path"`
	SizeBytes     int64     `json:"size_bytes"`
	Category      string    `json:"category"`
	Summary       string    `json:"summary"`
	Notable       bool      `json:"notable,omitempty"`
	NotableReason string    `json:"notable_reason,omitempty"`
	CachedAt      time.Time `json:"cached_at"`
	Quality
}

// Texts returns the texts of an entry that may cite.
func (d *Dir) Texts() []*string { return []*string{&d.Summary, &d.StillUnknown, &d.ConfidenceReason} }

// Texts returns the texts of an entry that may cite.
func (f *File) Texts() []*string { return []*string{&f.Summary, &f.NotableReason, &f.ConfidenceReason} }

// relative returns the path by which an entry is kept.
func (d Dir) relative() string  { return d.RelativePath }
func (f File) relative() string { return f.RelativePath }

func (d Dir) quality() Quality  { return d.Quality }
func (f File) quality() Quality { return f.Quality }

type entry interface {
	relative() string
	quality() Quality
}

func entryName(relative string) string { return hash(relative) + ".json" }

// all returns the entries of a directory by their relative path, and how many are damaged: those count as missing.
func all[T entry](i *Investigation, dir string) (all map[string]T, damaged int, err error) {
	list, err := i.list(dir)
	if err != nil {
		return nil, 0, err
	}
	all = make(map[string]T, len(list))
	for _, r := range list {
		var e T
		if json.Unmarshal(r.Body, &e) != nil || entryName(e.relative()) != path.Base(r.Name) {
			damaged++
			continue
		}
		all[e.relative()] = e
	}
	return all, damaged, nil
}

// put writes an entry, unless it is partial and a whole one is there that a model or an agent wrote.
func put[T entry](i *Investigation, dir string, e T) (kept bool, err error) {
	name := dir + "/" + entryName(e.relative())
	if e.quality().Partial {
		var before T
		ok, err := i.Read(name, &before)
		q := before.quality()
		whole := ok && !q.Partial && q.By != Mechanical && q.Fingerprint == e.quality().Fingerprint
		if err != nil || whole {
			return false, err
		}
	}
	return true, i.Write(name, e)
}

// Dirs returns the entries of directories by their relative path, and how many files are damaged. It is called between
// Lock and unlock.
func (i *Investigation) Dirs() (map[string]Dir, int, error) { return all[Dir](i, dirsDir) }

// Files returns the entries of files by their relative path, and how many files are damaged. It is called between Lock
// and unlock.
func (i *Investigation) Files() (map[string]File, int, error) { return all[File](i, filesDir) }

// PutDir writes the entry of a directory. kept is false if it is partial and a whole one is there.
func (i *Investigation) PutDir(d Dir) (kept bool, err error) { return put(i, dirsDir, d) }

// PutFile writes the entry of a file. kept is false if it is partial and a whole one is there.
func (i *Investigation) PutFile(f File) (kept bool, err error) { return put(i, filesDir, f) }

// RemoveDir removes the entry of a directory that no longer exists.
func (i *Investigation) RemoveDir(relative string) error {
	if i.store.readOnly {
		return nil
	}
	return explain(i.store.records.Delete(i.key(dirsDir + "/" + entryName(relative))))
}

// Weak returns the entries whose confidence is missing or below 0.7, the least sure first.
func Weak[T entry](all map[string]T) []T {
	sure := func(e T) float64 {
		if c := e.quality().Confidence; c != nil {
			return *c
		}
		return -1
	}
	var weak []T
	for _, e := range all {
		if sure(e) < weakBelow {
			weak = append(weak, e)
		}
	}
	slices.SortFunc(weak, func(a, b T) int {
		return cmp.Or(cmp.Compare(sure(a), sure(b)), cmp.Compare(a.relative(), b.relative()))
	})
	return weak
}

const weakBelow = 0.7
