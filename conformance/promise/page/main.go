// Package page is a command that writes docs/SAFETY.md from the proofs that tests appended to a file
// (make safety).
//
// It does not run the tests.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: page PROOFS MARKDOWN")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(proofs, markdown string) error {
	all, err := read(proofs)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(markdown)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := page(string(old), all)
	if err != nil {
		return err
	}
	fmt.Print(table(all))
	return os.WriteFile(markdown, []byte(text), 0o644)
}

func read(name string) ([]promise.Proof, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []promise.Proof
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var p promise.Proof
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, p)
	}
}

const begin, end = "<!-- begin: make safety -->\n", "<!-- end: make safety -->\n"

// page has the part between the two marks made anew.
func page(old string, all []promise.Proof) (string, error) {
	before, rest, ok := strings.Cut(old, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New("the page has lost its marks " + strconv.Quote(begin) + " and " + strconv.Quote(end))
	}
	return before + begin + table(all) + end + after, nil
}

// table has a row a promise; several proofs of one are added up.
func table(all []promise.Proof) string {
	var b strings.Builder
	size := promise.Size("the modest size of every run", "full size")
	fmt.Fprintf(&b, "Run at %s, %s, %s/%s, %d cores.\n\n", size, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	b.WriteString("| | promise | cases | failures | control's failures | figures | proved by |\n|---|---|---:|---:|---:|---|---|\n")
	ids := make([]string, 0, len(promise.All))
	for id := range promise.All {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	for _, id := range ids {
		var sum promise.Proof
		var figures, tests []string
		for _, p := range all {
			if p.Promise != id {
				continue
			}
			sum.Cases += p.Cases
			sum.Failures += p.Failures
			sum.Control += p.Control
			if p.Figures != "" {
				figures = append(figures, p.Figures)
			}
			tests = append(tests, "`"+p.Test+"`")
		}
		if len(tests) == 0 {
			fmt.Fprintf(&b, "| %s | %s | – | – | – | not proved by this run | |\n", id, promise.All[id])
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s | %s |\n", id, promise.All[id], sum.Cases, sum.Failures, sum.Control,
			strings.Join(figures, "; "), strings.Join(tests, ", "))
	}
	return b.String()
}

func number(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
