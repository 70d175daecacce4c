//go:build linux

package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func ms(of ...int) (all []time.Duration) {
	for _, n := range of {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	return all
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		r    result
		want string
	}{
		{result{row: row{bar: 0.9}, ours: ms(9, 1, 90), peer: ms(10, 10, 10)}, "yes"},
		{result{row: row{bar: 0.9}, ours: ms(9, 10, 11), peer: ms(10, 10, 10)}, "**no**"},
		{result{row: row{bar: 0.9}, ours: ms(20), served: ms(5), peer: ms(10)}, "yes (with its start: no)"},
		{result{row: row{bar: 0.9}, ours: ms(8), served: ms(10), peer: ms(10)}, "**no**"},
		{result{row: row{bar: 20, unit: "ms"}, ours: ms(19), peer: ms(1)}, "yes"},
		{result{row: row{bar: 20, unit: "ms"}, ours: ms(21), peer: ms(100)}, "**no**"},
		{result{row: row{bar: 400, unit: "µs"}, ours: ms(1)}, "**no**"},
		{result{row: row{}, ours: ms(1), peer: ms(2)}, "–"},
		{result{row: row{bar: 20, unit: "ms", beyond: 500}, ours: ms(39), peer: ms(1000)}, "yes"},
		{result{row: row{bar: 20, unit: "ms", beyond: 500}, ours: ms(19), peer: ms(450)}, "**no**"},
		{result{row: row{bar: 0, unit: "files"}, value: 0}, "yes"},
		{result{row: row{bar: 0, unit: "files"}, value: 1}, "**no**"},
		{result{row: row{bar: 1}, skipped: "rg is not installed"}, "not measured"},
		{result{row: row{bar: 1}, ours: ms(1), peer: ms(9), err: context.Canceled}, "**failed**"},
	} {
		if got := c.r.verdict(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
	}
}

func TestGrown(t *testing.T) {
	recorded := map[string]float64{"a": 0.5, "b": 2, "gone": 1}
	worse, unknown := grown(recorded, map[string]float64{"a": 1, "b": 3.99, "c": 1})
	if !slices.Equal(worse, []string{"a"}) || !slices.Equal(unknown, []string{"c"}) {
		t.Errorf("worse %q, unknown %q", worse, unknown)
	}
}

func TestRatiosLeaveOutWhatSaysNothing(t *testing.T) {
	full := func(r row) result { return result{row: r, ours: ms(1), peer: ms(2), served: ms(3)} }
	failed, skipped := full(row{name: "failed"}), full(row{name: "skipped"})
	failed.err, skipped.skipped = context.Canceled, "not here"
	got := ratios(
		[]result{
			full(row{family: "f", name: "whole"}), full(row{name: "noisy", noisy: true}), failed, skipped,
			{row: row{name: "alone"}, ours: ms(1)},
		},
	)
	if len(got) != 2 || got["f/whole"] != 0.5 || got["f/whole (served)"] != 1.5 {
		t.Errorf("%v", got)
	}
}

// Every recorded name is that of a row: a row renamed without its record would no longer be compared.
func TestRecordedRowsExist(t *testing.T) {
	recorded, err := readRatios("recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, r := range (&bench{options: options{small: true}}).rows() {
		if ids[r.id()] {
			t.Errorf("two rows are called %s", r.id())
		}
		ids[r.id()] = true
	}
	for name := range recorded {
		if !ids[strings.TrimSuffix(name, servedSuffix)] {
			t.Errorf("recorded.json has %q, which no row is called", name)
		}
	}
	if len(recorded) < 20 {
		t.Errorf("only %d ratios are recorded", len(recorded))
	}
}

func TestExponent(t *testing.T) {
	for want, took := range map[float64]time.Duration{1: 10 * time.Second, 2: 100 * time.Second, 0: time.Second} {
		if got := exponent(step{work: 3, ours: time.Second}, step{work: 30, ours: took}); math.Abs(got-want) > 1e-9 {
			t.Errorf("ten times the work in %s: exponent %g, want %g", took, got, want)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		ours, peer string
		want       bool
	}{
		{"41 matches in 100 lines", "41\n", true}, {"41 matches in 41 lines", "40\n", false},
		{"0 matches in 7 lines", "", true}, {"no match in 7 lines", "", true}, {"no match in 7 lines", "7", false},
	} {
		if got := sameCount(c.ours, c.peer) == nil; got != c.want {
			t.Errorf("%q and %q: %t", c.ours, c.peer, got)
		}
	}
	if sameJob("1000 77\n", "5 77\n") != nil || sameJob("1000 77\n", "1000 78\n") == nil || sameJob("", "") == nil {
		t.Error("jobs are the same by their second number alone")
	}
}

// Inputs have the requested size, and the same bytes in every run.
func TestInputs(t *testing.T) {
	b := &bench{options: options{cache: t.TempDir()}, work: t.TempDir()}
	for i := range 2 {
		inputs := map[string]textInput{"hits": b.hits, "log": b.log}
		for _, k := range kept {
			inputs[k.name] = b.kept(k.name)
		}
		for name, generate := range inputs {
			path, _, err := generate(100_000)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(text); n < 99_000 || n > 101_000 {
				t.Errorf("%s of 100,000 bytes has %d", name, n)
			}
			first := filepath.Join(b.work, name)
			if i == 0 {
				if err := os.Rename(path, first); err != nil {
					t.Fatal(err)
				}
			} else if again, err := os.ReadFile(first); err != nil || string(again) != string(text) {
				t.Errorf("%s differ from one making to the next (%v)", name, err)
			}
		}
	}
}

// The shim reports the memory of its child, not that of its own parent.
func TestWatchedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program: skipped with -short")
	}
	bin := t.TempDir()
	build(t, bin, "./shim")
	b := &bench{options: options{bin: bin}, work: t.TempDir()}
	ballast := make([]byte, 200<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	small := &command{b: b, words: []string{"true"}}
	s, err := small.run(t.Context(), false)
	if err != nil || s.time <= 0 || s.peak <= 0 || s.peak > 20<<20 {
		t.Errorf("true: %+v, %v", s, err)
	}
	// All processes of a pipe count: sh waits for a child that holds 64 MiB.
	large := &command{b: b, words: []string{"sh", "-c", "yes | head -c 64M | tail -c 64M | wc -c; true"}}
	if s, err = large.run(t.Context(), true); err != nil || s.peak < 64<<20 || strings.TrimSpace(s.output) != "67108864" {
		t.Errorf("64 MiB held by a child: %d bytes at most, said %q, %v", s.peak, s.output, err)
	}
	failing := &command{b: b, words: []string{"false"}}
	if _, err := failing.run(t.Context(), false); err == nil {
		t.Error("a command that fails is measured")
	}
	if ballast[4096] != 1 {
		t.Error("the ballast is gone")
	}
}

func build(t *testing.T, bin, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", dir).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v: %s", dir, err, out)
	}
}
