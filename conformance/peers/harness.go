//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// sample is one run of one side of a row.
type sample struct {
	time   time.Duration
	peak   int64  // peak memory of all its processes in bytes; only if watched
	output string // standard output; only if watched, or if the command reads its time from the output
}

// runner does the work of a row once. A watched run measures memory and may take longer, so its time is not used.
type runner interface {
	run(ctx context.Context, watched bool) (sample, error)
	close()
}

// setup makes the runners of a row.
type setup = func(context.Context) (*pair, error)

// pair has the runners that do the same work: ours and the peer's.
type pair struct {
	ours, peer runner                        // peer may be nil
	served     runner                        // ours again, by a server that is already running; nil: not measured
	same       func(ours, peer string) error // compares the outputs; nil: not compared
	work       float64                       // in MB, or files
}

// result holds the measurements of a row.
type result struct {
	row
	ours, peer, served []time.Duration
	oursPeak, peerPeak int64
	value, other       float64 // our figure and the peer's, for units other than time
	note               string
	version            string // version of the peer
	skipped            string
	err                error
}

// bench is one run of the command.
type bench struct {
	options
	work    string // temporary directory, removed at the end
	goroot  string
	servers []*wireServer // the MCP servers; nil: not measured yet
}

func newBench(o options) (*bench, error) {
	b := &bench{options: o}
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

// measure measures rows. If one fails, the others are still measured.
func (b *bench) measure(ctx context.Context, rows []row) (results []result) {
	for _, r := range rows {
		began := time.Now()
		got, err := b.measureRow(ctx, r)
		got.row, got.version = r, versionOf(r.beside)
		var skipped errSkipped
		if errors.As(err, &skipped) {
			got.skipped = skipped.cause
		} else {
			got.err = err
		}
		text := strings.ReplaceAll(strings.Join(got.cells()[1:8], ", "), "*", "")
		fmt.Fprintf(os.Stderr, "%s: %s (%.0f s)\n", r.id(), text, time.Since(began).Seconds())
		results = append(results, got)
	}
	return results
}

// errSkipped says why a row cannot be measured on this machine; the table prints the cause.
type errSkipped struct{ cause string }

func (e errSkipped) Error() string { return e.cause }

// measureRow bounds the rounds of a row in time. This keeps the full form within half an hour and the small form within
// two minutes even if our side is slow. At full size a row with a bar gets all its rounds. The table prints the number
// of rounds.
func (b *bench) measureRow(ctx context.Context, r row) (got result, err error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	if r.beside != "" && !strings.Contains(r.beside, "/") {
		if _, err := program(r.beside); err != nil {
			return got, err
		}
	}
	if r.figures != nil {
		return r.figures(ctx)
	}
	p, err := r.setup(ctx)
	if err != nil {
		return got, err
	}
	return b.runPair(ctx, p, b.rounds, func(round int, since time.Duration) bool {
		if b.small {
			return round >= 2 && since > 2*time.Second
		}
		return r.free() && round >= 3 && since > 30*time.Second
	})
}

// runPair runs the sides of a pair in turns, until enough returns true before a round. The first round, which is not
// timed, warms up, measures memory and compares the outputs.
func (b *bench) runPair(ctx context.Context, p *pair, rounds int, enough func(int, time.Duration) bool) (
	got result, err error,
) {
	type side struct {
		name string
		runner
		times  *[]time.Duration
		peak   *int64
		output string
	}
	sides := []*side{{"ours", p.ours, &got.ours, &got.oursPeak, ""}}
	if p.peer != nil {
		sides = append(sides, &side{"the peer", p.peer, &got.peer, &got.peerPeak, ""})
	}
	if p.served != nil {
		sides = append(sides, &side{"ours, served", p.served, &got.served, new(int64), ""})
	}
	for _, s := range sides {
		defer s.close()
		first, err := s.run(ctx, true)
		if err != nil {
			return got, fmt.Errorf("%s: %w", s.name, err)
		}
		*s.peak, s.output = first.peak, first.output
	}
	for _, s := range sides {
		if p.same == nil || s.runner == p.peer {
			continue
		}
		if err := p.same(s.output, sides[1].output); err != nil {
			return got, fmt.Errorf("%s and the peer did not do the same work: %w", s.name, err)
		}
	}
	began := time.Now()
	return got, interleave(rounds, len(sides), func(i, round int) (bool, error) {
		s := sides[i]
		if i == round%len(sides) && enough(round, time.Since(began)) {
			return true, nil
		}
		one, err := s.run(ctx, false)
		if err != nil {
			return false, fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
		}
		*s.times = append(*s.times, one.time)
		return false, nil
	})
}

// interleave calls turn for each of n sides in each round, until turn reports that this is enough. Each round begins
// with the next side.
func interleave(rounds, n int, turn func(side, round int) (enough bool, err error)) error {
	for i := range rounds * n {
		round := i / n
		if enough, err := turn((i+round)%n, round); enough || err != nil {
			return err
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

// program returns the path of a peer's program, or errSkipped if it is not installed: the table then names the peer.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errSkipped{name + " is not installed"}
	}
	return path, nil
}

// versionOf returns the first line that a program prints about its version, or the version of a module of this build.
func versionOf(name string) string {
	if strings.Contains(name, "/") {
		self, _ := os.Executable() // an error shows as a missing version
		version, _ := builtWith(self, name)
		return strings.TrimPrefix(name, "github.com/") + " " + version
	}
	flag := "--version"
	if name == "openssl" {
		flag = "version"
	}
	out, err := exec.CommandContext(context.Background(), name, flag).Output()
	if err != nil {
		return name
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	line, _, _ = strings.Cut(line, " (Library:")
	return line
}

// builtWith returns the version of a module that is part of a program.
func builtWith(program, module string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version, nil
		}
	}
	return "", fmt.Errorf("%s was built without %s", program, module)
}
