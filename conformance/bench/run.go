//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/sys/unix"
)

// side is one side of a row, with its samples: in seconds, or in the unit that the row's commands print.
type side struct {
	name    string
	run     func(ctx context.Context, first bool) error
	samples []float64
	peak    float64 // peak memory of its largest process, in bytes; of the first run only
	note    string  // printed by the commands
	output  string  // path of the last output
	end     func()
}

// result holds the measurements of a row.
type result struct {
	row
	ours, peer, served side
	version            string // of the peer
	err                error
}

// measure measures the selected rows. If one fails, the others are still measured.
func (b *bench) measure(ctx context.Context, selected func(row) bool) (results []result) {
	for _, v := range b.table.rows {
		if !selected(described(v)) {
			continue
		}
		began := time.Now()
		got := b.measureRow(ctx, v)
		text := strings.ReplaceAll(strings.Join(got.cells()[1:8], ", "), "*", "")
		fmt.Fprintf(os.Stderr, "%s: %s (%.0f s)\n", got.id(), text, time.Since(began).Seconds())
		results = append(results, got)
	}
	return results
}

// measureRow bounds the rounds of a row in time. This keeps the full form within half an hour and the small form within
// two minutes even if our side is slow. At full size a row with a bar gets all its rounds.
func (b *bench) measureRow(ctx context.Context, v values) (got result) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	got.row = described(v)
	if got.version, got.err = b.versionOf(ctx, got.Beside); got.err != nil {
		return got
	}
	if got.Wire != nil {
		got.err = b.onWire(ctx, &got)
		return got
	}
	if got.row, got.err = b.expand(ctx, v); got.err == nil {
		got.err = b.runPair(ctx, &got, cmp.Or(got.Rounds, b.rounds), func(round int, since time.Duration) bool {
			if b.small {
				return got.Rounds == 0 && round >= 2 && since > 2*time.Second
			}
			return got.free() && round >= 3 && since > 30*time.Second
		})
	}
	return got
}

