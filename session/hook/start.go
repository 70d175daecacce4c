package hook

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Start is the event of a session that starts.
type Start struct {
	usage.Event
	Transcript string // path of the client's file of this session; "": not named
	Again      bool   // the session goes on after a compaction, or is resumed
}

// ParseStart parses the input of a SessionStart hook, as [Parse] does that of a tool call.
func ParseStart(in []byte) (s Start, err error) {
	all, err := jsontree.Parse(bytes.NewBuffer(in))
	if err == nil && all.Kind != '{' {
		err = errNoObject
	}
	if err != nil {
		return Start{}, fmt.Errorf("standard input is not the JSON of a hook: %w", err)
	}
	if event := all.Str("hook_event_name"); event != "SessionStart" {
		return Start{}, fmt.Errorf("the event %.40q is not SessionStart", event)
	}
	source := all.Str("source")
	s = Start{Again: source == "compact" || source == "resume"}
	s.Transcript = Call{text: in}.string(all.Get("transcript_path"))
	s.Event, err = usage.EventIn(in, all)
	return s, err
}

// AddContext returns what a SessionStart hook writes to standard output, so that the client shows a text to the model.
func AddContext(text string) []byte {
	quoted, _ := content.PlainJSON(text) // a string never fails
	return fmt.Appendf(nil, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":%s}}`+"\n", quoted)
}

// halfLife is how many later calls halve what one use of an output counts.
const halfLife = 20

// Uses ranks stored outputs by how often and how lately a session used them. The zero value is ready.
type Uses struct {
	at    map[observations.ID][]int // numbers of the calls that made or read an output
	calls int
}

// AddCall counts a call of the session: the output that it stored, and those that it read.
func (u *Uses) AddCall(c trace.Call) {
	names := append(strings.Split(c.Source, ", "), c.Origin...)
	u.add(append(names, c.Observation))
}

// mention matches the name of an observation in any text.
var mention = content.Pattern(`\bobs:[0-9a-hjkmnp-tv-z]{12}\b`)

// AddTranscript counts each line of a client's transcript that mentions an output as a use of it.
func (u *Uses) AddTranscript(text []byte) {
	for line := range bytes.Lines(text) {
		if names := mention().FindAllString(string(line), -1); names != nil {
			u.add(names)
		}
	}
}

func (u *Uses) add(names []string) {
	if u.at == nil {
		u.at = map[observations.ID][]int{}
	}
	u.calls++
	for _, name := range names {
		id, err := observations.ParseID(name)
		if all := u.at[id]; err == nil && (len(all) == 0 || all[len(all)-1] != u.calls) {
			u.at[id] = append(all, u.calls)
		}
	}
}

// Ranked returns the outputs, the one that was used most and latest first: each use counts 1, and half of it after
// every 20 later calls.
func (u *Uses) Ranked() []observations.ID {
	worth := func(id observations.ID) (sum float64) {
		for _, at := range u.at[id] {
			sum += math.Exp2(float64(at-u.calls) / halfLife)
		}
		return sum
	}
	return slices.SortedFunc(maps.Keys(u.at), func(a, b observations.ID) int {
		return cmp.Or(cmp.Compare(worth(b), worth(a)), cmp.Compare(a, b))
	})
}
