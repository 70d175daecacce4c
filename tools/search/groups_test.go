package search

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func TestGrepGroups(t *testing.T) {
	const log = "a=1 b=2\nnone\na=1 a=3\nb=2\nA=1\n"
	s := toolstest.Roots(t, folder(
		t,
		"log",
		log,
		"empty",
		"",
		"one.json",
		`{"items":[`+strings.Repeat(`{"state":"up"},`, 900)+`{"state":"down"}]}`,
	))
	for _, c := range expect.Table[struct {
		Args args
		Want []string
		Note string
		Next int64
	}](t, "testdata/groups.tsv") {
		all := args{"source": "log", "show": "groups"}
		for k, v := range c.Args {
			all[k] = v
		}
		a := must(t, Grep(), s, all)
		if d := cmp.Diff(c.Want, a.rows); d != "" || a.note() != c.Note {
			t.Errorf("%v: notes %q, want %q; -want +got\n%s", c.Args, a.note(), c.Note, d)
		}
		if c.Next == 0 && a.next != nil || c.Next > 0 && (a.next == nil || a.next.Args.(grepArgs).Offset != c.Next) {
			t.Errorf("%v: next %+v", c.Args, a.next)
		}
	}
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "a", "invert": true}, "cannot be combined with invert"},
		{args{"pattern": "a", "context": 1}, "cannot be combined with context"},
		{args{"pattern": "a", "offset": 9}, "offset 9 is past the last of 1 group"},
	} {
		all := args{"source": "log", "show": "groups"}
		for k, v := range c.args {
			all[k] = v
		}
		if _, err := call(t, Grep(), s, all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

// naiveGroups counts by regexp alone and sorts as the rows are.
func naiveGroups(text, pattern string) (rows []string) {
	re := regexp.MustCompile(pattern)
	n := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		for _, m := range re.FindAllStringSubmatch(line, -1) {
			if len(m) > 1 {
				m = m[1:]
			}
			n[strings.Join(m, "\t")]++
		}
	}
	for group, count := range n {
		rows = append(rows, fmt.Sprintf("%d\t%s", count, group))
	}
	number := func(row string) (count int, group string) {
		a, b, _ := strings.Cut(row, "\t")
		_, _ = fmt.Sscan(a, &count)
		return count, b
	}
	sort.Slice(rows, func(i, j int) bool {
		a, x := number(rows[i])
		b, y := number(rows[j])
		return a > b || a == b && x < y
	})
	return rows
}

func TestGroupsAreThoseOfRegexp(t *testing.T) {
	patterns := []string{`a`, `(a)(b)?`, `[ab]+`, `(\w)=(\d*)`, `b$`, `^.`, `(a|b|ab)`, `\bb`, `(x)?`}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`([ab=1 é]{0,9}\n){1,20}`).Draw(r, "text")
		pattern := rapid.SampledFrom(patterns).Draw(r, "pattern")
		s := toolstest.Roots(t, folder(t, "t", text))
		got := must(t, Grep(), s, args{"source": "t", "pattern": pattern, "show": "groups"}).rows
		if d := cmp.Diff(naiveGroups(text, pattern), got); d != "" {
			r.Fatalf("%s on %q: -regexp +grep\n%s", pattern, text, d)
		}
	})
}

// grep -o gives the same matches.
func TestGroupsAgreeWithGrep(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "GET /item/%d status=%d took %dms\n", i%37, 200+i%5*100, i%11)
	}
	dir := folder(t, "access.log", b.String())
	n := map[string]int{}
	for _, m := range original(t, dir, "grep", "-oE", "status=[0-9]+|/item/1[0-9]", "access.log") {
		n[m]++
	}
	var want []string
	for m, count := range n {
		want = append(want, fmt.Sprintf("%d\t%s", count, m))
	}
	a := must(t, Grep(), toolstest.Roots(t, dir), args{
		"source": "access.log", "pattern": "status=[0-9]+|/item/1[0-9]", "show": "groups",
	})
	got := slices.Clone(a.rows)
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" || len(want) != 15 {
		t.Errorf("-grep +ours\n%s", d)
	}
}

