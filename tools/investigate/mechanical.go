package investigate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

const (
	maxSummary    = 1200      // characters of a summary
	outlined      = 6         // largest sources of a directory whose outline a mechanical note names
	maxOutlined   = 512 << 10 // bytes of a source that is outlined
	maxManifest   = 256 << 10 // bytes of a manifest that is read
	readmeQuote   = 300       // bytes of a README's paragraph in a note
	namesOfFile   = 8         // exported names of one file in a note
	writersAtOnce = 16        // notes that are described at once
	sinceProgress = time.Second
)

// describer writes what files say of a directory, without a model.
type describer struct{ *work }

func (w *work) describer() describer { return describer{w} }

// describe writes mechanical notes on directories: what files say of themselves, without a model.
func (w describer) describe(due []string) error {
	confidence := entries.MechanicalConfidence
	done, reported := 0, w.now()
	for part := range slices.Chunk(due, writersAtOnce) {
		texts := make([]string, len(part))
		panics.Each(len(part), writersAtOnce, func(i int) { texts[i] = w.mechanical(w.dirs[part[i]]) })
		if err := w.ctx.Err(); err != nil {
			return err
		}
		for i, p := range part {
			d := w.dirs[p]
			note := w.newEntry(d, texts[i])
			note.NotableFiles, note.By = d.largest(3), entries.Mechanical
			note.Confidence, note.ConfidenceReason = &confidence, "no model has read it"
			if _, err := w.inv.PutDir(note); err != nil {
				return err
			}
			w.notes[p] = note
		}
		if done += len(part); w.now().Sub(reported) > sinceProgress {
			reported = w.now()
			w.out.Progress(int64(done), int64(len(due)), "describing "+content.ClipBytes(part[len(part)-1], 80))
		}
	}
	return nil
}

// newEntry returns an entry on a directory as it is now, with the citations of its summary looked up.
func (w *work) newEntry(d *directory, summary string) entries.Dir {
	return entries.Dir{
		Path: filepath.Join(w.target, filepath.FromSlash(d.Path)), RelativePath: d.Path, Summary: summary,
		ChildCount: len(d.files) + len(d.Subs), DominantCategory: d.dominant(), CachedAt: w.now().UTC(),
		Quality: entries.Quality{Fingerprint: d.fingerprint(), Evidence: evidence.Check(summary, d.Path, w.reader())},
	}
}

func (d *directory) categories() map[string]int {
	count := map[string]int{}
	for _, f := range d.files {
		count[f.Category]++
	}
	return count
}

// dominant returns the category of most files.
func (d *directory) dominant() string {
	count, best := d.categories(), "unknown"
	for _, c := range scan.Categories {
		if count[c] > count[best] {
			best = c
		}
	}
	return best
}

// largest returns the names of the largest files that somebody wrote.
func (d *directory) largest(n int) (names []string) {
	files := slices.DeleteFunc(sortedBySize(d.files), func(f *scan.File) bool {
		return f.Category != scan.Source && f.Category != scan.Documentation
	})
	for _, f := range files[:min(n, len(files))] {
		names = append(names, path.Base(f.Path))
	}
	return names
}

func bySize(a, b *scan.File) int { return cmp.Compare(b.Size, a.Size) }

// sortedBySize returns the files, the largest first.
func sortedBySize(files []*scan.File) []*scan.File {
	return slices.SortedStableFunc(slices.Values(files), bySize)
}

