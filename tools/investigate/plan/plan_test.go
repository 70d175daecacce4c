package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// apply applies a plan to directories; "top" is the name of the tree's own one.
func apply(p Plan, dirs []Dir) Applied {
	all := map[string]*Dir{}
	for _, d := range dirs {
		if all[d.Path] = &d; d.Path != "." {
			up := all[path.Dir(d.Path)]
			up.Subs = append(up.Subs, d.Path)
		}
	}
	for _, d := range all {
		slices.Sort(d.Subs)
	}
	return p.Apply(func(p string) *Dir { return all[p] }, func(name string) string {
		return cmp.Or(strings.TrimPrefix(path.Clean(name), "top"), ".")
	})
}

// randomTree draws directories, each after its parent.
func randomTree(r *rand.Rand) []Dir {
	all := []Dir{{Path: ".", Files: r.IntN(60), Value: r.Int64N(1000)}}
	for range r.IntN(40) {
		up := all[r.IntN(len(all))].Path
		p := path.Join(up, fmt.Sprintf("d%d", r.IntN(12)))
		if slices.ContainsFunc(all, func(d Dir) bool { return d.Path == p }) {
			continue
		}
		all = append(all, Dir{
			Path: p, Files: r.IntN(60) * r.IntN(2), Tokens: r.Int64N(15_000) * r.Int64N(2),
			Value: r.Int64N(1000), Keep: r.IntN(6) == 0,
		})
	}
	return all
}

func randomPlan(r *rand.Rand, dirs []Dir) (p Plan) {
	name := func() string {
		switch r.IntN(12) {
		case 0:
			return "no/such/dir"
		case 1:
			return "top"
		case 2:
			return "./" + dirs[r.IntN(len(dirs))].Path + "/"
		}
		return dirs[r.IntN(len(dirs))].Path
	}
	for range r.IntN(5) {
		turns := []int{0, -1, 3, 12, 17, 25, 26, 1_000_000_000}[r.IntN(8)]
		p.PriorityDirs = append(p.PriorityDirs, NamedDir{Path: name(), SuggestedTurns: turns})
	}
	for range r.IntN(4) {
		p.ShallowDirs = append(p.ShallowDirs, NamedDir{Path: name()})
	}
	for range r.IntN(3) {
		p.SkipDirs = append(p.SkipDirs, NamedDir{Path: name()})
	}
	p.Order = []string{"", LeafFirst, PriorityFirst}[r.IntN(3)]
	if r.IntN(4) == 0 {
		p.MaxOrders = 1 + r.IntN(5)
	}
	return p
}

// TestApply draws trees and plans: each directory is in one place, children come first, turns are in range.
func TestApply(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range rounds {
		dirs := randomTree(r)
		p := randomPlan(r, dirs)
		a := apply(p, dirs)
		at, seen := map[string]int{}, map[string]int{}
		for i, u := range a.Units {
			files, tokens := 0, int64(0)
			for _, d := range u.Dirs {
				at[d.Path] = i
				seen[d.Path]++
				if d.Turns < minTurns || d.Turns > maxTurns || u.Turns < d.Turns {
					t.Fatalf("%d: %+v has %d turns in a unit of %d", n, d, d.Turns, u.Turns)
				}
				tokens += dirs[slices.IndexFunc(dirs, func(x Dir) bool { return x.Path == d.Path })].Tokens
				if d.Tier == Priority && len(u.Dirs) > 1 {
					t.Fatalf("%d: a priority directory is bundled: %+v", n, u)
				}
				expect.MustEqual(t, d.Tier, u.Tier, "%d: a unit mixes tiers: %+v", n, u)
				files += dirs[slices.IndexFunc(dirs, func(x Dir) bool { return x.Path == d.Path })].Files
			}
			if files != u.Files || len(u.Dirs) > 1 && (files > bundle || tokens > bundleTokens) {
				t.Fatalf("%d: a unit of %d files, %d tokens: %+v", n, files, tokens, u)
			}
		}
		for _, d := range a.Skipped {
			seen[d.Path]++
		}
		for _, d := range append(a.Kept, a.Dropped...) {
			seen[d]++
		}
		for _, d := range dirs {
			expect.MustEqual(t, seen[d.Path], 1, "%d: %s, places of %+v for %+v", n, d.Path, a, p)
			for up := path.Dir(d.Path); d.Path != "."; up = path.Dir(up) {
				child, has := at[d.Path]
				if parent, ok := at[up]; ok && has && parent < child {
					t.Fatalf("%d: %s comes before %s, which is below it: %+v", n, up, d.Path, a.Units)
				}
				if up == "." {
					break
				}
			}
		}
		if len(seen) != len(dirs) || p.MaxOrders > 0 && len(a.Units) > p.MaxOrders {
			t.Fatalf("%d: %d directories in %d units, of %d; %+v", n, len(seen), len(a.Units), len(dirs), p)
		}
	}
}

// TestSpecific has overlapping paths: the most specific one wins, and skip covers what is below.
func TestSpecific(t *testing.T) {
	var dirs []Dir
	for _, p := range []string{".", "a", "a/b", "a/b/c", "d", "d/e", "f"} {
		dirs = append(dirs, Dir{Path: p, Files: 50, Value: 1})
	}
	p := Plan{
		PriorityDirs: []NamedDir{{Path: "a/b", SuggestedTurns: 40}, {Path: "top", SuggestedTurns: -1}, {Path: "d"}},
		SkipDirs:     []NamedDir{{Path: "a/", Reason: "vendored"}, {Path: "nowhere"}},
		ShallowDirs:  []NamedDir{{Path: "./f"}},
	}
	a := apply(p, dirs)
	got := map[string]string{}
	for _, u := range a.Units {
		for _, d := range u.Dirs {
			got[d.Path] = fmt.Sprintf("%s %d", d.Tier, d.Turns)
		}
	}
	want := map[string]string{
		"a/b": "priority 25", "a/b/c": "default 10", ".": "priority 5", "d": "priority 15", "d/e": "default 10",
		"f": "shallow 5",
	}
	for p, w := range want {
		expect.Equal(t, got[p], w, p)
	}
	if len(a.Skipped) != 1 || a.Skipped[0].Path != "a" || a.Skipped[0].Reason != "vendored" ||
		!slices.Equal(a.Unknown, []string{"nowhere"}) || len(got) != len(want) {
		t.Errorf("%+v", a)
	}
}

// TestCheck has plans that are refused, and forms that are accepted.
func TestCheck(t *testing.T) {
	for raw, want := range map[string]string{
		`{"investigation_order":"random"}`:                      "investigation_order",
		`{"max_orders":-1}`:                                     "max_orders",
		`{"priority_dirs":[{"reason":"x"}]}`:                    "priority_dirs[0]",
		`{"skip_dirs":[""]}`:                                    "skip_dirs[0]",
		`{"notes":"` + strings.Repeat("x", maxText+1) + `"}`:    "notes",
		`{"shallow_dirs":["a",{"path":"b"}],"skip_dirs":["c"]}`: "",
	} {
		var p Plan
		expect.Must(t, json.Unmarshal([]byte(raw), &p))
		if err := p.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", raw, err, want)
		}
	}
}
