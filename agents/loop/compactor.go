package loop

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// compactShare is the share of the window that a compacted conversation has at most; tools and the reply need the rest.
const compactShare = 0.6

// Compactor returns a function for [Options].Compact. It replaces outputs of tools by pointers, the oldest first, until
// the messages have at most 60 % of the window, or 60 % of their tokens before if that is less. The last three results
// stay if that suffices, else the last one, else none. Calls and answers stay pairs.
//
// store stores an output, named by its call, and returns the id that the model reads it with, such as obs:ID. It is
// never called concurrently. count returns the tokens of a text.
func Compactor(
	store func(name string, text []byte) (id string, err error), count func(string) int,
) func(messages []chat.Message, window int) ([]chat.Message, error) {
	return func(messages []chat.Message, window int) ([]chat.Message, error) {
		text, err := json.Marshal(document{messages})
		if err != nil {
			return nil, err
		}
		t, err := transcript.Read(text)
		if err != nil {
			return nil, err
		}
		total := 0
		for i := range t.Blocks {
			total += t.Tokens(&t.Blocks[i], count)
		}
		budget := int(compactShare * float64(min(window, total)))
		out, err := compactTo(t, &keeper{store: store, count: count}, budget)
		if err != nil {
			return nil, err
		}
		var d document
		err = json.NewDecoder(io.NewSectionReader(out, 0, out.Size())).Decode(&d)
		return d.Messages, err
	}
}

// document is a transcript of chat completions.
type document struct {
	Messages []chat.Message `json:"messages"`
}

// compactTo compacts a transcript to a budget, and lets as many of the last results stay as fit.
func compactTo(t *transcript.Transcript, k *keeper, budget int) (out transcript.Bytes, err error) {
	for _, last := range []int{3, 1, -1} { // -1: none stays
		out, _, err = compaction.Compact(t, &compaction.Map{V: 1, Format: string(t.Format)}, k,
			compaction.Options{Budget: budget, Keep: last, Count: k.count})
		if _, over := errors.AsType[*compaction.BudgetError](err); !over {
			return out, err
		}
	}
	return out, err
}

// keeper stores outputs by a function. An output may be stored again if the first attempt to compact fails.
type keeper struct {
	store func(name string, text []byte) (id string, err error)
	count func(string) int

	mu sync.Mutex // of store
}

// Keep implements [compaction.Keeper].
func (k *keeper) Keep(tool, args, text string) (compaction.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, err := k.store(strings.TrimSpace(tool+" "+args), []byte(text))
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	return compaction.Kept{ID: id, Kind: "text", Lines: int64(lines), Tokens: int64(k.count(text))}, err
}

// Has is never called: the map of each compaction is empty. Nor is Read.
func (k *keeper) Has(string, string) bool { return false }

// Read implements [compaction.Keeper].
func (k *keeper) Read(string) ([]byte, error) { return nil, errors.ErrUnsupported }

// Release does nothing: the store expires its outputs.
func (k *keeper) Release(string) {}

// Room returns no limit: store returns an error if there is no room.
func (k *keeper) Room() (int64, error) { return math.MaxInt64, nil }