// mechanical returns what files say of a directory: README, package comment, manifest, exported names, counts.
func (w describer) mechanical(d *directory) string {
	docs, names := w.outlines(d)
	parts := []string{w.readme(d), w.manifest(d), docs, d.counts()}
	if names != "" {
		parts = append(parts, "Exported: "+names+".")
	}
	if len(d.files) > 1 {
		newest := slices.MaxFunc(d.files, func(a, b *scan.File) int { return cmp.Compare(a.Modified, b.Modified) })
		parts = append(parts, fmt.Sprintf("Largest: %s. Newest: %s of %s.", sizes(d.files, 3), shown(path.Base(newest.Path)),
			time.Unix(0, newest.Modified).UTC().Format(time.DateOnly)))
	}
	if len(d.Subs) > 0 {
		parts = append(parts, "Directories: "+baseNames(d.Subs, 12)+".")
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return content.ClipEnd(strings.Join(parts, "\n"), maxSummary)
}

// counts returns the numbers of a directory's own files in a sentence.
func (d *directory) counts() string {
	if len(d.files) == 0 {
		return "No files of its own."
	}
	var bytes, lines int64
	for _, f := range d.files {
		bytes += f.Size
		lines += f.Lines
	}
	var kinds []string
	count := d.categories()
	for _, c := range scan.Categories {
		if count[c] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", count[c], c))
		}
	}
	return fmt.Sprintf("%s (%s), %s, %s.", content.Plural(int64(len(d.files)), "file", "files"),
		strings.Join(kinds, ", "), sizeText(bytes), content.Plural(lines, "line", "lines"))
}

func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return content.Plural(n, "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// sizes names the largest files with their sizes.
func sizes(files []*scan.File, n int) string {
	sorted := sortedBySize(files)
	var names []string
	for _, f := range sorted[:min(n, len(sorted))] {
		names = append(names, fmt.Sprintf("%s (%s)", shown(path.Base(f.Path)), sizeText(f.Size)))
	}
	return strings.Join(names, ", ")
}

func baseNames(paths []string, n int) string {
	var names []string
	for _, p := range paths[:min(n, len(paths))] {
		names = append(names, shown(path.Base(p)))
	}
	if more := len(paths) - n; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// readme quotes the first paragraph of a README, with its lines.
func (w describer) readme(d *directory) string {
	for _, f := range d.files {
		base := path.Base(f.Path)
		if f.Binary || f.Size > maxManifest || !strings.HasPrefix(strings.ToLower(base), "readme") {
			continue
		}
		text, err := w.read(f.Path)
		if err != nil {
			continue
		}
		if quote, from, to := firstParagraph(string(text)); quote != "" {
			return w.quoted(base, from, to, quote)
		}
	}
	return ""
}

// quoted cites lines of a file in a sentence whose citation holds: the quote is what stands there, between marks that
// it does not have itself.
func (w describer) quoted(name string, from, to int, quote string) string {
	quote = strings.Join(strings.Fields(content.Visible(quote, false)), " ")
	if strings.ContainsAny(quote, "“”") || w.i.options.Secret != nil && w.i.options.Secret(quote) {
		return ""
	}
	lines := fmt.Sprintf("%d-%d", from, to)
	if from == to {
		lines = fmt.Sprint(from)
	}
	if strings.ContainsAny(name, " ()") { // only so is it a citation
		return fmt.Sprintf("`%s:%s` “%s”", name, lines, quote)
	}
	return fmt.Sprintf("%s:%s “%s”", name, lines, quote)
}

// firstParagraph returns the first lines of prose of a document, without headings, badges, markup and front matter.
func firstParagraph(text string) (quote string, from, to int) {
	var lines []string
	for n, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		prose := bare != "" && !strings.ContainsAny(bare[:1], "#=-*<>[!|`+~:.{") && strings.ContainsAny(bare, " ")
		if !prose && len(lines) == 0 {
			continue
		}
		if !prose || len(strings.Join(lines, " "))+len(bare) > readmeQuote && len(lines) > 0 {
			break
		}
		if len(lines) == 0 {
			from = n + 1
		}
		if len(bare) > readmeQuote { // whole words: a quote ends where a word does
			bare = bare[:max(strings.LastIndexByte(bare[:readmeQuote], ' '), 0)]
		}
		lines, to = append(lines, bare), n+1
	}
	return strings.Join(lines, " "), from, to
}

// manifests are files that name and describe a package: by name, the patterns of both values in a line.
var manifests = map[string]func() *regexp.Regexp{
	"go.mod":         content.Pattern(`^module\s+(\S+)`),
	"package.json":   content.Pattern(`^\s*"(?:name|description)"\s*:\s*"([^"\\]+)"`),
	"composer.json":  content.Pattern(`^\s*"(?:name|description)"\s*:\s*"([^"\\]+)"`),
	"cargo.toml":     content.Pattern(`^(?:name|description)\s*=\s*"([^"\\]+)"`),
	"pyproject.toml": content.Pattern(`^(?:name|description)\s*=\s*"([^"\\]+)"`),
	"pom.xml":        content.Pattern(`^\s*<(?:artifactId|description)>([^<]+)<`),
}

// manifest quotes the name and description in a manifest.
func (w describer) manifest(d *directory) string {
	var found []string
	for _, f := range d.files {
		base := path.Base(f.Path)
		pattern := manifests[strings.ToLower(base)]
		if pattern == nil || f.Size > maxManifest || f.Binary {
			continue
		}
		text, err := w.read(f.Path)
		if err != nil || strings.HasSuffix(base, ".json") && !json.Valid(text) {
			continue
		}
		n := 0
		for i, line := range strings.Split(string(text), "\n") {
			if m := pattern().FindStringSubmatch(line); m != nil && n < 2 {
				n++
				if q := w.quoted(base, i+1, i+1, content.ClipEnd(m[1], 200)); q != "" {
					found = append(found, q)
				}
			}
		}
	}
	return strings.Join(found, "\n")
}

// outlines returns the package comment of a directory as a citation, and the exported names of its largest sources.
func (w describer) outlines(d *directory) (docs, names string) {
	sources := slices.DeleteFunc(sortedBySize(d.files), func(f *scan.File) bool {
		return f.Category != scan.Source || f.Size > maxOutlined || outline.Language(f.Path) == ""
	})
	var list []string
	for n, f := range sources {
		isDoc := strings.HasPrefix(path.Base(f.Path), "doc.") || path.Base(f.Path) == "__init__.py" ||
			strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path)) == path.Base(d.Path)
		if n >= outlined && (docs != "" || !isDoc) {
			continue
		}
		text, err := w.read(f.Path)
		if err != nil {
			continue
		}
		o, ok := outline.Of(f.Path, text)
		if !ok {
			continue
		}
		if o.Doc != "" && (docs == "" || isDoc) {
			if line, quote := lineOf(string(text), o.Doc); line > 0 {
				docs = w.quoted(path.Base(f.Path), line, line, quote)
			}
		}
		if n < outlined {
			if s := symbols(o, namesOfFile, nil); s != "" {
				list = append(list, path.Base(f.Path)+": "+s)
			}
		}
	}
	return docs, strings.Join(list, "; ")
}

