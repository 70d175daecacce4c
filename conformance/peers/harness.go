//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// row is one line of the table: what is done, beside whom, and what is expected of it.
type row struct {
	family, name string
	beside       string  // the program or module beside it, whose version is told
	bar          float64 // the ratio, or with a unit the figure itself, that is to be reached; 0 without a unit: none
	unit         string  // "": the bar is of the ratio; else "ms", "µs", "MB", "%"
	beyond       float64 // what the peer took where the bar was set, in its unit: the bar held is the ratio of the two; 0: the bar as it is
	noisy        bool    // too unsteady at small size to be compared with what was recorded
	setup        func(context.Context) (*duel, error)
	figures      func(context.Context) (result, error) // in place of setup: the row measures itself
}

func (r row) id() string { return r.family + "/" + r.name }

// sample is one run of one contestant.
type sample struct {
	took time.Duration
	peak int64  // bytes, of all its processes; only where it was watched
	said string // standard output
}

// contestant does the work of a row once. Watched, it may take longer and tells its memory: such a run is not timed.
type contestant interface {
	once(ctx context.Context, watched bool) (sample, error)
	close()
}

// duel is ours and the peer with the same work before them.
type duel struct {
	ours, peer contestant
	served     contestant // ours again, asked of a server that runs already; nil: not told apart
	same       func(ours, peer string) error
	work       float64 // in MB, or files
}

// result is what was seen of a row.
type result struct {
	row
	ours, peer, served  []time.Duration
	oursPeak, otherPeak int64
	value, other        float64 // of a row with a unit that is no time
	note                string
	version             string // of what stands beside it
	skipped             string
	err                 error
}

// bench is one run of the command.
type bench struct {
	options
	work     string // removed at the end
	goroot   string
	versions map[string]string
	wire     *wireFigures
}

// enough says that a row has had its time, so that the whole ends within half an hour, and the small form within two minutes, also where
// ours is slow. A row that is held to a bar at full size has all its rounds. How many there were is told.
func (b *bench) enough(r row, rounds int, since time.Duration) bool {
	if b.small {
		return rounds >= 2 && since > 2*time.Second
	}
	return r.free() && rounds >= 3 && since > 30*time.Second
}

func newBench(o options) (*bench, error) {
	b := &bench{options: o, versions: map[string]string{}}
	for _, dir := range []*string{&b.bin, &b.npm, &b.cache, &b.tree} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return nil, err
		}
		*dir = abs
	}
	if b.rounds == 0 {
		if b.rounds = 7; b.small {
			b.rounds = 3
		}
	}
	if err := os.MkdirAll(b.cache, 0o700); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	b.goroot = strings.TrimSpace(string(out))
	b.work, err = os.MkdirTemp(b.cache, "run-")
	return b, err
}

func (b *bench) close() { _ = os.RemoveAll(b.work) }

// measureAll measures the rows that are asked for. One that fails does not hold up the others.
func (b *bench) measureAll(ctx context.Context, rows []row) []result {
	var results []result
	for _, r := range rows {
		if !b.only.MatchString(r.id()) {
			continue
		}
		began := time.Now()
		got := b.measure(ctx, r)
		fmt.Fprintf(os.Stderr, "%s: %s (%.0f s)\n", r.id(), got.brief(), time.Since(began).Seconds())
		results = append(results, got)
	}
	return results
}

// errSkipped is the cause of a row that cannot be measured here, told by name.
type errSkipped struct{ cause string }

func (e errSkipped) Error() string { return e.cause }

func (b *bench) measure(ctx context.Context, r row) result {
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	var got result
	var err error
	if r.figures != nil {
		got, err = r.figures(ctx)
	} else {
		got, err = b.fight(ctx, r)
	}
	got.row, got.version = r, b.versionOf(r.beside)
	var skipped errSkipped
	if errors.As(err, &skipped) {
		got.skipped, err = skipped.cause, nil
	}
	got.err = err
	return got
}

// fight has both do the work by turns. The first round warms up, weighs memory and compares what they say; it is not timed.
func (b *bench) fight(ctx context.Context, r row) (got result, err error) {
	d, err := r.setup(ctx)
	if err != nil {
		return got, err
	}
	sides := []struct {
		name string
		c    contestant
		took *[]time.Duration
		peak *int64
		said string
	}{{"ours", d.ours, &got.ours, &got.oursPeak, ""}, {"the peer", d.peer, &got.peer, &got.otherPeak, ""}, {"ours, served", d.served, &got.served, new(int64), ""}}
	for i := range sides {
		s := &sides[i]
		if s.c == nil {
			continue
		}
		defer s.c.close()
		first, err := s.c.once(ctx, true)
		if err != nil {
			return got, fmt.Errorf("%s: %w", s.name, err)
		}
		*s.peak, s.said = first.peak, first.said
	}
	if d.same != nil {
		for _, s := range sides {
			if s.c == nil || s.c == d.peer {
				continue
			}
			if err := d.same(s.said, sides[1].said); err != nil {
				return got, fmt.Errorf("%s and the peer did not do the same work: %w", s.name, err)
			}
		}
	}
	began := time.Now()
	for round := range b.rounds {
		if b.enough(r, round, time.Since(began)) {
			break
		}
		for i := range sides {
			s := sides[(i+round)%len(sides)] // nobody is always first
			if s.c == nil {
				continue
			}
			one, err := s.c.once(ctx, false)
			if err != nil {
				return got, fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
			*s.took = append(*s.took, one.took)
		}
	}
	return got, nil
}

// machine names what the figures depend on.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average " + strings.Fields(string(b) + " ?")[0]
	}
	return text
}

// scaled is a size of the full form, or a twentieth of it in the small one.
func (b *bench) scaled(n int64) int64 {
	if b.small {
		return n / 20
	}
	return n
}

// program is the path of a peer. One that is missing leaves its rows out, by name.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errSkipped{name + " is not installed"}
	}
	return path, nil
}

// versionOf is what a program says of itself in its first line, or the version of a module this is built with.
func (b *bench) versionOf(name string) string {
	if v, ok := b.versions[name]; ok || name == "" {
		return v
	}
	v := name
	if strings.Contains(name, "/") {
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, d := range info.Deps {
				if d.Path == name {
					v = strings.TrimPrefix(name, "github.com/") + " " + d.Version
				}
			}
		}
	} else if out, err := exec.CommandContext(context.Background(), name, "--version").Output(); err == nil {
		v, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	b.versions[name] = v
	return v
}