func TestSearchGroupsAndDirs(t *testing.T) {
	one := folder(
		t,
		"a/x.go",
		"func A\nfunc B\n",
		"a/b/y.go",
		"func A\n",
		"z.go",
		"func C func C\n",
		"a/n.txt",
		"none\n",
	)
	s := toolstest.Roots(t, one)
	a := must(t, Search(), s, args{"pattern": `func (\w)`, "show": "groups"})
	if d := cmp.Diff("{\"group\":\"A\",\"count\":2}\n{\"group\":\"C\",\"count\":2}\n{\"group\":\"B\",\"count\":1}\n", a.String()); d != "" {
		t.Error(d)
	}
	if a.counts["occurrences"] != 5 || a.counts["total_matches"] != 4 || a.counts["files_with_matches"] != 3 {
		t.Errorf("counts %v", a.counts)
	}
	a = must(t, Search(), s, args{"pattern": "func", "show": "dirs"})
	if d := cmp.Diff(`{"dir":"a","matches":2,"files":1}
{"dir":".","matches":1,"files":1}
{"dir":"a/b","matches":1,"files":1}
`, a.String()); d != "" {
		t.Error(d)
	}
	both := toolstest.Roots(t, one, folder(t, "q.go", "func A\n"))
	if got := must(t, Search(), both, args{"pattern": "func", "show": "dirs"}).String(); strings.Count(got, "\n") != 4 {
		t.Errorf("two roots: %s", got)
	}
	withStore, store := stored(t, s)
	keep(t, store, observations.Provenance{Tool: "keep"}, "func A\nfunc A\n")
	if got := must(t, Search(), withStore, args{"pattern": "func", "path": "obs:", "show": "dirs"}).String(); got !=
		"{\"dir\":\"obs:\",\"matches\":2,\"files\":1}\n" {
		t.Errorf("observations: %s", got)
	}
	if _, err := call(t, Search(), s, args{"pattern": "a", "show": "groups", "context": 1}); err == nil {
		t.Error("groups with context: no error")
	}
	a = must(t, Grep(), s, args{"source": "a/n.txt", "pattern": "nothing has this", "show": "groups", "offset": 1})
	expect.Equal(t, len(a.rows), 0, "an offset without groups: %q", a.rows)
}

// Every limit that is reached is said.
func TestGroupsSayTheirLimits(t *testing.T) {
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "id=%d\n", i)
	}
	s := toolstest.Roots(t, folder(
		t, "many", many.String(), "wide", strings.Repeat("x", 5000)+"\n", "long", "a"+strings.Repeat(" b", 1<<20)+"\n",
	))
	a, err := callOn(t, t.Context(), &answer{rowsMost: 10}, Grep(), s, args{
		"source": "many", "pattern": `id=(\d+)`, "show": "groups",
	})
	if err != nil || a.total != 100_000 || len(a.rows) != 10 || a.next == nil {
		t.Errorf("100,000 groups: %v, %d rows of %d", err, len(a.rows), a.total)
	}
	a = must(t, Grep(), s, args{"source": "wide", "pattern": "x+", "show": "groups"})
	if !strings.Contains(a.note(), "1 group is over 4 KiB and cut to that") || len(a.rows[0]) != maxGroup+2 {
		t.Errorf("%q", a.note())
	}
	a = must(t, Grep(), s, args{"source": "long", "pattern": "b", "show": "groups"})
	expect.Contains(t, a.note(), "only 1 MiB around the first match was searched for groups in 1 longer line")
	full := groupCounts{size: maxGroupBytes - 10}
	full.add("first", 2)
	full.add("second", 3)
	if full.uncounted != 5 ||
		!strings.Contains(strings.Join(full.notes(), ""), "5 occurrences belong to further groups") {
		t.Errorf("%+v, %q", full, full.notes())
	}
}

func TestSearchGroupsOverLinesAndFiles(t *testing.T) {
	one := `{"items":[` + strings.Repeat(`{"state":"up"},`, 900) + `{"state":"down"}]}`
	s := toolstest.Roots(t, folder(t, "a.txt", "x {\ny}\nx {\nz}\nX\n", "b.txt", "x {\ny}\n", "one.json", one))
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": `\{\n(\w)`, "multiline": true, "glob": "*.txt"}, "y 2 z 1"},
		{args{"pattern": "x", "ignore_case": true, "glob": "*.txt"}, "x 3 X 1"},
		{args{"pattern": "x {", "literal": true, "glob": []string{"*.txt", "!b*"}}, "x { 2"},
		{args{"pattern": `"state":"(\w+)"`, "path": "one.json"}, "up 900 down 1"},
		{args{"pattern": "nothing"}, ""},
	} {
		c.args["show"] = "groups"
		var got []string
		for row := range strings.Lines(must(t, Search(), s, c.args).String()) {
			var r struct {
				Group string
				Count int
			}
			expect.Must(t, json.Unmarshal([]byte(row), &r))
			got = append(got, fmt.Sprint(r.Group, " ", r.Count))
		}
		expect.Equal(t, strings.Join(got, " "), c.want, c.args)
	}
}
