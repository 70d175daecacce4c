// Package page is a command that prints the table of docs/SAFETY.md, of the proofs that tests appended to a file (make
// safety).
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

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: page PROOFS EVENTS [PROMISE …]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// run prints the table of the proofs and of the events of go test -json, which also name tests that ended before they
// recorded a proof. The table has the named promises, or all if none is named.
func run(proofs, events string, ids []string) error {
	var all []promise.Proof
	err := eachValue(proofs, func(p promise.Proof) error {
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
	for _, id := range ids {
		if promise.All[id] == "" {
			return fmt.Errorf("%s: there is no such promise", id)
		}
	}
	rows, held := table(all, tests, ids)
	fmt.Print(rows)
	if !held {
		return errors.New("a promise was not held, or not wholly proved at full size")
	}
	return nil
}

// eachValue decodes the JSON values of a file, one after the other, and calls use with each.
func eachValue[T any](name string, use func(T) error) error {
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
		if err := use(one); err != nil {
			return err
		}
	}
}

// proofName matches the name of a test that proves a promise; the group is the promise's ID.
var proofName = regexp.MustCompile(`^Test(S[0-9]+)[^0-9]`)

// outcome is how a test of a promise ended: pass, fail or skip.
type outcome struct{ test, action string }

// outcomes reads the events of go test -json and returns the outcomes by promise. It writes the output of failing
// tests, and of packages that do not build, to out.
func outcomes(name string, out io.Writer) (map[string][]outcome, error) {
	all, output := map[string][]outcome{}, map[string]string{}
	return all, eachValue(name, func(e struct{ Action, Package, ImportPath, Test, Output string }) (err error) {
		test, subtest, _ := strings.Cut(e.Test, "/")
		key := e.Package + e.ImportPath + " " + test
		switch e.Action {
		case "output", "build-output":
			output[key] += e.Output
		case "pass", "fail", "skip", "build-fail":
			if subtest != "" {
				return nil
			}
			if m := proofName.FindStringSubmatch(test); m != nil {
				all[m[1]] = append(all[m[1]], outcome{test, e.Action})
			}
			if strings.HasSuffix(e.Action, "fail") && output[key] != "" {
				_, err = fmt.Fprintf(out, "== %s\n%s", key, output[key])
			}
			delete(output, key)
		}
		return err
	})
}

// The states of a promise other than "yes".
const (
	notProved = "not proved" // no test recorded a proof
	inPart    = "in part"    // a test was skipped, or recorded no proof
	butFor    = "but for"    // every test recorded a proof, but could not check something on this machine
	broken    = "**no**"
)

// table returns a row per promise, with the sums of its proofs, and a last line that counts the states. held is false
// if a promise is broken, and at full size also if one is not proved or proved in part. A check that was impossible on
// this machine is named in the row and in the last line, and does not make held false. Without ids, all promises have a
// row.
func table(all []promise.Proof, tests map[string][]outcome, ids []string) (rows string, held bool) {
	var b strings.Builder
	size := promise.Size("the modest size of every run", "full size")
	fmt.Fprintf(&b, "Run at %s, %s, %s/%s, %d cores.\n\n", size, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU())
	b.WriteString("| | promise | held | cases | failures | control's failures | figures | proved by |\n" +
		"|---|---|---|---:|---:|---:|---|---|\n")
	if len(ids) == 0 {
		ids = slices.Collect(maps.Keys(promise.All))
	}
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	byState := map[string][]string{}
	unchecked := ""
	for _, id := range ids {
		r := rowOf(id, all, tests[id])
		byState[r.state] = append(byState[r.state], id)
		if r.state == butFor {
			unchecked += " " + id + " held but for: " + strings.Join(r.unchecked, "; ") + "."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", id, promise.All[id], r.state, r.counts,
			strings.Join(r.figures, "; "), strings.Join(r.tests, ", "))
	}
	list := func(state, format string) {
		if byState[state] != nil {
			fmt.Fprintf(&b, format, strings.Join(byState[state], ", "))
		}
	}
	fmt.Fprintf(&b, "\n%d of %d promises held.", len(byState["yes"])+len(byState[butFor]), len(ids))
	list(notProved, " Not proved by this run: %s.")
	list(inPart, " In part: %s.")
	b.WriteString(unchecked)
	list(broken, " **Not held: %s.**")
	b.WriteString("\n")
	complete := byState[notProved] == nil && byState[inPart] == nil
	return b.String(), byState[broken] == nil && (complete || !promise.Full())
}

type row struct {
	state, counts             string
	figures, tests, unchecked []string
}

// rowOf adds up the proofs of a promise. The row names every test of the promise, with or without a proof.
func rowOf(id string, all []promise.Proof, tests []outcome) row {
	escape := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	r := row{state: notProved, counts: "– | – | –"}
	failed, incomplete := false, false
	var cases, failures, controls int
	proved := map[string]bool{}
	for _, p := range all {
		if p.Promise != id {
			continue
		}
		cases, failures, controls = cases+p.Cases, failures+p.Failures, controls+p.Control
		r.counts = fmt.Sprintf("%d | %d | %d", cases, failures, controls)
		if p.Figures != "" {
			r.figures = append(r.figures, escape(p.Figures))
		}
		remark := ""
		switch {
		case p.Failures > 0:
			remark = " (failed)"
		case p.Cases == 0:
			remark = " (tried nothing)"
		case p.Control == 0:
			remark = " (its control did not fail)"
		}
		failed = failed || remark != ""
		if p.Unchecked != "" {
			remark += " (but for: " + escape(p.Unchecked) + ")"
			r.unchecked = append(r.unchecked, escape(p.Unchecked))
		}
		proved[p.Test] = true
		r.tests = append(r.tests, "`"+p.Test+"`"+remark)
	}
	for _, t := range tests {
		remark := map[string]string{"fail": " (the test failed)", "skip": " (skipped)"}[t.action]
		if remark == "" && !proved[t.test] {
			remark = " (recorded no proof)"
		}
		if remark != "" {
			r.tests = append(r.tests, "`"+t.test+"`"+remark)
			failed = failed || t.action == "fail"
			incomplete = true
		}
	}
	switch {
	case failed:
		r.state = broken
	case len(proved) == 0:
	case incomplete:
		r.state = inPart
	case len(r.unchecked) > 0:
		r.state = butFor
	default:
		r.state = "yes"
	}
	return r
}

func number(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}
