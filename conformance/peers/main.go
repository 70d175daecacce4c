//go:build linux

// Package peers is a command that compares this program with others in one run: ripgrep, grep, jq, sed, openssl, git,
// tiktoken-go (make bench-peers, docs/SPEED.md), and MCP servers (make bench-wire, docs/WIRE.md). Its small form
// reports whether a ratio has doubled. A ratio is our time or memory divided by the peer's.
//
// It builds and installs nothing (the scripts do), and no test depends on its timing. It runs on Linux, where peak
// memory can be read and all peers are available as packages.
//
// A row is data: a name, a bar (the maximum ratio or figure), and a setup function that makes two contestants. Each
// family of rows has a file (query.go, tree.go, write.go, tokens.go, wire.go), and families lists all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/conformance/marked"
)

func main() {
	ctx := context.Background()
	if len(os.Args) > 2 && os.Args[1] == "job" { // the harness started this process for one job
		if err := job(ctx, os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "peers job:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	var only string
	flag.StringVar(&o.bin, "bin", "", "directory of the built programs")
	flag.StringVar(&o.npm, "npm", "", "node_modules with server-filesystem; empty: without it")
	flag.StringVar(
		&o.cache, "cache", "",
		"directory for inputs (default: mcp-funnel-peers in the user's cache directory); the full form takes up to 6 GB",
	)
	flag.StringVar(
		&o.tree, "tree", "",
		"a Linux source tree whose ignore rules are upstream's; empty: unpacked from Debian's package into the cache",
	)
	flag.BoolVar(
		&o.small, "small", false, "inputs a twentieth as large, 3 rounds, Go's source in place of Linux, no growth",
	)
	flag.BoolVar(&o.wire, "wire", false, "measure the servers of MCP alone, and make the table of docs/WIRE.md")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds, interleaved (default 7, small 3)")
	flag.StringVar(&only, "only", "", "regular expression of the rows to measure, by family/name")
	flag.StringVar(&o.page, "page", "", "Markdown file whose table is to be written anew; not with -only")
	flag.StringVar(&o.record, "record", "", "file to write the ratios to")
	flag.StringVar(&o.check, "check", "", "file of recorded ratios: warns if one has doubled in three runs")
	flag.BoolVar(&o.clean, "clean", false, "remove the cache and end")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(only); err == nil {
		o.all = only == ""
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type options struct {
	bin, npm, cache, tree, page, record, check string
	small, clean, all, wire                    bool
	rounds                                     int
	only                                       *regexp.Regexp
}

// families returns all rows, in the order of the table.
func families(b *bench) []row {
	return slices.Concat(
		latencyRows(b), tokenRows(b), grepRows(b), treeRows(b), jqRows(b), keepRows(b), sliceRows(b), wireRows(b),
	)
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
	if o.bin == "" || o.page != "" && (!o.all || o.small) {
		return errors.New("usage: peers -bin DIR [-wire] [-small] [-only REGEX | -page FILE] [-record FILE] [-check FILE]")
	}
	at := machine() // before the measurements raise the load average
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.wire {
		servers, err := b.measureServers(ctx, b.rounds, true)
		if err != nil {
			return err
		}
		return o.publish("make bench-wire", wireTable(servers, b.rounds, at))
	}
	if o.small {
		at += ", small: inputs are a twentieth of what the names say, and Go's source stands for Linux"
	}
	results := b.measureAll(ctx, families(b))
	var growths []growth
	if !o.small {
		growths = b.measureGrowth(ctx)
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
		if err := b.compare(ctx, o.check, results); err != nil {
			return err
		}
	}
	// A row that could not be measured, or whose answers differ, is a failure: a time without equal work means
	// nothing.
	var failed []error
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.id(), r.err))
		}
	}
	return errors.Join(failed...)
}

// publish prints a table, and rewrites it in the page if one is named.
func (o options) publish(command, text string) error {
	fmt.Print(text)
	if o.page == "" {
		return nil
	}
	return marked.Rewrite(o.page, command, text)
}
