//go:build linux

// Package bench is a command that compares this program with others in one run: ripgrep, jq, sed, openssl, git,
// tiktoken-go (make bench-peers, docs/SPEED.md), and MCP servers (make bench-wire, docs/WIRE.md). It prints a table; it
// can write the samples behind it in Go's benchmark format, for benchstat.
//
// rows.toml says what is measured: every row is a pair of commands. table.go reads it, run.go runs the sides of a row
// in interleaved rounds, and report.go compares the samples. It runs on Linux, where all peers are available as
// packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// bench is one run of the command.
type bench struct {
	bin, npm, cache, tree, only, record, check, samples string
	small, wire                                         bool
	rounds                                              int
	mix                                                 time.Duration

	table   table
	work    string // temporary directory, removed at the end
	goroot  string
	servers []*mcpServer // measured for the rows of servers; nil: not yet
}

func main() {
	var b bench
	flag.StringVar(&b.bin, "bin", "", "directory of the built programs")
	flag.StringVar(&b.npm, "npm", "", "node_modules with server-filesystem; empty: without it")
	flag.StringVar(&b.cache, "cache", "", "directory for inputs, up to 6 GB (default: in the user's cache directory)")
	flag.StringVar(&b.tree, "tree", "", "a Linux source tree whose ignore rules are upstream's")
	flag.BoolVar(&b.small, "small", false, "inputs a twentieth as large, 3 rounds, Go's source for Linux, no growth")
	flag.BoolVar(&b.wire, "wire", false, "measure the servers of MCP alone, and make the table of docs/WIRE.md")
	flag.IntVar(&b.rounds, "rounds", 0, "rounds, interleaved (default 7, small 3)")
	flag.StringVar(&b.only, "only", "", "regular expression of the rows to measure, by family/name")
	flag.StringVar(&b.samples, "samples", "", "file to write all samples to, in Go's benchmark format")
	flag.StringVar(&b.record, "record", "", "file to write the ratios to")
	flag.StringVar(&b.check, "check", "", "file of recorded ratios: warns if one has doubled in three runs")
	flag.DurationVar(&b.mix, "mix", 0, "only call a server from many clients for so long; print the p99 of small calls")
	flag.Parse()
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context) error {
	at := machine() // before the measurements raise the load average
	if err := b.open(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	if b.mix > 0 {
		return b.mixed(ctx)
	}
	if b.wire {
		servers, err := b.measureServers(ctx, b.rounds, true)
		if err == nil {
			fmt.Print(wireTable(servers, b.rounds, at))
		}
		return err
	}
	only, err := regexp.Compile(b.only)
	if err != nil {
		return err
	}
	results := b.measure(ctx, func(r row) bool { return only.MatchString(r.id()) })
	var growths []growth
	if b.small {
		at += ", small: inputs are a twentieth of what the names say, and Go's source stands for Linux"
	} else {
		growths = b.measureGrowth(ctx, only)
	}
	fmt.Print(speedTable(results, b.rounds, at), growthTable(growths))
	if b.samples != "" {
		err = writeSamples(b.samples, results)
	}
	if b.record != "" {
		err = errors.Join(err, writeRatios(b.record, results))
	}
	if b.check != "" {
		err = errors.Join(err, b.compareWith(ctx, b.check, results))
	}
	// A row that could not be measured, or whose outputs differ, is a failure: a time without equal work means nothing.
	for _, r := range results {
		if r.err != nil && r.skipped() == "" {
			err = errors.Join(err, fmt.Errorf("%s: %w", r.id(), r.err))
		}
	}
	return err
}

// open reads the table and makes the directories.
func (b *bench) open(ctx context.Context) (err error) {
	if b.bin == "" {
		return errors.New("usage: bench -bin DIR [-wire] [-small] [-only REGEX] [-samples FILE] [-record FILE] [-check FILE]")
	}
	if b.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w; name a directory with -cache", err)
		}
		b.cache = filepath.Join(dir, "mcp-funnel-peers")
	}
	for _, dir := range []*string{&b.bin, &b.npm, &b.cache, &b.tree} {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if b.rounds == 0 {
		if b.rounds = 7; b.small {
			b.rounds = 3
		}
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	b.goroot = strings.TrimSpace(string(out))
	if strings.ContainsAny(b.bin+b.cache+b.goroot, " \t\n'\"$`\\") {
		return fmt.Errorf("%q, %q or %q has characters that a shell reads as others", b.bin, b.cache, b.goroot)
	}
	if b.table, err = readTable(b.small); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.cache, "inputs"), 0o700); err != nil {
		return err
	}
	b.work, err = os.MkdirTemp(b.cache, "run-")
	return err
}

// machine describes the environment that affects the figures.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average " + strings.Fields(string(b) + " ?")[0]
	}
	return text
}
