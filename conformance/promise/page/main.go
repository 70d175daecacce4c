// Package page is a command that writes docs/SAFETY.md from the proofs that tests appended to a file
// (make safety).
//
// It does not run the tests.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/conformance/marked"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: page PROOFS EVENTS MARKDOWN")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// run writes the page from the proofs, and from what go test -json said of the tests: a test that ended before its
// proof was recorded is told by that alone.
func run(proofs, events, markdown string) error {
	var all []promise.Proof
	err := each(proofs, func(p promise.Proof) error {
		all = append(all, p)
		return nil
	})
	if err != nil {
		return err
	}
	tests, err := outcomes(events, os.Stderr)
	if err != nil {
		return err
	}
	rows, held := table(all, tests)
	fmt.Print(rows)
	if err := marked.Rewrite(markdown, "make safety", rows); err != nil {
		return err
	}
	if !held {
		return errors.New("a promise was not held, or not wholly proved at full size")
	}
	return nil
}

// each decodes the values of a file of JSON, one after the other.
func each[T any](name string, take func(T) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for d := json.NewDecoder(f); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := take(one); err != nil {
			return err
		}
	}
}

// proofName is what the test of a promise is called; the number is the promise's.
var proofName = regexp.MustCompile(`^Test(S[0-9]+)[^0-9]`)

// outcome is how a test of a promise ended: pass, fail or skip.
type outcome struct{ test, action string }

// outcomes reads the events of go test -json, by promise. What failing tests printed, and packages that could not be
// tested, is written to out.
func outcomes(name string, out io.Writer) (map[string][]outcome, error) {
	all, printed := map[string][]outcome{}, map[string]string{}
	return all, each(name, func(e struct{ Action, Package, ImportPath, Test, Output string }) (err error) {
		top, below, _ := strings.Cut(e.Test, "/")
		key := e.Package + e.ImportPath + " " + top
		switch e.Action {
		case "output", "build-output":
			printed[key] += e.Output
		case "pass", "fail", "skip", "build-fail":
			if below != "" {
				return nil
			}
			if m := proofName.FindStringSubmatch(top); m != nil {
				all[m[1]] = append(all[m[1]], outcome{top, e.Action})
			}
			if strings.HasSuffix(e.Action, "fail") && printed[key] != "" {
				_, err = fmt.Fprintf(out, "== %s\n%s", key, printed[key])
			}
			delete(printed, key)
		}
		return err
	})
}

// table has a row a promise; several proofs of one are added up. held is false where a promise was tried and not
// held, and at full size also where it was proved in part or not at all. What could not be looked at where the run
// was made is told in its row and in the last line, and no fault of the run.
func table(all []promise.Proof, tests map[string][]outcome) (rows string, held bool) {
	var b strings.Builder
	size := promise.Size("the modest size of every run", "full size")
	fmt.Fprintf(
		&b, "Run at %s, %s, %s/%s, %d cores.\n\n", size, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
	)
	b.WriteString(
		"| | promise | held | cases | failures | control's failures | figures | proved by |\n|---|---|---|---:|---:|---:|---|---|\n",
	)
	ids := slices.SortedFunc(maps.Keys(promise.All), func(a, b string) int { return number(a) - number(b) })
	by := map[string][]string{} // promises by whether they were held
	but := ""
	for _, id := range ids {
		r := rowOf(id, all, tests[id])
		by[r.held] = append(by[r.held], id)
		if r.held == butFor {
			but += " " + id + " held but for: " + strings.Join(r.unchecked, "; ") + "."
		}
		fmt.Fprintf(
			&b, "| %s | %s | %s | %s | %s | %s |\n", id, promise.All[id], r.held, r.counts, strings.Join(r.figures, "; "),
			strings.Join(r.tests, ", "),
		)
	}
	named := func(held, format string) {
		if by[held] != nil {
			fmt.Fprintf(&b, format, strings.Join(by[held], ", "))
		}
	}
	fmt.Fprintf(&b, "\n%d of %d promises held.", len(by["yes"])+len(by[butFor]), len(ids))
	named(notProved, " Not proved by this run: %s.")
	named(inPart, " In part: %s.")
	b.WriteString(but)
	named(broken, " **Not held: %s.**")
	b.WriteString("\n")
	held = by[broken] == nil && (!promise.Full() || by[notProved] == nil && by[inPart] == nil)
	return b.String(), held
}

// What a promise is that was not held, or not wholly.
const (
	notProved = "not proved" // by any proof
	inPart    = "in part"    // by some of its tests; another was skipped, or recorded no proof
	butFor    = "but for"    // by all of its tests, which could not look at something here
	broken    = "**no**"
)

type row struct {
	held, counts              string
	figures, tests, unchecked []string
}

// rowOf adds up the proofs of a promise, and sees to it that each of its tests stands there, proof or not.
func rowOf(id string, all []promise.Proof, tests []outcome) row {
	var sum promise.Proof
	r := row{held: notProved, counts: "– | – | –"}
	told := map[string]bool{}
	lacks := false // something that was to be proved
	for _, p := range all {
		if p.Promise != id {
			continue
		}
		sum.Cases += p.Cases
		sum.Failures += p.Failures
		sum.Control += p.Control
		if p.Figures != "" {
			r.figures = append(r.figures, strings.ReplaceAll(p.Figures, "|", "\\|"))
		}
		name := "`" + p.Test + "`"
		switch {
		case p.Failures > 0:
			name += " (failed)"
		case p.Cases == 0:
			name += " (tried nothing)"
		case p.Control == 0:
			name += " (its control did not fail)"
		}
		if name[len(name)-1] == ')' {
			r.held = broken
		}
		if p.Unchecked != "" {
			what := strings.ReplaceAll(p.Unchecked, "|", "\\|")
			name += " (but for: " + what + ")"
			r.unchecked = append(r.unchecked, what)
		}
		told[p.Test] = true
		r.tests = append(r.tests, name)
	}
	if len(told) > 0 {
		r.counts = fmt.Sprintf("%d | %d | %d", sum.Cases, sum.Failures, sum.Control)
		if r.held == notProved {
			r.held = "yes"
		}
	}
	for _, t := range tests {
		switch {
		case t.action == "fail":
			r.held = broken
			r.tests = append(r.tests, "`"+t.test+"` (the test failed)")
		case t.action == "skip":
			lacks = true
			r.tests = append(r.tests, "`"+t.test+"` (skipped)")
		case !told[t.test]:
			lacks = true
			r.tests = append(r.tests, "`"+t.test+"` (recorded no proof)")
		}
	}
	switch {
	case r.held != "yes":
	case lacks:
		r.held = inPart
	case len(r.unchecked) > 0:
		r.held = butFor
	}
	return r
}

func number(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
