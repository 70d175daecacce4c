// Package evidence looks up the citations of a note about a directory tree.
// A citation is a path with a line ("pool.go:14"); the quotes in its sentence prove it or refute it.
// scan.go finds sentences and their tokens, match.go finds quotes in files, evidence.go joins both.
package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Verdict says what looking up a citation gave.
type Verdict string

// Only Holds and Moved count as evidence.
const (
	Holds      Verdict = "holds"      // every quote is in the cited lines
	Moved      Verdict = "moved"      // every quote is in the file, at least one of them on other lines
	Absent     Verdict = "absent"     // the file, the line or a quote does not exist
	Unanchored Verdict = "unanchored" // the lines exist, but the sentence quotes nothing of them
	Unknown    Verdict = "unknown"    // the file could not be searched
)

// Limits of one call of Check.
const (
	maxCitations = 500     // citations looked up; further ones are Unknown
	maxWork      = 2 << 30 // bytes searched for quotes, about 2 s, plus readWork for each byte read
	readWork     = 32      // limits the text kept in memory to 64 MiB
	maxShown     = 200     // bytes of Citation.Quote and of a reader's error
)

// Citation is one place that a text names as its evidence.
type Citation struct {
	Cited   string  `json:"cited"`          // as written: "pool.go:14-16", or a bare path
	File    string  `json:"file,omitempty"` // slash path below the target; "" if it does not resolve
	From    int     `json:"from,omitempty"` // lines as cited, from 1; 0: none were cited
	To      int     `json:"to,omitempty"`
	Quote   string  `json:"quote,omitempty"` // the first quote, at most 200 bytes
	Verdict Verdict `json:"verdict"`
	Line    int     `json:"line,omitempty"`   // where the quote begins, from 1
	Reason  string  `json:"reason,omitempty"` // why the verdict is Absent or Unknown

	Start, End int `json:"-"` // byte range of Cited in the text
}

// ErrUndecidable reports a file whose text cannot be searched.
var ErrUndecidable = errors.New("the file is binary, unreadable or too large")

var errTooMuch = errors.New("not looked up: the text names or quotes too much")

// A Reader returns the text of a file below the target.
// Read returns fs.ErrNotExist for a missing file (Absent); every other error means Unknown.
type Reader interface {
	Read(path string) ([]byte, error)
	Exists(path string) bool // a file or directory
}

// checker holds the state of one call of Check.
type checker struct {
	text, dir string
	files     Reader
	paths     map[string]string // what names resolve to
	sources   map[string]*source
	work      int // see maxWork
	all       []Citation
}

// Check finds the citations in a text about directory dir (slash path below the target, "." for the target itself)
// and looks up the first 500; further ones are Unknown. A file is read at most once per call.
func Check(text, dir string, files Reader) []Citation {
	c := &checker{text: text, dir: dir, files: files, paths: map[string]string{}, sources: map[string]*source{}}
	c.scan()
	return c.all
}

// sentence looks up the citations of one sentence; its tokens are in order and do not overlap.
func (c *checker) sentence(tokens []token) {
	byKind := map[kind][]token{}
	for _, t := range tokens {
		if t.kind == quoteToken {
			t.parts = quoteParts(c.text[t.from:t.to])
		}
		if t.kind != quoteToken || t.parts != nil {
			byKind[t.kind] = append(byKind[t.kind], t)
		}
	}
	cites, quotes := byKind[citeToken], byKind[quoteToken]
	if len(cites) == 0 && len(quotes) > 0 {
		cites = slices.DeleteFunc(byKind[wordToken], func(t token) bool { return !c.isFile(t) })
	}
	if len(cites) == 0 {
		return
	}
	owned := make([][]token, len(cites))
	next := 0 // the first citation after the quote
	for _, q := range quotes {
		for next < len(cites) && cites[next].start < q.end {
			next++
		}
		owner := next - 1
		if owner < 0 || next < len(cites) && cites[next].start-q.end < q.start-cites[owner].end {
			owner = next
		}
		owned[owner] = append(owned[owner], q)
	}
	for i, t := range cites {
		if t.kind == wordToken && owned[i] == nil {
			continue // a bare path without a quote claims nothing
		}
		found := Citation{Cited: c.text[t.from:t.to], From: t.first, To: t.last, Start: t.from, End: t.to}
		if owned[i] != nil {
			owned[i] = c.deciding(t, owned[i])
			found.Quote = truncate(c.text[owned[i][0].from:owned[i][0].to])
		}
		if len(c.all) < maxCitations {
			found.Verdict, found.Line, found.Reason = c.lookUp(&found, t, owned[i])
		} else {
			found.Verdict = Unknown
			found.Reason = fmt.Sprintf("not looked up: the text has more than %d citations", maxCitations)
		}
		c.all = append(c.all, found)
	}
}

// deciding returns those quotes of a citation that decide: the nearest one and those joined to it, in order. Names in
// back-ticks decide only if there is no quote; they are returned by their distance.
func (c *checker) deciding(cite token, owned []token) []token {
	distance := func(t token) int { return max(t.start-cite.end, cite.start-t.end) }
	byDistance := func(a, b token) int { return cmp.Compare(distance(a), distance(b)) }
	quotes := slices.DeleteFunc(slices.Clone(owned), c.isName)
	if len(quotes) == 0 {
		return slices.SortedStableFunc(slices.Values(owned), byDistance)
	}
	nearest := slices.MinFunc(quotes, byDistance)
	return slices.DeleteFunc(quotes, func(q token) bool {
		from, to := min(q.end, nearest.end), max(q.start, nearest.start)
		return from < to && (to-from > maxQuote ||
			!joined().MatchString(strings.ReplaceAll(c.text[from:to], c.text[cite.start:cite.end], "")))
	})
}

