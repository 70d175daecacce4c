//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opened returns a bench in the small form with directories of its own.
func opened(t *testing.T) *bench {
	t.Helper()
	b := &bench{bin: t.TempDir(), cache: t.TempDir(), small: true}
	if err := b.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// took returns the samples of a side in milliseconds.
func took(milliseconds ...float64) (s side) {
	for _, n := range milliseconds {
		s.samples = append(s.samples, n/1000)
	}
	return s
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		r    result
		want string
	}{
		{result{row: row{Bar: 0.9}, ours: took(9, 1, 90), peer: took(10, 10, 10)}, "yes"},
		{result{row: row{Bar: 0.9}, ours: took(9, 10, 11), peer: took(10, 10, 10)}, "**no**"},
		{result{row: row{Bar: 0.9}, ours: took(20), served: took(5), peer: took(10)}, "yes (with its start: no)"},
		{result{row: row{Bar: 0.9}, ours: took(8), served: took(10), peer: took(10)}, "**no**"},
		{result{row: row{Bar: 20, Unit: "ms"}, ours: took(19), peer: took(1)}, "yes"},
		{result{row: row{Bar: 20, Unit: "ms"}, ours: took(21), peer: took(100)}, "**no**"},
		{result{row: row{Bar: 20, Unit: "ms", Over: true}, ours: took(30), peer: took(15)}, "yes"},
		{result{row: row{Bar: 400, Unit: "µs"}, ours: took(1)}, "**no**"},
		{result{row: row{}, ours: took(1), peer: took(2)}, "–"},
		{result{row: row{Bar: 20, Unit: "ms", Beyond: 500}, ours: took(39), peer: took(1000)}, "yes"},
		{result{row: row{Bar: 20, Unit: "ms", Beyond: 500}, ours: took(19), peer: took(450)}, "**no**"},
		{result{row: row{Bar: 0, Unit: "files"}, ours: took(0)}, "yes"},
		{result{row: row{Bar: 0, Unit: "files"}, ours: took(1)}, "**no**"},
		{result{row: row{Bar: 1}, err: errSkipped{"rg is not installed"}}, "not measured"},
		{result{row: row{Bar: 1}, ours: took(1), peer: took(9), err: context.Canceled}, "**failed**"},
	} {
		if got := c.r.verdict(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
	}
}

func TestRatiosLeaveOutWhatSaysNothing(t *testing.T) {
	full := func(r row, err error) result {
		return result{row: r, ours: took(1), peer: took(2), served: took(3), err: err}
	}
	got := ratios([]result{
		full(row{Family: "f", Name: "whole"}, nil), full(row{Name: "noisy", Noisy: true}, nil),
		full(row{Name: "failed"}, context.Canceled), full(row{Name: "skipped"}, errSkipped{"not here"}),
		{row: row{Name: "alone"}, ours: took(1)},
	})
	if len(got) != 2 || got["f/whole"] != 0.5 || got["f/whole (served)"] != 1.5 {
		t.Errorf("%v", got)
	}
}

// Every recorded name is that of a row: a row renamed without its record would no longer be compared. So is every row
// whose growth is measured.
func TestNamedRowsExist(t *testing.T) {
	recorded, err := readRatios("recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readTable(false)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, v := range all.rows {
		id := described(v).id()
		if ids[id] {
			t.Errorf("two rows are called %s", id)
		}
		ids[id] = true
	}
	for name := range recorded {
		if !ids[strings.TrimSuffix(name, servedSuffix)] {
			t.Errorf("recorded.json has %q, which no row is called", name)
		}
	}
	for _, g := range all.Growth.Rows {
		if !ids[g.Of] {
			t.Errorf("growth %s is that of %q, which no row is called", g.Name, g.Of)
		}
	}
	if len(recorded) < 20 {
		t.Errorf("only %d ratios are recorded", len(recorded))
	}
}

// Answers that differ fail the row, for each of the ways in which rows compare them.
func TestDifferentAnswersFail(t *testing.T) {
	b := opened(t)
	const tokens = "BenchmarkCount/ours-2 3 12 ns/op 77 tokens\n"
	for _, c := range []struct {
		row, ours, peer string
		want            bool
	}{
		{"grep/200 MB, a literal, one core", "41 matches in 100 lines", "41\n", true},
		{"grep/200 MB, a literal, one core", "41 matches in 41 lines", "40\n", false},
		{"grep/200 MB, a literal, one core", "no match in 7 lines", "", true},
		{"grep/200 MB, a literal, one core", "no match in 7 lines", "7", false},
		{"tokens/counting, CJK", tokens, strings.ReplaceAll(tokens, "12", "99"), true},
		{"tokens/counting, CJK", tokens, strings.ReplaceAll(tokens, "77", "78"), false},
		{"tokens/counting, CJK", tokens, "", false},
		{"tree/search, a rare literal", "a.go\n 7: x\n 9: y\n", "a.go:7:x\na.go:9:y\n", true},
		{"tree/search, a rare literal", "a.go\n 7: x\n", "a.go:7:x\na.go:9:y\n", false},
		{"tree/search, a word in many files, counted", "12 matches in 2 files", "a:2\nb:10\n", true},
		{"tree/search, a word in many files, counted", "12 matches in 2 files", "a:2\nb:9\n", false},
		{"tree/listing, counted by extension", "12 files in 2 directories", "a\nb\n", true},
		{"tree/listing, counted by extension", "12 files in 3 directories", "a\nb\n", false},
		{"jq/200 MB, streamable: length", "1 result\n5", "5\n", true},
		{"jq/200 MB, streamable: length", "5", "6\n", false},
		{"jq/200 MB, streamable: length", "note: no results", "", true},
		{"jq/200 MB, streamable: length", "5", "", false},
	} {
		i := slices.IndexFunc(b.table.rows, func(v values) bool { return described(v).id() == c.row })
		v := b.table.rows[i]
		v["in"], v["text"] = b.work, "" // inputs do not matter
		r, err := b.expand(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"ours": c.ours, "peer": c.peer} {
			if err := os.WriteFile(filepath.Join(b.work, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err = b.script(t.Context(), b.work, r.Same, "OURS="+b.work+"/ours", "PEER="+b.work+"/peer")
		if (err == nil) != c.want {
			t.Errorf("%s: %q and %q: %v, want equal %t", c.row, c.ours, c.peer, err, c.want)
		}
	}
}

// A list reaches both sides as it was meant: no shell reads its backslashes.
func TestListsAreSearchedAsWritten(t *testing.T) {
	b := opened(t)
	for name, begin := range map[string]string{"whole words": `\b(?:`, "line's begin": "^(?:", "after a prefix": "cart-"} {
		i := slices.IndexFunc(b.table.rows, func(v values) bool {
			return described(v).Name == "100 MB of beginnings, a list of 200 words, "+name
		})
		r, err := b.expand(t.Context(), b.table.rows[i])
		if err != nil {
			t.Fatal(err)
		}
		var args struct{ Pattern string }
		if err := json.Unmarshal([]byte(r.Args), &args); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(args.Pattern, begin) || strings.Count(args.Pattern, "|") != 199 ||
			!strings.Contains(r.Peer, "-e "+quoted(args.Pattern)+" ") {
			t.Errorf("%s: %.80q, by the peer %.120q", name, args.Pattern, r.Peer)
		}
	}
}

// A side's memory is that of its largest process, not that of this one, which starts it.
func TestPeakMemory(t *testing.T) {
	b := opened(t)
	ballast := slices.Repeat([]byte{1}, 200<<20)
	for line, peak := range map[string][2]float64{
		"true": {1, 20 << 20},
		"yes | head -c 64M | tail -c 64M | wc -c; true": {64 << 20, 100 << 20}, // sh waits for a child that holds 64 MiB
	} {
		s := side{name: "ours"}
		b.starts(&s, row{}, b.work, line)
		if err := s.run(t.Context(), true); err != nil || s.peak < peak[0] || s.peak > peak[1] {
			t.Errorf("%s: %.0f bytes at most, %v", line, s.peak, err)
		}
		if err := s.run(t.Context(), false); err != nil || len(s.samples) != 1 || s.samples[0] <= 0 {
			t.Errorf("%s: %v, %v", line, s.samples, err)
		}
	}
	failing := side{name: "ours"}
	b.starts(&failing, row{}, b.work, "false")
	if failing.run(t.Context(), false) == nil || ballast[4096] != 1 {
		t.Error("a command that fails is measured")
	}
}

// The table of a page is replaced between the comments that name its command, and nothing else.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const begin, end = "<!-- begin: make it ./a -->\n", "<!-- end: make it ./a -->\n"
	page, table := write("page.md", "before\n"+begin+"old\n"+end+"after\n"), write("table.md", "new \\1 & /\n")
	replace := func(command string) error {
		return exec.CommandContext(t.Context(), "../../scripts/page", page, command, table).Run()
	}
	for range 2 {
		if err := replace("make it ./a"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != "before\n"+begin+"new \\1 & /\n"+end+"after\n" {
		t.Errorf("%v: %q", err, got)
	}
	for _, text := range []string{"", begin, end + begin} {
		write("page.md", text)
		if got, _ := os.ReadFile(page); replace("make it ./a") == nil || string(got) != text {
			t.Errorf("%q has no marks", text)
		}
	}
}