// runPair runs the sides of a row in turns, until enough returns true before a round. The first round, which is not
// timed, warms up, measures memory and compares the outputs.
func (b *bench) runPair(ctx context.Context, r *result, rounds int, enough func(int, time.Duration) bool) error {
	sides := b.sides(r)
	for _, s := range sides {
		defer s.end()
		if err := s.run(ctx, true); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, s := range sides {
		if s == &r.peer || r.Same == "" {
			continue
		}
		if _, err := b.script(ctx, r.dir(), r.Same, "OURS="+s.output, "PEER="+r.peer.output); err != nil {
			return fmt.Errorf("%s and the peer did not do the same work: %w: %s, %s", s.name, err, head(s.output),
				head(r.peer.output))
		}
	}
	if _, err := b.script(ctx, b.work, r.After); err != nil {
		return err
	}
	began := time.Now()
	return interleave(rounds, len(sides), func(i, round int) (bool, error) {
		if i == round%len(sides) && enough(round, time.Since(began)) {
			return true, nil
		}
		if err := sides[i].run(ctx, false); err != nil {
			return false, fmt.Errorf("%s, round %d: %w", sides[i].name, round+1, err)
		}
		_, err := b.script(ctx, b.work, r.After)
		return false, err
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

// dir returns the directory of the input, in which the commands run.
func (r row) dir() string {
	if info, err := os.Stat(r.In); err == nil && info.IsDir() {
		return r.In
	}
	return filepath.Dir(r.In)
}

// sides returns the sides of a row that are measured: ours and, where there is one, the peer and a server of ours.
func (b *bench) sides(r *result) []*side {
	dir := r.dir()
	funnel, _ := b.render("{{funnel}}", nil) // it has no errors
	server := cmp.Or(r.Server, funnel+" "+r.Flags)
	r.ours, r.peer, r.served = side{name: "ours"}, side{name: "the peer"}, side{name: "ours, served"}
	sides := []*side{&r.ours}
	switch {
	case r.Server != "":
		b.serves(&r.ours, r.row, dir, server)
	case r.Call != "":
		b.starts(&r.ours, r.row, dir, server+" call "+r.Call+" "+quoted(r.Args))
	default:
		b.starts(&r.ours, r.row, dir, r.Ours)
	}
	if r.PeerServer != "" {
		b.serves(&r.peer, r.row, dir, r.PeerServer)
		sides = append(sides, &r.peer)
	} else if r.Peer != "" {
		b.starts(&r.peer, r.row, dir, r.Peer)
		sides = append(sides, &r.peer)
	}
	if r.Server == "" && r.Call != "" && r.Served {
		b.serves(&r.served, r.row, dir, server)
		sides = append(sides, &r.served)
	}
	return sides
}

// starts makes a side that starts new processes for every run, so its time includes their start.
func (b *bench) starts(s *side, r row, dir, line string) {
	s.output, s.end = filepath.Join(b.work, s.name), func() {}
	s.run = func(ctx context.Context, first bool) error {
		words, peak := b.words(r, line), s.output+" peak"
		if first { // GNU time is small: the kernel counts the memory of a parent at the fork as its child's
			words = append([]string{"time", "--quiet", "--format", "%M", "--output", peak}, words...)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, environment()
		var errs bytes.Buffer
		cmd.Stderr = &errs
		// Not /dev/null: grep stops at its first match if it sees that nobody reads its output.
		out, err := os.Create(s.output)
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }()
		cmd.Stdout = out
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %.300s", line, err, errs.String())
		}
		took := time.Since(began).Seconds()
		if first {
			text, err := os.ReadFile(peak)
			kilobytes, e := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			s.peak = kilobytes * 1024
			return errors.Join(err, e)
		}
		if r.Timed {
			if took, s.note, err = printed(s.output, r.Unit); err != nil {
				return err
			}
		}
		s.samples = append(s.samples, took)
		return nil
	}
}

// words returns the command of a shell line: on the first core that this process may use, if the row wants one.
func (b *bench) words(r row, line string) []string {
	words := []string{"sh", "-ec", line}
	if r.Cores == 1 {
		var set unix.CPUSet
		_ = unix.SchedGetaffinity(0, &set) // then the set is empty, and taskset fails
		core := 0
		for core < 1024 && !set.IsSet(core) {
			core++
		}
		words = append([]string{"taskset", "-c", strconv.Itoa(core)}, words...)
	}
	return words
}

// printed reads the least value that benchmarks have printed, in seconds or a row's unit, and the note before them.
func printed(path, unit string) (least float64, note string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, "", err
	}
	err = fmt.Errorf("no benchmark: %s", head(path))
	for r := benchfmt.NewReader(bytes.NewReader(text), path); r.Scan(); {
		one, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		value, ok := one.Value(unit)
		if !ok {
			value, ok = one.Value("sec/op")
		}
		if ok && (err != nil || value < least) {
			least, note, err = value, one.GetConfig("note"), nil
		}
	}
	return least, note, err
}

// serves makes a side that calls a server over stdio. The server starts before the first timed run and keeps running,
// so the time includes the protocol but not the start.
func (b *bench) serves(s *side, r row, dir, line string) {
	var server *server
	s.output, s.end = filepath.Join(b.work, s.name), func() { server.end() }
	method, params := "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, r.Call, r.Args)
	if r.Method != "" {
		method, params = r.Method, r.Args
	}
	s.run = func(ctx context.Context, first bool) (err error) {
		if server == nil {
			if server, _, err = startServer(ctx, dir, "", b.words(r, "exec "+line)); err != nil {
				return err
			}
		}
		began := time.Now()
		answer, err := server.call(ctx, method, params)
		if err != nil {
			return err
		}
		var text struct{ Content []struct{ Text string } }
		err = json.Unmarshal(answer, &text)
		took := time.Since(began).Seconds()
		if !first {
			s.samples = append(s.samples, took)
			return err
		}
		if r.Server == "" { // compared as if a process had printed it
			answer = nil
			for _, c := range text.Content {
				answer = append(append(answer, c.Text...), '\n')
			}
		}
		return errors.Join(err, os.WriteFile(s.output, answer, 0o600))
	}
}

// head returns the beginning of a file, for an error.
func head(path string) string {
	text, _ := os.ReadFile(path)
	return fmt.Sprintf("%.300q", text)
}

// versionOf returns the first line that a program prints about its version, or the version of a module of ours. The
// error is errSkipped if the program is not installed.
func (b *bench) versionOf(ctx context.Context, name string) (string, error) {
	if strings.Contains(name, "/") { // our modules are those of peers.test
		version, err := b.script(ctx, b.work, "module "+quoted(b.bin+"/mcp-funnel")+" "+name)
		return strings.TrimPrefix(name, "github.com/") + " " + strings.TrimSpace(version), err
	}
	if name == "" {
		return "", nil
	}
	if _, err := exec.LookPath(name); err != nil {
		return "", errSkipped{name + " is not installed"}
	}
	out, err := b.script(ctx, b.work, name+" --version || "+name+" version")
	if err != nil {
		return name, nil //nolint:nilerr // it says none, but runs
	}
	line, _, _ := strings.Cut(out, "\n")
	line, _, _ = strings.Cut(line, " (Library:")
	return line, nil
}