// lookUp sets found.File and returns the rest of the result.
func (c *checker) lookUp(found *Citation, t token, quotes []token) (v Verdict, line int, reason string) {
	found.File = c.resolve(t.name)
	switch {
	case len(c.candidates(t.name)) == 0:
		return Absent, 0, "outside"
	case found.File == "":
		return Absent, 0, "no such file"
	}
	src := c.load(found.File)
	if errors.Is(src.err, fs.ErrNotExist) {
		return Absent, 0, "no such file"
	} else if src.err != nil {
		return Unknown, 0, truncate(src.err.Error())
	}
	from, to, lines := t.first, t.last, src.lines()
	if t.kind == wordToken {
		from, to = 1, lines
	}
	if len(quotes) == 0 {
		switch {
		case from < 1 || from > lines:
			return Absent, 0, fmt.Sprintf("line %d of %d", from, lines)
		case to < from:
			return Absent, 0, fmt.Sprintf("line %d is before line %d", to, from)
		case to > lines:
			return Absent, 0, fmt.Sprintf("line %d of %d", to, lines)
		}
		return Unanchored, 0, ""
	}
	held, moved, lost := 0, 0, 0
	for i, q := range quotes {
		if at := c.find(src, q.parts, from, to, from, lines); at > 0 {
			held = cmp.Or(held, at)
		} else if at = c.find(src, q.parts, 1, lines, from, maxSpan); at > 0 {
			moved = cmp.Or(moved, at)
		} else {
			lost = cmp.Or(lost, i+1)
		}
	}
	switch {
	case c.work > maxWork:
		return Unknown, 0, errTooMuch.Error()
	case lost == 1:
		return Absent, 0, "the quote is not in the file"
	case c.isName(quotes[0]) && held > 0: // of names the nearest must be in the file, and one in the lines
		return Holds, held, ""
	case lost > 1 && !c.isName(quotes[0]):
		return Absent, 0, fmt.Sprintf("quote %d of %d is not in the file", lost, len(quotes))
	case moved > 0:
		return Moved, moved, ""
	}
	return Holds, held, ""
}

// resolve returns the existing path that name means, first from the note's directory, then from the target, or "".
func (c *checker) resolve(name string) string {
	at, known := c.paths[name]
	if !known {
		for _, p := range slices.Backward(c.candidates(name)) {
			if c.files.Exists(p) {
				at = p
			}
		}
		c.paths[name] = at
	}
	return at
}

// candidates returns the paths inside the target that name may mean.
func (c *checker) candidates(name string) []string {
	return slices.DeleteFunc([]string{path.Join(c.dir, name), path.Clean(name)}, func(p string) bool {
		return strings.HasPrefix(name, "/") || !fs.ValidPath(p)
	})
}

// isFile reports whether a word names a file. A directory cannot be read, so an unreadable word counts only if
// it is written like a file name.
func (c *checker) isFile(t token) bool {
	if !c.isPath(t.name, t.ticked) {
		return false
	}
	file := c.resolve(t.name)
	if file == "" || len(c.all) >= maxCitations {
		return file != ""
	}
	err := c.load(file).err
	return err == nil || !errors.Is(err, fs.ErrNotExist) &&
		(extension().MatchString(t.name) || t.ticked && errors.Is(err, ErrUndecidable))
}

// load reads a file once and keeps its text or the error.
func (c *checker) load(file string) *source {
	if c.sources[file] == nil {
		b, err := []byte(nil), errTooMuch
		if c.work <= maxWork {
			b, err = c.files.Read(file)
		}
		c.work += readWork * len(b)
		c.sources[file] = newSource(b, err)
	}
	return c.sources[file]
}

func truncate(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxShown)], "") }

// Repair returns the text with each moved citation's line numbers replaced by those where the quote stands.
// A range keeps its length. Citations that do not match the text are skipped.
func Repair(text string, all []Citation) string {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Citation) int { return cmp.Compare(a.Start, b.Start) })
	var out strings.Builder
	done := 0
	for _, one := range all {
		m := lineEnd().FindStringSubmatchIndex(one.Cited)
		if one.Verdict != Moved || m == nil || one.Start < done || one.Start > len(text) ||
			one.End != one.Start+len(one.Cited) || !strings.HasPrefix(text[one.Start:], one.Cited) {
			continue
		}
		out.WriteString(text[done:one.Start+m[2]] + strconv.Itoa(one.Line))
		if m[4] >= 0 {
			out.WriteString(one.Cited[m[4]:m[5]] + strconv.Itoa(one.Line+max(0, one.To-one.From)))
		}
		done = one.End
	}
	return out.String() + text[done:]
}

// Counts sums up verdicts.
type Counts struct {
	Holds      int `json:"holds"`
	Moved      int `json:"moved"`
	Absent     int `json:"absent"`
	Unanchored int `json:"unanchored"`
	Unknown    int `json:"unknown"`
}

// Add adds the verdicts of citations.
func (n *Counts) Add(all []Citation) {
	of := map[Verdict]*int{
		Holds: &n.Holds, Moved: &n.Moved, Absent: &n.Absent, Unanchored: &n.Unanchored, Unknown: &n.Unknown,
	}
	for _, one := range all {
		if count := of[one.Verdict]; count != nil { // else a damaged entry
			*count++
		}
	}
}

// Count counts the verdicts of citations.
func Count(all []Citation) (n Counts) {
	n.Add(all)
	return n
}

// Total is the number of citations that could be looked up; it leaves out Unknown.
func (n Counts) Total() int { return n.Holds + n.Moved + n.Absent + n.Unanchored }
