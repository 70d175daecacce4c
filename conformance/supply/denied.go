package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed denied.txt
var denied string

// rule says of which versions of a module nothing may be built, and why.
type rule struct {
	path   string
	bounds []bound // all hold
	reason string
}

type bound struct{ operator, version string }

type rules []rule

// denials reads the list: a module, its bounds ("<1.2.3", ">=1.2.3", "=1.2.3") and the reason, a line each.
func denials(text string) (rules, error) {
	var all rules
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		r := rule{path: fields[0]}
		for fields = fields[1:]; len(fields) > 0; fields = fields[1:] {
			version := strings.TrimLeft(fields[0], "<>=")
			operator := strings.TrimSuffix(fields[0], version)
			if operator == "" {
				break
			}
			if operator != "<" && operator != ">=" && operator != "=" || version == "" {
				return nil, fmt.Errorf("denied: %q is no bound: write <1.2.3, >=1.2.3 or =1.2.3", fields[0])
			}
			r.bounds = append(r.bounds, bound{operator, version})
		}
		if r.reason = strings.Join(fields, " "); len(r.bounds) == 0 || r.reason == "" {
			return nil, fmt.Errorf("denied: %q must say a module, versions and a reason", strings.TrimSpace(line))
		}
		all = append(all, r)
	}
	return all, nil
}

func (b bound) holds(version string) bool {
	switch c := compare(version, b.version); b.operator {
	case "<":
		return c < 0
	case ">=":
		return c >= 0
	default:
		return c == 0
	}
}

// check names the parts that are denied.
func (all rules) check(parts []part) (found []string) {
	for _, p := range parts {
		for _, r := range all {
			hit := r.path == p.Path
			for _, b := range r.bounds {
				hit = hit && b.holds(p.Version)
			}
			if hit {
				found = append(found, fmt.Sprintf("%s %s: %s", p.Path, p.Version, r.reason))
			}
		}
	}
	return found
}
