package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
		c := compare(p.Version, b[2])
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

// compare compares two versions by semantic versioning.
func compare(a, b string) int {
	split := func(v string) (release, pre []string) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
		v, after, isPre := strings.Cut(v, "-")
		if isPre {
			pre = strings.Split(after, ".")
		}
		return strings.Split(v, "."), pre
	}
	release, pre := split(a)
	otherRelease, otherPre := split(b)
	if c := slices.CompareFunc(release, otherRelease, identifiers); c != 0 {
		return c
	}
	if (pre == nil) != (otherPre == nil) { // a release is newer than its candidates
		return cmp.Compare(len(otherPre), len(pre))
	}
	return slices.CompareFunc(pre, otherPre, identifiers)
}

// identifiers compares two pre-release identifiers: numbers by value, and any number before any word.
func identifiers(a, b string) int {
	m, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return m - n
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}
