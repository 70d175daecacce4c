package tree

import (
	"errors"
	"fmt"
	"strings"
)

// maxPatterns is the maximum number of patterns of one call, braces expanded.
const maxPatterns = 1000

// CompileGlobs compiles several patterns into one glob. A name matches if it matches a pattern, and none of those that
// begin with "!". The order does not matter. If all patterns begin with "!", everything else matches. An exclusion
// that matches a directory excludes all that is below it. No patterns, or "**" alone, give nil: everything.
func CompileGlobs(patterns []string) (*Glob, error) {
	var all, except [][]string
	for _, p := range patterns {
		negated, exclude := strings.CutPrefix(p, "!")
		if hint := extendedGlob(p); hint != "" {
			return nil, fmt.Errorf("glob %s: %s", clip(p), hint)
		}
		if exclude {
			p = negated
		}
		g, err := CompileGlob(p)
		if exclude && p == "" {
			err = errors.New(`glob !: names nothing to exclude; "!*.md" excludes Markdown files`)
		}
		if err != nil {
			return nil, err
		}
		if exclude {
			except = append(except, g.patterns...)
		} else {
			all = append(all, g.patterns...)
		}
		if n := len(except) + len(all); n > maxPatterns {
			return nil, fmt.Errorf("glob: over %d patterns, braces expanded; use fewer, or a wider one such as **", maxPatterns)
		}
	}
	if len(all) == 0 && len(except) > 0 {
		all = [][]string{{"**"}}
	}
	if len(patterns) == 0 || len(patterns) == 1 && patterns[0] == "**" {
		return nil, nil
	}
	return newGlob(strings.Join(patterns, " "), all, except), nil
}

// extendedGlob returns what to write instead of a pattern of ksh or bash, "!(a|b)" or "@(a|b)"; "" for other patterns.
func extendedGlob(p string) string {
	for _, mark := range []string{"!(", "@("} {
		at := strings.Index(p, mark)
		if at < 0 || at > 0 && p[at-1] == '\\' || !strings.Contains(p[at:], ")") {
			continue
		}
		inner, rest, _ := strings.Cut(p[at+2:], ")")
		if mark == "@(" {
			return fmt.Sprintf("@(…) is not supported: write %s{%s}%s", p[:at], strings.ReplaceAll(inner, "|", ","), rest)
		}
		var list []string
		for name := range strings.SplitSeq(inner, "|") {
			list = append(list, fmt.Sprintf("%q", "!"+p[:at]+name+rest))
		}
		return fmt.Sprintf("!(…) is not supported: exclude by separate patterns, glob=[%s]", strings.Join(list, ","))
	}
	return ""
}
