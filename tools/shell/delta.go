package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Limits of deltas.
const (
	maxCompared  = 1 << 20 // bytes of an output that is compared line by line
	maxLastRuns  = 1000    // commands whose last output is remembered
	maxDeltaHunk = 3       // changed lines that are quoted
)

// remember notes where the output of a command is stored.
func (s *Shell) remember(j *job, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxLastRuns {
		clear(s.last)
	}
	s.last[j.key] = lastRun{observations.Prefix + id, j.seen.text.sum.Sum64(), j.tests}
}

// testsOf returns the failed tests of a command that has ended with an exit code. A command that failed without a
// failed test did not run its tests.
func (j *job) testsOf(exit int) testsOf {
	f := &j.seen.found.tests
	list := f.failed()
	t := testsOf{map[string]string{}, !f.broken && !f.lost && j.ended() == endedItself && (exit == 0 || len(list) > 0)}
	for _, failed := range list {
		t.failed[failed.key] = failed.name
	}
	return t
}

// delta says in one line what changed since the last stored output of the same command; "" if there is none. same
// reports that nothing did.
func (s *Shell) delta(ctx context.Context, j *job, in tools.Input) (says string, same bool) {
	s.mu.Lock()
	last, known := s.last[j.key]
	s.mu.Unlock()
	if !known || j.cut > 0 {
		return "", false
	}
	equal := j.seen.text.sum.Sum64() == last.sum
	src, err := in.Sources.Open(ctx, last.name)
	switch {
	case err != nil && equal: // the last output may have expired, and must not be named
		return "unchanged since the last run, whose output is not stored any more", false
	case err != nil:
		return "", false
	}
	defer func() { _ = src.Close() }()
	if equal {
		return "unchanged since " + last.name, true
	}
	if tests := describeTests(last.testsOf, j.tests); tests != "" {
		return "since " + last.name + ": " + tests, false
	}
	if src.Size > maxCompared || j.seen.text.over {
		return "changed since " + last.name + "; both are too long to be compared here", false
	}
	before := newCopied()
	b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil {
		return "", false
	}
	before.add(b)
	old, now := before.lines(), j.seen.text.lines()
	if bytes.Equal(old, now) {
		return "unchanged since " + last.name + ", times aside", true
	}
	return describeDelta(last.name, old, now), false
}

// describeTests says which tests were fixed and which fail for the first time, by name; "" if the same tests fail.
func describeTests(before, now testsOf) string {
	fixed, broken := missingIn(before.failed, now.failed), missingIn(now.failed, before.failed)
	if len(fixed)+len(broken) == 0 {
		return ""
	}
	count := func(word string, names []string) string {
		if len(names) == 0 {
			return word + " 0"
		}
		return fmt.Sprintf("%s %d (%s)", word, len(names), listNames(names))
	}
	parts := []string{count("fixed", fixed), count("new", broken)}
	if !now.whole && len(fixed) > 0 {
		parts[0] = count("failed before and have no result now", fixed)
	}
	if !before.whole && len(broken) > 0 {
		parts[1] = count("new, or not run before,", broken)
	}
	if still := len(now.failed) - len(broken); still > 0 {
		parts = append(parts, fmt.Sprintf("still failing %d", still))
	}
	return strings.Join(parts, ", ")
}

// missingIn returns the names of tests that others do not have, in order.
func missingIn(tests, others map[string]string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(tests)) {
		if _, ok := others[key]; !ok {
			names = append(names, tests[key])
		}
	}
	return names
}

// describeDelta counts the lines that differ, quotes some and says how many it does not quote.
func describeDelta(name string, before, after []byte) string {
	var added, removed int
	var quoted []string
	inside := false // behind the names of the two texts
	for line := range strings.Lines(string(diff.Diff("a", before, "b", after))) {
		line = strings.TrimRight(line, "\n")
		switch {
		case !inside:
			inside = strings.HasPrefix(line, "@@ ")
			continue
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		default:
			continue
		}
		if len(quoted) < maxDeltaHunk {
			quoted = append(quoted, content.ClipBytes(line, 100))
		}
	}
	if more := added + removed - len(quoted); more > 0 {
		quoted = append(quoted, fmt.Sprintf("… and %d more", more))
	}
	return fmt.Sprintf("since %s: %s added, %d removed, times aside: %s", name,
		content.Plural(int64(added), "line", "lines"), removed, strings.Join(quoted, " | "))
}
