// Package wirebench is a command that measures servers of MCP side by side in one run (make bench-wire):
// this one and others, all asked by the same few lines of code, and writes docs/WIRE.md.
//
// It builds nothing (scripts/bench-wire does), and holds nobody to a figure: machines differ, ratios say more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/conformance/marked"
)

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "", "directory of the built programs")
	flag.StringVar(&o.npm, "npm", "", "node_modules with server-filesystem; empty: without it")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds, interleaved")
	flag.StringVar(&o.page, "page", "", "Markdown file whose table is to be written anew")
	flag.StringVar(&o.figures, "figures", "", "file to write the medians to, as JSON")
	flag.StringVar(&o.only, "only", "", "regular expression of the servers to measure; without a table")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "wirebench:", err)
		os.Exit(1)
	}
}

type options struct {
	bin, npm, page, figures, only string
	rounds                        int
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.bin == "" || o.rounds < 1 {
		return errors.New("usage: wirebench -bin DIR [-npm node_modules] [-rounds N] [-page FILE]")
	}
	for _, dir := range []*string{&o.bin, &o.npm} { // the servers run elsewhere
		if abs, err := filepath.Abs(*dir); err == nil && *dir != "" {
			*dir = abs
		}
	}
	work, err := os.MkdirTemp("", "wirebench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	files, err := workspace(work)
	if err != nil {
		return err
	}
	at := machine() // before this adds to the load
	servers, err := contestants(ctx, o, files)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	servers = slices.DeleteFunc(servers, func(s *contestant) bool { return !wanted.MatchString(s.name) })
	for round := range o.rounds {
		for i := range servers {
			s := servers[(i+round)%len(servers)] // nobody is always first
			if err := s.measure(ctx); err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
	}
	if o.figures != "" {
		if err := writeFigures(o.figures, servers); err != nil {
			return err
		}
	}
	if o.only != "" {
		return nil
	}
	table := tableOf(servers, o.rounds, at)
	if _, err := io.WriteString(out, table); err != nil || o.page == "" {
		return err
	}
	return marked.Rewrite(o.page, "make bench-wire", table)
}

// files of the workspace that all servers read from.
type files struct{ root, small, big string }

// bigSize is the text of the large answer, in bytes.
const bigSize = 10 << 20

func workspace(dir string) (files, error) {
	root := filepath.Join(dir, "root")
	f := files{root: root, small: filepath.Join(root, "small.txt"), big: filepath.Join(root, "big.txt")}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return f, err
	}
	line := "2026-11-20T12:00:00.000Z INFO request served method=GET path=/v1/items status=200 took=12ms\n"
	if err := os.WriteFile(f.small, []byte(strings.Repeat(line, 10)), 0o600); err != nil {
		return f, err
	}
	return f, os.WriteFile(f.big, []byte(strings.Repeat(line, bigSize/len(line)+1)[:bigSize]), 0o600)
}

// machine names what the figures depend on. Where much else is running they say little, and their ratios a bit more.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average " + strings.Fields(string(b) + " ?")[0]
	}
	return text
}
