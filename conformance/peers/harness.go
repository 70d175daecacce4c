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
	"slices"
	"strings"
	"time"
)

// row is one line of the table: the work, the peer, and the bar.
type row struct {
	family, name string
	beside       string  // program or module of the peer; its version is reported
	bar          float64 // maximum ratio, or with a unit the maximum figure; 0 without a unit: no bar
	unit         string  // "": the bar limits the ratio; else "ms", "µs", "MB", "%"
	// the peer's figure on the machine on which the bar was set, in the same unit: the ratio must then be at most
	// bar/beyond; 0: the figure must be at most bar
	beyond  float64
	noisy   bool // too noisy at small size to compare with recorded ratios
	setup   setup
	figures func(context.Context) (result, error) // replaces setup for rows with a measurement of their own
}

func (r row) id() string { return r.family + "/" + r.name }

// sample is one run of one contestant.
type sample struct {
	took time.Duration
	peak int64  // peak memory of all its processes in bytes; only if watched
	said string // standard output
}

// contestant does the work of a row once. A watched run measures memory and may take longer, so it is not timed.
type contestant interface {
	once(ctx context.Context, watched bool) (sample, error)
	close()
}

// setup makes the two contestants of a row.
type setup = func(context.Context) (*duel, error)

// duel is a pair of contestants, ours and the peer, that do the same work.
type duel struct {
	ours, peer contestant
	served     contestant // ours again, by a server that is already running; nil: not measured
	same       func(ours, peer string) error
	work       float64 // in MB, or files
}

// result holds the measurements of a row.
type result struct {
	row
	ours, peer, served  []time.Duration
	oursPeak, otherPeak int64
	value, other        float64 // our figure and the peer's, for units other than time
	note                string
	version             string // version of the peer
	skipped             string
	err                 error
}

// bench is one run of the command.
type bench struct {
	options
	work     string // temporary directory, removed at the end
	goroot   string
	versions map[string]string
	servers  []*wireServer // the MCP servers; nil: not measured yet
}

// enough reports whether a row has had enough rounds. It keeps the full form within half an hour and the small form
// within two minutes even if our side is slow. At full size a row with a bar gets all its rounds. The number of
// rounds is reported.
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

// measureAll measures the selected rows. If one fails, the others are still measured.
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

// errSkipped says why a row cannot be measured on this machine; the table prints the cause.
type errSkipped struct{ cause string }

func (e errSkipped) Error() string { return e.cause }

func (b *bench) measure(ctx context.Context, r row) (got result) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	if r.figures != nil {
		got, got.err = r.figures(ctx)
	} else {
		got, got.err = b.fight(ctx, r)
	}
	got.row, got.version = r, b.versionOf(r.beside)
	var skipped errSkipped
	if errors.As(got.err, &skipped) {
		got.skipped, got.err = skipped.cause, nil
	}
	return got
}

// fight runs the contestants in turns. The first round, which is not timed, warms up, measures memory and compares
// the outputs.
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
	enough := func(round int) bool { return b.enough(r, round, time.Since(began)) }
	return got, interleave(b.rounds, len(sides), enough, func(i, round int) error {
		s := sides[i]
		if s.c == nil {
			return nil
		}
		one, err := s.c.once(ctx, false)
		if err != nil {
			return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
		}
		*s.took = append(*s.took, one.took)
		return nil
	})
}

// interleave calls turn for each of n sides in each round, until enough returns true before a round (nil: all
// rounds).
func interleave(rounds, n int, enough func(round int) bool, turn func(side, round int) error) error {
	for round := range rounds {
		if enough != nil && enough(round) {
			return nil
		}
		for i := range n {
			if err := turn((i+round)%n, round); err != nil { // a different side begins each round
				return err
			}
		}
	}
	return nil
}

// machine describes the environment that affects the figures.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average " + strings.Fields(string(b) + " ?")[0]
	}
	return text
}

// scaled returns n, or a twentieth of n in the small form.
func (b *bench) scaled(n int64) int64 {
	if b.small {
		return n / 20
	}
	return n
}

// program returns the path of a peer's program, or errSkipped if it is not installed: the table then names the peer.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errSkipped{name + " is not installed"}
	}
	return path, nil
}

// versionOf returns the first line that a program prints about its version, or the version of a module of this build.
func (b *bench) versionOf(name string) string {
	if v, ok := b.versions[name]; ok || name == "" {
		return v
	}
	v := name
	if strings.Contains(name, "/") {
		if info, ok := debug.ReadBuildInfo(); ok {
			v = strings.TrimPrefix(name, "github.com/") + " " + versionIn(info, name)
		}
	} else {
		flag := "--version"
		if name == "openssl" {
			flag = "version"
		}
		if out, err := exec.CommandContext(context.Background(), name, flag).Output(); err == nil {
			v, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
			v, _, _ = strings.Cut(v, " (Library:")
		}
	}
	b.versions[name] = v
	return v
}

// versionIn returns the version of a module in a program; "" if the program does not contain it.
func versionIn(info *debug.BuildInfo, module string) string {
	at := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == module })
	if at < 0 {
		return ""
	}
	return info.Deps[at].Version
}

// toolDuel returns a duel between one tool call, by its own process and by a running server, and a peer's command
// line.
func (b *bench) toolDuel(base []string, dir, tool string, args map[string]any, peer []string) *duel {
	return &duel{
		ours:   &command{b: b, dir: dir, words: slices.Concat(base, called(tool, args))},
		served: &served{words: base, tool: tool, args: args},
		peer:   &command{b: b, dir: dir, words: peer},
	}
}
