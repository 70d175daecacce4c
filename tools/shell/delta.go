package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	s.last[j.key] = lastRun{observations.Prefix + id, j.seen.text.sum.Sum64()}
}

// delta says in one line what changed since the last stored output of the same command; "" if there is none.
func (s *Shell) delta(ctx context.Context, j *job, in tools.Input) string {
	s.mu.Lock()
	last, known := s.last[j.key]
	s.mu.Unlock()
	switch {
	case !known:
		return ""
	case j.seen.text.sum.Sum64() == last.sum:
		return "unchanged since " + last.name
	}
	src, err := in.Sources.Open(ctx, last.name)
	if err != nil {
		return "" // it has expired
	}
	defer func() { _ = src.Close() }()
	if src.Size > maxCompared || j.seen.text.over {
		return "changed since " + last.name + "; both are too long to be compared here"
	}
	before := newCopied()
	b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil {
		return ""
	}
	before.add(b)
	old, now := before.lines(), j.seen.text.lines()
	if bytes.Equal(old, now) {
		return "unchanged since " + last.name + ", times aside"
	}
	return describeDelta(last.name, old, now)
}

// describeDelta counts and quotes the lines that differ.
func describeDelta(name string, before, after []byte) string {
	var added, removed int
	var quoted []string
	for line := range strings.Lines(string(diff.Diff("a", before, "b", after))) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
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
	return fmt.Sprintf("since %s: %s added, %d removed, times aside: %s", name,
		content.Plural(int64(added), "line", "lines"), removed, strings.Join(quoted, " | "))
}
