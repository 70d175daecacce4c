package tree

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a pattern. Braces multiply and "**" backtracks, so a short pattern could take longer than walking a whole
// tree. Useful patterns stay below these limits.
const (
	maxGlob         = 1 << 10 // bytes
	maxDoubleStars  = 4       // of one alternative
	maxAlternatives = 64      // in all: the product over all braces
)

// Glob is a compiled doublestar pattern: "*" and "?" (not "/"), "**" (any directories), "[a-z]", "[!a-z]", "{a,b}", and
// "\" to escape a character. A pattern without a slash matches the base name at any depth. Matching is case-sensitive.
type Glob struct {
	pattern      string
	alternatives []alternative
	except       []alternative // see [CompileGlobs]
}

// alternative is a pattern without braces.
type alternative struct {
	pattern string
	base    bool     // matches the base name
	literal string   // the whole pattern, if it has no special characters
	suffix  string   // of "*suffix" without other special characters
	parts   []string // of a pattern for paths
}

// CompileGlob compiles a pattern, or returns why it is invalid or too expensive. A leading "./" and a trailing "/" are
// ignored.
func CompileGlob(pattern string) (*Glob, error) {
	g, err := compileGlob(pattern)
	if err != nil {
		return nil, fmt.Errorf("glob %s: %w", clip(pattern), err)
	}
	return g, nil
}

func compileGlob(pattern string) (*Glob, error) {
	switch {
	case pattern == "":
		return nil, errors.New(`empty; use "**" to match everything`)
	case len(pattern) > maxGlob:
		return nil, fmt.Errorf("%d bytes long; a pattern may have at most %d", len(pattern), maxGlob)
	case strings.IndexByte(pattern, 0) >= 0:
		return nil, errors.New("contains a NUL byte, which no file name can")
	case !doublestar.ValidatePattern(pattern):
		return nil, errors.New(`not a pattern: a [class] or {a,b} is not closed or empty, or "\" is at the end; ` +
			`put "\" before a character to match it literally`)
	}
	if hint := extendedGlob(pattern); hint != "" {
		return nil, errors.New(hint)
	}
	plain, err := unescapeSlashes(pattern)
	if err != nil {
		return nil, err
	}
	expanded, err := expand(plain)
	if err != nil {
		return nil, err
	}
	g := &Glob{pattern: pattern}
	for _, p := range expanded {
		a, err := newAlternative(p)
		if err != nil {
			return nil, err
		}
		g.alternatives = append(g.alternatives, a)
	}
	return g, nil
}

