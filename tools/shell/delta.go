package shell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// lastKey names a command of an owner.
type lastKey struct{ owner, cwd, command string }

// lastRun is the last stored output of a command.
type lastRun struct {
	name string // obs:ID
	sum  [sha256.Size]byte
}

// Limits of deltas.
const (
	maxCompared  = 1 << 20 // bytes of an output that is compared line by line
	maxLastRuns  = 1000    // commands whose last output is remembered
	maxDeltaHunk = 3       // changed lines that are quoted
)

// copied is the output of a command, with times and durations replaced, as far as it is compared.
type copied struct {
	sum  hash.Hash
	line []byte // the last line, which has not ended
	text []byte // nil: over maxCompared
	over bool
}

// changing matches what differs between two runs of the same program: times of day, dates, durations, addresses.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(\.\d+)?\b|` +
	`\b\d+(\.\d+)?\s?(ns|µs|us|ms|s|sec|secs|seconds|m|min|minutes)\b|0x[0-9a-f]{6,}`)

func (c *copied) add(b []byte) {
	if c.sum == nil {
		c.sum = sha256.New()
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if len(c.line)+len(b) <= chunkSize { // of a longer line the rest is compared as it is
				c.line = append(c.line, b...)
			} else {
				c.write(append(c.line, b...))
				c.line = nil
			}
			return
		}
		line := b[:i+1]
		if len(c.line) > 0 {
			line = append(c.line, line...)
		}
		c.write(line)
		c.line, b = c.line[:0], b[i+1:]
	}
}

func (c *copied) write(line []byte) {
	if bytes.ContainsAny(line, "0123456789") {
		line = changing.ReplaceAll(line, []byte("#"))
	}
	_, _ = c.sum.Write(line)
	if c.over = c.over || len(c.text)+len(line) > maxCompared; !c.over {
		c.text = append(c.text, line...)
	} else {
		c.text = nil
	}
}

// close ends the last line, and returns the sum of all.
func (c *copied) close() (sum [sha256.Size]byte) {
	if c.sum == nil {
		return sum
	}
	if len(c.line) > 0 {
		c.write(c.line)
		c.line = nil
	}
	copy(sum[:], c.sum.Sum(nil))
	return sum
}

// remember notes where the output of a command is stored.
func (s *Shell) remember(j *job, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxLastRuns {
		clear(s.last)
	}
	s.last[j.key] = lastRun{observations.Prefix + id, j.seen.text.close()}
}

// delta says in one line what changed since the last stored output of the same command; "" if there is none.
func (s *Shell) delta(ctx context.Context, j *job, in tools.Input) string {
	s.mu.Lock()
	last, known := s.last[j.key]
	s.mu.Unlock()
	sum := j.seen.text.close()
	if !known {
		return ""
	}
	if sum == last.sum {
		return "unchanged since " + last.name + " but for times"
	}
	src, err := in.Sources.Open(ctx, last.name)
	if err != nil {
		return "" // it has expired
	}
	defer func() { _ = src.Close() }()
	if src.Size > maxCompared || j.seen.text.over {
		return "changed since " + last.name + "; both are too long to be compared here"
	}
	var before copied
	b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil {
		return ""
	}
	before.add(b)
	before.close()
	return describeDelta(last.name, before.text, j.seen.text.text)
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