// symbols names the first exported symbols of a file: those of the highest rank, which may be nil, and methods last.
func symbols(o outline.Outline, n int, rank func(name string) int) string {
	var first, methods []string
	for _, s := range o.Symbols {
		if s.Kind == "method" {
			methods = append(methods, s.Name)
		} else {
			first = append(first, s.Kind+" "+s.Name)
		}
	}
	all := append(first, methods...)
	if rank != nil {
		slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(b), rank(a)) })
	}
	for i, name := range all {
		all[i] = content.ClipEnd(name, 60)
	}
	if len(all) > n {
		all = append(all[:n:n], fmt.Sprintf("%d more", len(all)-n))
	}
	return strings.Join(all, ", ")
}

// lineOf returns a line of a text in which a sentence begins, and as much of the sentence as stands there. A comment
// breaks a sentence where its line ends.
func lineOf(text, sentence string) (line int, quote string) {
	words := strings.Fields(sentence)
	lines := strings.Split(text, "\n")
	for n := len(words); n >= min(4, len(words)) && n > 0; n-- {
		quote = strings.Join(words[:n], " ")
		for i, l := range lines[:min(len(lines), 200)] {
			if strings.Contains(l, quote) {
				return i + 1, quote
			}
		}
	}
	return 0, ""
}