func newAlternative(p string) (alternative, error) {
	if strings.HasPrefix(p, "/") {
		return alternative{}, errors.New("begins with /, but a glob matches below a directory; name the directory with path")
	}
	base := !strings.Contains(strings.TrimSuffix(p, "/"), "/")
	var parts []string
	deep := 0
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case strings.ReplaceAll(part, `\`, "") == "..":
			return alternative{}, errors.New("contains .., but a glob cannot go up; name the directory with path")
		case part == "**" && len(parts) > 0 && parts[len(parts)-1] == "**":
			continue
		case part == "**":
			deep++
		default:
			part = oneStar(part)
		}
		parts = append(parts, part)
	}
	if deep > maxDoubleStars {
		return alternative{}, fmt.Errorf("contains ** %d times; a pattern may have it at most %d times", deep, maxDoubleStars)
	}
	if len(parts) == 0 { // "./", or an empty alternative
		return alternative{literal: "."}, nil
	}
	a := alternative{pattern: strings.Join(parts, "/"), base: base, parts: parts}
	if a.pattern == "**" {
		a.base, a.suffix, a.pattern = true, "", "*"
	}
	// "**/name" matches name at any depth.
	if len(parts) == 2 && parts[0] == "**" {
		a.base, a.pattern = true, parts[1]
	}
	end, isSuffix := strings.CutPrefix(a.pattern, "*")
	switch {
	case !strings.ContainsAny(a.pattern, special):
		a.literal = a.pattern
	case a.base && isSuffix && !strings.ContainsAny(end, special):
		a.suffix, a.pattern = end, ""
	}
	return a, nil
}

// unescapeSlashes replaces "\/" by "/", so that the pattern can be split at its slashes.
func unescapeSlashes(p string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\' && p[i+1] == '/':
			continue
		case p[i] == '\\':
			b.WriteByte(p[i])
			i++
		case p[i] == '[':
			end := closing(p, i)
			if strings.Contains(p[i:end], "/") {
				return "", errors.New("contains / in a [class], which matches no /")
			}
			b.WriteString(p[i:end])
			i = end
		}
		b.WriteByte(p[i])
	}
	return b.String(), nil
}

// oneStar shortens the stars of a part that is not "**": doublestar reads "a**" as "a*", but "a***" wrongly. The first
// of the stars may be escaped, so two are left.
func oneStar(part string) string {
	for strings.Contains(part, "***") {
		part = strings.ReplaceAll(part, "***", "**")
	}
	if part == "**" {
		return "*"
	}
	return part
}

// expand returns the patterns without braces that p stands for.
func expand(p string) ([]string, error) {
	open, end, commas := braces(p)
	if open < 0 {
		return []string{p}, nil
	}
	tails, err := expand(p[end+1:])
	if err != nil {
		return nil, err
	}
	var all []string
	from := open + 1
	for _, to := range append(commas, end) {
		middles, err := expand(p[from:to])
		if err != nil {
			return nil, err
		}
		if len(all)+len(middles)*len(tails) > maxAlternatives {
			return nil, fmt.Errorf("expands to over %d patterns; use fewer {a,b}", maxAlternatives)
		}
		for _, m := range middles {
			for _, t := range tails {
				all = append(all, p[:open]+m+t)
			}
		}
		from = to + 1
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// braces finds the first outermost pair of braces in a valid pattern, and the commas in it.
func braces(p string) (open, end int, commas []int) {
	open = -1
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			i = closing(p, i)
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, -1, nil
}

// closing returns the end of the class that begins at p[i].
func closing(p string, i int) int {
	for i++; i < len(p) && p[i] != ']'; i++ {
		if p[i] == '\\' {
			i++
		}
	}
	return i
}

// String returns the pattern as given.
func (g *Glob) String() string { return g.pattern }

// Match reports whether a slash path matches.
func (g *Glob) Match(p string) bool {
	base := path.Base(p)
	for i := range g.alternatives {
		if g.alternatives[i].match(p, base) {
			return !g.excludes(p)
		}
	}
	return false
}

func (a *alternative) match(p, base string) bool {
	if a.base {
		p = base
	}
	switch {
	case a.literal != "":
		return p == a.literal
	case a.pattern == "":
		return strings.HasSuffix(p, a.suffix)
	case a.base:
		return doublestar.MatchUnvalidated(a.pattern, p)
	}
	return matchNames(a.parts, p)
}

// matchNames matches a path name by name, because doublestar alone would let a class match a "/". Only the latest "**"
// needs another try: the names between two of them are best matched as early as possible.
func matchNames(parts []string, p string) bool {
	after, from := 0, "" // the part after the latest "**", and the path where it was last tried
	at := 0
	for {
		switch {
		case at < len(parts) && parts[at] == "**":
			if at++; at == len(parts) {
				return true
			}
			after, from = at, p
			continue
		case p == "":
			return at == len(parts)
		case at < len(parts):
			name, rest, _ := strings.Cut(p, "/")
			if doublestar.MatchUnvalidated(parts[at], name) {
				at, p = at+1, rest
				continue
			}
		}
		if from == "" {
			return false
		}
		_, from, _ = strings.Cut(from, "/")
		at, p = after, from
	}
}

// mayMatchBelow reports whether a path in the directory p could match.
func (g *Glob) mayMatchBelow(p string) bool {
	for i := range g.alternatives {
		if g.alternatives[i].mayMatchBelow(p) {
			return !g.excludes(p)
		}
	}
	return false
}

func (a *alternative) mayMatchBelow(p string) bool {
	if a.base {
		return true
	}
	for _, part := range a.parts {
		if part == "**" || p == "" {
			return true
		}
		var name string
		name, p, _ = strings.Cut(p, "/")
		if !doublestar.MatchUnvalidated(part, name) {
			return false
		}
	}
	return false
}

// IsGlob reports whether a name has characters that are special in a glob. A file may have such a name: look for the
// file first.
func IsGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }
