package hook

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Start is a session that starts.
type Start struct {
	usage.Event
	Transcript string // path of the client's file of the session; "": not named
	Again      bool   // it goes on after a compaction, or is resumed
}

// ParseStart parses the input of a SessionStart hook, as [Parse] does that of a tool call.
func ParseStart(in []byte) (Start, error) {
	c, all, err := parse(in, "SessionStart")
	source := all.Str("source")
	return Start{c.Event, c.string(all.Get("transcript_path")), source == "compact" || source == "resume"}, err
}

// AddContext returns what a SessionStart hook writes so that the model is shown a text.
func AddContext(text string) []byte {
	quoted, _ := content.PlainJSON(text) // a string never fails
	return slices.Concat([]byte(`{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":`), quoted,
		[]byte("}}\n"))
}

// halfLife is the number of later calls that halve what a use counts.
const halfLife = 20

// Rank returns the stored outputs that a session made or read, those used most and latest first: a use counts 1, and
// half of it after every 20 later calls. Of an output in several lists of the session's calls the list counts that has
// most of it. It sorts each list by the times of the calls.
func Rank(lists ...[]trace.Call) []observations.ID {
	worth := map[observations.ID]float64{}
	for _, calls := range lists {
		slices.SortStableFunc(calls, func(a, b trace.Call) int { return a.At.Compare(b.At) })
		here := map[observations.ID]float64{}
		for i, c := range calls {
			for _, name := range append(append(strings.Split(c.Source, ", "), c.Origin...), c.Observation) {
				if id, err := observations.ParseID(name); err == nil {
					here[id] += math.Exp2(float64(i-len(calls)) / halfLife)
					worth[id] = max(worth[id], here[id])
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(worth), func(a, b observations.ID) int {
		return cmp.Or(cmp.Compare(worth[b], worth[a]), cmp.Compare(a, b))
	})
}

var mention = content.Pattern(`\bobs:[0-9a-hjkmnp-tv-z]{12}\b`)

// Mentions returns a call for each line of a client's transcript that mentions stored outputs.
func Mentions(transcript []byte) (calls []trace.Call) {
	for line := range bytes.Lines(transcript) {
		if names := mention().FindAllString(string(line), -1); names != nil {
			calls = append(calls, trace.Call{Origin: names})
		}
	}
	return calls
}
