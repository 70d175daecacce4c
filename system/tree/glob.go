package tree

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// Limits of a pattern. Braces multiply and "**" backtracks, so a short pattern could take longer than walking a whole
// tree. Useful patterns stay below these limits.
const (
	maxGlob         = 1 << 10 // bytes
	maxDoubleStars  = 4       // of one alternative
	maxAlternatives = 64      // in all: the product over all braces
)

// Glob is a compiled doublestar pattern: "*" and "?" (not "/"), "**" (any directories), "[a-z]", "[!a-z]", "{a,b}", and
// "\" to escape a character. A pattern without a slash matches the base name at any depth. Matching is case-sensitive,
// and the same for all normal forms of Unicode: macOS has names in another than most programs write.
// It is safe for concurrent use.
type Glob struct {
	pattern  string
	patterns [][]string // without braces, split into names; one for base names begins with "**"
	except   int        // index of the first pattern that excludes: see [CompileGlobs]
	start    *globState
}

// newGlob returns a glob of patterns that match and patterns that exclude.
func newGlob(pattern string, patterns, except [][]string) *Glob {
	g := &Glob{pattern: pattern, patterns: slices.Concat(patterns, except), except: len(patterns), start: &globState{}}
	for i := range g.patterns {
		g.start.at = append(g.start.at, position{pattern: i})
	}
	return g
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
	plain, err := unescapeSlashes(norm.NFC.String(pattern))
	if err != nil {
		return nil, err
	}
	expanded, err := expand(plain)
	if err != nil {
		return nil, err
	}
	var alternatives [][]string
	for _, p := range expanded {
		a, err := newAlternative(p)
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, a)
	}
	return newGlob(pattern, alternatives, nil), nil
}

func newAlternative(p string) (parts []string, err error) {
	if strings.HasPrefix(p, "/") {
		return nil, errors.New("begins with /, but a glob matches below a directory; name the directory with path")
	}
	base := !strings.Contains(strings.TrimSuffix(p, "/"), "/")
	deep := 0
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case strings.ReplaceAll(part, `\`, "") == "..":
			return nil, errors.New("contains .., but a glob cannot go up; name the directory with path")
		case part == "**" && len(parts) > 0 && parts[len(parts)-1] == "**":
			continue
		case part == "**":
			deep++
		}
		parts = append(parts, singleStars(part))
	}
	if deep > maxDoubleStars {
		return nil, fmt.Errorf("contains ** %d times; a pattern may have it at most %d times", deep, maxDoubleStars)
	}
	if len(parts) == 0 { // "./", or an empty alternative
		return []string{"."}, nil
	}
	if base && parts[0] != "**" {
		parts = slices.Insert(parts, 0, "**")
	}
	return parts, nil
}

// singleStars shortens "a**b" to "a*b", which matches the same names and is all that doublestar reads rightly.
func singleStars(part string) string {
	if part == "**" {
		return part
	}
	var b strings.Builder
	last := ""
	for _, one := range elements(part) {
		if one != "*" || last != "*" {
			b.WriteString(one)
		}
		last = one
	}
	return b.String()
}

// unescapeSlashes replaces "\/" by "/", so that the pattern can be split at its slashes.
func unescapeSlashes(p string) (string, error) {
	var b strings.Builder
	for _, one := range elements(p) {
		if one[0] == '[' && strings.Contains(one, "/") {
			return "", errors.New("contains / in a [class], which matches no /")
		}
		if one == `\/` {
			one = "/"
		}
		b.WriteString(one)
	}
	return b.String(), nil
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
	for i, one := range elements(p) {
		switch one {
		case "{":
			if depth++; depth == 1 {
				open = i
			}
		case ",":
			if depth == 1 {
				commas = append(commas, i)
			}
		case "}":
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, -1, nil
}

// elements returns the offsets and the text of the elements of a valid pattern: classes, escaped bytes, and other bytes.
func elements(p string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; i < len(p); {
			end := i + 1
			switch p[i] {
			case '\\':
				end++
			case '[':
				for ; end < len(p) && p[end] != ']'; end++ {
					if p[end] == '\\' {
						end++
					}
				}
				end++
			}
			end = min(end, len(p))
			if !yield(i, p[i:end]) {
				return
			}
			i = end
		}
	}
}

// String returns the pattern as given.
func (g *Glob) String() string { return g.pattern }

// IsGlob reports whether a name has characters that are special in a glob. A file may have such a name: look for the
// file first.
func IsGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }
