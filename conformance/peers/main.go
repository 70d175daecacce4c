//go:build linux

// Package peers is a command that compares this program with others in one run: ripgrep, jq, sed, openssl, git,
// tiktoken-go (make bench-peers, docs/SPEED.md), and MCP servers (make bench-wire, docs/WIRE.md). Its small form
// reports whether a ratio has doubled. A ratio is our time or memory divided by the peer's.
//
// It runs on Linux, where peak memory can be read and all peers are available as packages.
//
// A row is data: a name, a bar (the maximum ratio or figure), and a setup function that makes the processes to run.
// rows.go lists all of them; harness.go runs them, and the rows of growth and of servers, in interleaved rounds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/marked"
)

func main() {
	ctx := context.Background()
	if len(os.Args) == 4 && os.Args[1] == "job" { // the harness started this process for one job
		if err := job(ctx, os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "peers job:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.bin, "bin", "", "directory of the built programs")
	flag.StringVar(&o.npm, "npm", "", "node_modules with server-filesystem; empty: without it")
	flag.StringVar(&o.cache, "cache", "", "directory for inputs, up to 6 GB (default: in the user's cache directory)")
	flag.StringVar(&o.tree, "tree", "", "a Linux source tree whose ignore rules are upstream's")
	flag.BoolVar(&o.small, "small", false, "inputs a twentieth as large, 3 rounds, Go's source for Linux, no growth")
	flag.BoolVar(&o.wire, "wire", false, "measure the servers of MCP alone, and make the table of docs/WIRE.md")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds, interleaved (default 7, small 3)")
	flag.StringVar(&o.only, "only", "", "regular expression of the rows to measure, by family/name")
	flag.StringVar(&o.page, "page", "", "Markdown file whose table is to be written anew; not with -only")
	flag.StringVar(&o.record, "record", "", "file to write the ratios to")
	flag.StringVar(&o.check, "check", "", "file of recorded ratios: warns if one has doubled in three runs")
	flag.BoolVar(&o.clean, "clean", false, "remove the cache and end")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w; name a directory with -cache", err)
		}
		o.cache = filepath.Join(dir, "mcp-funnel-peers")
	}
	if o.clean {
		return os.RemoveAll(o.cache)
	}
	if o.bin == "" || o.page != "" && (o.only != "" || o.small) {
		return errors.New("usage: peers -bin DIR [-wire] [-small] [-only REGEX | -page FILE] [-record FILE] [-check FILE]")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	at := machine() // before the measurements raise the load average
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	if o.wire {
		servers, err := b.measureServers(ctx, b.rounds, true)
		if err != nil {
			return err
		}
		return o.publish("make bench-wire", wireTable(servers, b.rounds, at))
	}
	var selected []row
	for _, r := range b.rows() {
		if only.MatchString(r.id()) {
			selected = append(selected, r)
		}
	}
	results := b.measure(ctx, selected)
	var growths []growth
	if o.small {
		at += ", small: inputs are a twentieth of what the names say, and Go's source stands for Linux"
	} else {
		growths = b.measureGrowth(ctx, only)
	}
	if err := o.publish("make bench-peers", table(results, growths, b.rounds, at)); err != nil {
		return err
	}
	if o.record != "" {
		if err := writeRatios(o.record, results); err != nil {
			return err
		}
	}
	if o.check != "" {
		if err := b.compareWith(ctx, o.check, results); err != nil {
			return err
		}
	}
	// A row that could not be measured, or whose outputs differ, is a failure: a time without equal work means nothing.
	var failures []error
	for _, r := range results {
		if r.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.id(), r.err))
		}
	}
	return errors.Join(failures...)
}

// publish prints a table, and rewrites it in the page if one is named.
func (o options) publish(command, text string) error {
	fmt.Print(text)
	if o.page == "" {
		return nil
	}
	return marked.Rewrite(o.page, command, text)
}
