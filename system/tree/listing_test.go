package tree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// usePool reserves the whole shared pool until the test ends, so that a walk without a budget may hold one step.
func usePool(t *testing.T) {
	pooledBytes.Add(sharedRoom)
	t.Cleanup(func() {
		expect.Equal(t, pooledBytes.Add(-sharedRoom), 0, "bytes were not given back")
	})
}

// Names that do not fit are still listed in order, each once, and memory stays within the limit.
func TestListingHoldsWhatFits(t *testing.T) {
	var all []string
	for i := range 20_000 {
		all = append(all, fmt.Sprintf("%d%s", i, strings.Repeat("n", i%200)))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	usePool(t)
	room := 0
	l := listing{budget: &room}
	var had []string
	times := 0
	for again := true; again; again = l.leftFrom != nil {
		if times++; times > 1 {
			l.reset()
		}
		for _, name := range all {
			l.insert(t.Context(), []byte(name), isFile)
			if held := len(l.names) + 8*len(l.items); held > stepRoom {
				t.Fatalf("%d bytes are held, of %d", held, stepRoom)
			}
		}
		l.sort(t.Context())
		for i := range l.items {
			had = append(had, string(l.name(i)))
		}
	}
	slices.Sort(all)
	expect.EqualList(t, had, all, "%d names were had of %d, or not in order", len(had), len(all))
	if times < 10 {
		t.Errorf("all of it fits in %d times: nothing was tried", times)
	}
}

// A walk finds the same entries in order when it holds only a part of a directory's names, and applies an ignore file
// that is not among the first names.
func TestWalkReadsLargeDirectoriesInParts(t *testing.T) {
	dir := t.TempDir()
	for i := range 3000 {
		expect.Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("!%d%s", i*7919%3000, strings.Repeat("n", 80))), nil, 0o600))
	}
	for i := range 20 {
		sub := filepath.Join(dir, fmt.Sprintf("!%d sub", i*150))
		expect.Must(t, os.Mkdir(sub, 0o700))
		expect.Must(t, os.WriteFile(filepath.Join(sub, "in.txt"), nil, 0o600))
	}
	expect.Must(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*9nnn*\n!11 sub\n"), 0o600))
	expect.Must(t, os.WriteFile(filepath.Join(dir, "last"), nil, 0o600))
	r := expect.Value(Open(dir))(t)
	defer func() { _ = r.Close() }()
	usePool(t)
	for _, all := range []bool{false, true} {
		walk := func(ctx context.Context, names int) (found []string, report Report, err error) {
			w := &walker{
				root: r, o: Options{All: all}, ctx: ctx, shared: &shared{root: r}, budget: names,
				visit: func(e Entry) error {
					found = append(found, e.Path)
					return nil
				},
			}
			defer w.closeAll()
			if err = w.begin("."); err == nil {
				err = w.run()
			}
			return found, w.report, err
		}
		want, whole, err := walk(t.Context(), ownRoom)
		expect.Must(t, err)
		got, parts, err := walk(t.Context(), 0)
		expect.Must(t, err)
		if !slices.Equal(got, want) || parts != whole || len(want) < 2000 {
			t.Errorf("all %v: %d entries, %+v; in parts %d, %+v", all, len(want), whole, len(got), parts)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, _, err := walk(stopped, 0); err == nil {
			t.Error("a walk that was stopped seems whole")
		}
	}
}
