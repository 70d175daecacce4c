package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

//go:embed denied.txt
var denied string

// rule names the versions of a module that must not be part of a build, and the reason.
type rule struct {
	path   string
	bounds [][]string // each is [text, operator, version]; a denied version meets all of them
	reason string
}

type rules []rule

// Each line of denied.txt holds a module, its bounds ("<1.2.3", ">=1.2.3", "=1.2.3") and the reason.
var (
	bound  = regexp.MustCompile(`(<|>=|=)(\d\S*)`)
	denial = regexp.MustCompile(`^(\S+)((?: +(?:<|>=|=)\d\S*)+) +([^\s<>=].*)$`)
)

func denials(text string) (rules, error) {
	var all rules
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := denial.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("denied: %q must say a module, bounds (<1.2.3, >=1.2.3 or =1.2.3) and a reason", line)
		}
		all = append(all, rule{m[1], bound.FindAllStringSubmatch(m[2], -1), m[3]})
	}
	return all, nil
}

func (r rule) denies(p part) bool {
	return r.path == p.Path && !slices.ContainsFunc(r.bounds, func(b []string) bool {
		c := semver.Compare("v"+strings.TrimPrefix(p.Version, "v"), "v"+b[2])
		return !(b[1] == "<" && c < 0 || b[1] == ">=" && c >= 0 || b[1] == "=" && c == 0)
	})
}

// check returns a message for each denied part.
func (all rules) check(parts []part) (found []string) {
	for _, p := range parts {
		for _, r := range all {
			if r.denies(p) {
				found = append(found, fmt.Sprintf("%s %s: %s", p.Path, p.Version, r.reason))
			}
		}
	}
	return found
}
