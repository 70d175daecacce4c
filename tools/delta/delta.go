// Package delta says in one line what changed since the last stored output of the same call.
package delta

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of deltas.
const (
	maxLast   = 1000 // calls whose last output is remembered
	maxQuoted = 3    // changed lines that are quoted
)

// Outputs remembers where the last output of each call is stored, and what else its caller knows of it. The zero value
// is ready for use, also by several goroutines.
type Outputs[K comparable, V any] struct {
	mu   sync.Mutex
	last map[K]output[V]
}

type output[V any] struct {
	name  string // obs:ID
	sum   uint64 // of all its bytes
	known V
}

// Remember notes where the output of a call is stored.
func (o *Outputs[K, V]) Remember(call K, id string, text *Text, known V) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) >= maxLast || o.last == nil {
		o.last = map[K]output[V]{}
	}
	o.last[call] = output[V]{observations.Prefix + id, text.sum.Sum64(), known}
}

// Since says in one line what changed since the last stored output of a call; "" if there is none. same reports that
// nothing did. told may say it better than lines do, by what is known of the last output; nil, or "": it does not.
func (o *Outputs[K, V]) Since(
	ctx context.Context, sources source.Set, call K, text *Text, told func(last V) string,
) (says string, same bool) {
	o.mu.Lock()
	last, known := o.last[call]
	o.mu.Unlock()
	if !known {
		return "", false
	}
	equal := text.sum.Sum64() == last.sum
	src, err := sources.Open(ctx, last.name)
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
	if told != nil {
		if says := told(last.known); says != "" {
			return "since " + last.name + ": " + says, false
		}
	}
	if src.Size > maxCompared || text.over {
		return "changed since " + last.name + "; both are too long to be compared here", false
	}
	before := NewText()
	b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil {
		return "", false
	}
	before.Add(b)
	old, now := before.lines(), text.lines()
	if bytes.Equal(old, now) {
		return "unchanged since " + last.name + ", times aside", true
	}
	return describe(last.name, old, now), false
}

// describe counts the lines that differ, quotes some and says how many it does not quote.
func describe(name string, before, after []byte) string {
	aside := "times aside"
	if a, ok := indented(before); ok {
		if b, ok := indented(after); ok {
			before, after, aside = a, b, "times aside, of the JSON with a line for each value"
		}
	}
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
		if len(quoted) < maxQuoted {
			quoted = append(quoted, content.ClipBytes(line, 100))
		}
	}
	if more := added + removed - len(quoted); more > 0 {
		quoted = append(quoted, fmt.Sprintf("… and %d more", more))
	}
	return fmt.Sprintf("since %s: %s added, %d removed, %s: %s", name, content.Plural(int64(added), "line", "lines"),
		removed, aside, strings.Join(quoted, " | "))
}
