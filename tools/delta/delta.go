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

	"github.com/mcp-funnel/mcp-funnel/base/runes"
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
// mask masks the secrets in a whole text: a part of a secret that is quoted would not be recognized.
func (o *Outputs[K, V]) Since(
	ctx context.Context, sources source.Set, call K, text *Text, mask func(string) string, told func(last V) string,
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
	before, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil {
		return "", false
	}
	return text.since(last.name, before, mask)
}

// since says what changed since an output of a name. same reports that only times, addresses or white
// space differ.
func (t *Text) since(name string, before []byte, mask func(string) string) (says string, same bool) {
	before = []byte(mask(string(before)))
	now, unit := []byte(mask(string(t.text))), ""
	if a, ok := Indented(before); ok {
		if b, ok := Indented(now); ok {
			before, now, unit = a, b, ", of the JSON with a line for each value"
		}
	}
	old, wasCompared := t.lines(before)
	lines, compared := t.lines(now)
	if bytes.Equal(wasCompared, compared) {
		n, quoted := 0, []string{}
		for i, line := range lines {
			if bytes.Equal(old[i], line) {
				continue
			}
			if n++; n <= maxQuoted {
				quoted = append(quoted, quote('-', old[i], line), quote('+', line, old[i]))
			}
		}
		if n == 0 {
			return "since " + name + ": only white space or masked secrets differ", true
		}
		return fmt.Sprintf("since %s: only times or addresses differ, in %s%s: %s",
			name, content.Plural(int64(n), "line", "lines"), unit, joined(quoted, n-len(quoted)/2)), true
	}
	if !t.exact {
		unit = ", times and addresses aside" + unit
	}
	var added, removed int
	var quoted []string
	var from, to int // the next line of each text, from 1
	for line := range strings.Lines(string(diff.Diff("a", wasCompared, "b", compared))) {
		if strings.HasPrefix(line, "@@ ") {
			_, _ = fmt.Sscanf(line, "@@ -%d", &from)
			_, _ = fmt.Sscanf(line[strings.IndexByte(line, '+'):], "+%d", &to)
			continue
		}
		if from == 0 && to == 0 { // the names of the two texts
			continue
		}
		var changed string
		switch line[0] {
		case '+':
			added++
			changed = quote('+', lines[to-1], nil)
			to++
		case '-':
			removed++
			changed = quote('-', old[from-1], nil)
			from++
		default:
			from++
			to++
			continue
		}
		if len(quoted) < maxQuoted {
			quoted = append(quoted, changed)
		}
	}
	return fmt.Sprintf("since %s: %s added, %d removed%s: %s", name, content.Plural(int64(added), "line", "lines"),
		removed, unit, joined(quoted, added+removed-len(quoted))), false
}

// joined joins what is quoted, and says how much is not.
func joined(quoted []string, more int) string {
	if more > 0 {
		quoted = append(quoted, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(quoted, " | ")
}

// quote returns a changed line, cut to 100 bytes. If it differs from other behind the first 60 only, it begins near
// there.
func quote(mark rune, line, other []byte) string {
	from, lead := 0, ""
	for from < min(len(line), len(other)) && line[from] == other[from] {
		from++
	}
	if from > 60 {
		line, lead = runes.TrimStart(line[from-30:]), "…"
	}
	return string(mark) + lead + content.ClipBytes(string(line), 100)
}
