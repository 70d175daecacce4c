package scan

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// Report is what `mcp-funnel scan --json` prints.
type Report struct {
	Target      string           `json:"target"`
	Files       int64            `json:"files"`
	Lines       int64            `json:"lines"` // the last one of a file may have no newline
	Bytes       int64            `json:"bytes"`
	DiskBytes   int64            `json:"disk_bytes"`
	Tokens      int64            `json:"tokens"` // of texts, estimated
	Other       int64            `json:"other"`  // links and special files
	Directories []DirTotals      `json:"directories"`
	Languages   map[string]int64 `json:"languages"`  // lines
	Categories  map[string]int64 `json:"categories"` // files
	MIME        map[string]int64 `json:"mime"`       // files
	Largest     []Sized          `json:"largest"`
	Recent      []Dated          `json:"recent"`
	Skipped     []Skip           `json:"skipped"`
	Errors      []string         `json:"errors"`
	Signals     Signals          `json:"survey_signals"`
}

// DirTotals are the totals of a directory and all below it.
type DirTotals struct {
	Path      string `json:"path"`
	Files     int64  `json:"files"`
	Bytes     int64  `json:"bytes"`
	DiskBytes int64  `json:"disk_bytes"`
	Lines     int64  `json:"lines"`
	Tokens    int64  `json:"tokens"`
}

// Sized is a large file.
type Sized struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Dated is a file that was changed lately.
type Dated struct {
	Path     string    `json:"path"`
	Modified time.Time `json:"modified"`
}

// Signals are what a survey is made of.
type Signals struct {
	TotalFiles         int64            `json:"total_files"`
	ExtensionHistogram map[string]int64 `json:"extension_histogram"` // in lower case; "(none)" without one
	FileDescriptions   map[string]int64 `json:"file_descriptions"`   // by language, else by MIME type
	FilenameSamples    []string         `json:"filename_samples"`    // evenly drawn from all paths
}

// How many files a report lists.
const (
	listed      = 20
	nameSamples = 30
)

// Report sums up the tree. target is how the directory is named.
func (t *Tree) Report(target string) Report {
	directories := t.Totals()
	top := directories[0]
	r := Report{
		Target: target, Files: top.Files, Lines: top.Lines, Bytes: top.Bytes, DiskBytes: top.DiskBytes, Tokens: top.Tokens,
		Other: t.Other, Languages: t.Languages(), Categories: map[string]int64{},
		MIME: map[string]int64{}, Skipped: append([]Skip{}, t.Skipped...), Errors: append([]string{}, t.Errors...),
		Signals: t.Signals(), Directories: directories,
	}
	for i := range t.Files {
		f := &t.Files[i]
		r.Categories[f.Category]++
		r.MIME[f.MIME]++
	}
	for _, f := range first(t.Files, func(a, b *File) int { return cmp.Compare(b.Size, a.Size) }) {
		r.Largest = append(r.Largest, Sized{f.Path, f.Size})
	}
	for _, f := range first(t.Files, func(a, b *File) int { return cmp.Compare(b.Modified, a.Modified) }) {
		r.Recent = append(r.Recent, Dated{f.Path, time.Unix(0, f.Modified).UTC()})
	}
	return r
}

// Languages returns the lines of each language.
func (t *Tree) Languages() map[string]int64 {
	lines := map[string]int64{}
	for i := range t.Files {
		if f := &t.Files[i]; f.Language != "" {
			lines[f.Language] += f.Lines
		}
	}
	return lines
}

// first returns the first files of an order; those that are equal in it are ordered by path.
func first(all []File, by func(a, b *File) int) []*File {
	sorted := make([]*File, len(all))
	for i := range all {
		sorted[i] = &all[i]
	}
	slices.SortStableFunc(sorted, by)
	return sorted[:min(listed, len(sorted))]
}

// Totals returns the totals of each directory, with all below it, in path order: first those of the whole tree.
func (t *Tree) Totals() []DirTotals {
	at := make(map[string]int, len(t.Dirs))
	all := make([]DirTotals, len(t.Dirs))
	for i, d := range t.Dirs {
		at[d], all[i].Path = i, d
	}
	for i := range t.Files {
		f := &t.Files[i]
		for dir := f.Dir(); ; dir = path.Dir(dir) {
			if n, ok := at[dir]; ok {
				d := &all[n]
				d.Files++
				d.Bytes += f.Size
				d.DiskBytes += f.Disk
				d.Lines += f.Lines
				d.Tokens += f.Tokens
			}
			if dir == "." {
				break
			}
		}
	}
	return all
}

// Signals returns what a survey is made of.
func (t *Tree) Signals() Signals {
	s := Signals{
		TotalFiles: int64(len(t.Files)), ExtensionHistogram: map[string]int64{}, FileDescriptions: map[string]int64{},
		FilenameSamples: []string{},
	}
	for i := range t.Files {
		f := &t.Files[i]
		s.ExtensionHistogram[Extension(f.Path)]++
		s.FileDescriptions[cmp.Or(f.Language, f.MIME)]++
	}
	n := min(nameSamples, len(t.Files))
	for i := range n {
		s.FilenameSamples = append(s.FilenameSamples, t.Files[i*len(t.Files)/n].Path)
	}
	return s
}

// Extension returns the extension of a path in lower case; "(none)" if it has none. A leading dot begins no extension.
func Extension(p string) string {
	base := path.Base(p)
	if ext := path.Ext(base); len(ext) > 1 && ext != base {
		return strings.ToLower(ext)
	}
	return "(none)"
}
