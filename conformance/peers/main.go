//go:build linux

// Package peers is a command that measures this program beside others in one run (make bench-peers): ripgrep, grep, jq, sed, cat,
// git, tiktoken-go and servers of MCP. It writes docs/SPEED.md, and in its small form says whether a ratio has doubled.
//
// It builds and installs nothing (scripts/bench-peers does), and no test waits for a clock of it. It runs on Linux, where
// memory peaks can be read and all peers are one package away.
//
// A row is data: a name, a bar, and a set-up that makes two contestants. There is one file a family of rows (grep.go, tree.go,
// jq.go, write.go, tokens.go, wire.go) and one list of families.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/conformance/marked"
)

func main() {
	ctx := context.Background()
	if len(os.Args) > 2 && os.Args[1] == "job" { // the harness runs itself as a process of its own
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
	flag.StringVar(&o.cache, "cache", "", "directory for inputs (default: mcp-funnel-peers in the user's cache directory); the full form takes up to 6 GB")
	flag.StringVar(&o.tree, "tree", "", "a Linux source tree whose ignore rules are upstream's; empty: unpacked from Debian's package into the cache")
	flag.BoolVar(&o.small, "small", false, "inputs a twentieth as large, 3 rounds, Go's source in place of Linux, no growth")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds, interleaved (default 7, small 3)")
	flag.StringVar(&only, "only", "", "regular expression of the rows to measure, by family/name")
	flag.StringVar(&o.page, "page", "", "Markdown file whose table is to be written anew; not with -only")
	flag.StringVar(&o.record, "record", "", "file to write the ratios to")
	flag.StringVar(&o.check, "check", "", "file of recorded ratios: fails where one has doubled, three runs in a row")
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
	small, clean, all                          bool
	rounds                                     int
	only                                       *regexp.Regexp
}

// families are all rows, in the order of the table.
func families(b *bench) []row {
	var all []row
	for _, f := range []func(*bench) []row{latencyRows, tokenRows, grepRows, treeRows, jqRows, keepRows, sliceRows, wireRows} {
		all = append(all, f(b)...)
	}
	return all
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
		return errors.New("usage: peers -bin DIR [-small] [-only REGEX | -page FILE] [-record FILE] [-check FILE]")
	}
	at := machine() // before this adds to the load
	if o.small {
		at += ", small: inputs are a twentieth of what the names say, and Go's source stands for Linux"
	}
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	results := b.measureAll(ctx, families(b))
	var growths []growth
	if !o.small {
		growths = b.measureGrowth(ctx)
	}
	text := table(results, growths, b.rounds, at)
	fmt.Print(text)
	if o.record != "" {
		if err := writeRatios(o.record, results); err != nil {
			return err
		}
	}
	if o.page != "" {
		if err := marked.Rewrite(o.page, "make bench-peers", text); err != nil {
			return err
		}
	}
	if o.check != "" {
		if err := b.compare(ctx, o.check, results); err != nil {
			return err
		}
	}
	return failures(results)
}

// failures are rows that could not be measured, or whose answers differ: a figure without its work is worth nothing.
func failures(results []result) error {
	var failed []string
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, r.id()+": "+r.err.Error())
		}
	}
	if failed == nil {
		return nil
	}
	return errors.New(strings.Join(failed, "\n"))
}
