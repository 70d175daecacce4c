package compaction

import (
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// Keeper stores outputs and describes them; it is called by several goroutines. An ID must give the same bytes back for
// as long as a map refers to it.
type Keeper interface {
	// Keep stores the output of a tool. Secrets of its arguments are hidden already.
	Keep(tool, args, text string) (Kept, error)
	// Has reports whether an output is stored with the text of this SHA-256, and promises again what Keep did.
	Has(id, sha256 string) bool
	// Read returns a stored output.
	Read(id string) ([]byte, error)
	// Release ends what Keep promised, for an output that no map refers to.
	Release(id string)
	// Room returns how many bytes may be pinned.
	Room() (int64, error)
}

// Options of a compaction.
type Options struct {
	Budget   int                 // tokens of the client's next request
	Keep     int                 // results that stay, the last ones; 0 means 3, below 0 none
	KeepTool []string            // tools whose results stay
	Count    func(string) int    // tokens of a text
	Margin   float64             // error of Count: 0.25 is ± 25 %
	Mask     func(string) string // hides secrets of a call's arguments in its pointer; nil: nothing is hidden
	Path     string              // the command to read an output without this server, with %s for the ID; may be ""
}

// Report says what a compaction did. All sizes are tokens.
type Report struct {
	Before    int `json:"before"`     // of the client's next request
	After     int `json:"after"`      // of the same
	Rest      int `json:"rest"`       // of both: tokens that the client reported and that no block has; they stay
	Most      int `json:"at_most"`    // upper bound of After, with the error of counts and with encrypted text
	Replaced  int `json:"replaced"`   // outputs, now
	Replayed  int `json:"replayed"`   // outputs that an earlier compaction replaced, again by the same bytes
	Foreign   int `json:"foreign"`    // outputs that are pointers of another store
	Gone      int `json:"gone"`       // outputs of the map that are no longer stored, or that the transcript lacks
	Rewritten int `json:"rewritten"`  // behind the first change: the client's cache misses them once
	BreakEven int `json:"break_even"` // turns after which that has paid, with cache reads at a tenth and writes at 1.25

	// Note is what the figures leave out; "" if nothing.
	Note string `json:"note,omitempty"`

	// Doubt is why the result is not known to fit the budget; "" if it is.
	Doubt string `json:"doubt,omitempty"`
}

// compactor is the state of one compaction.
type compactor struct {
	t       *transcript.Transcript
	m       *Map
	keeper  Keeper
	o       Options
	cost    []int  // tokens of each block
	was     []int  // tokens of each block in the request that the client reported last
	usage   int    // tokens of that request; 0: none is reported
	ignored string // why the report is ignored; "" if it is not
	rest    int    // tokens that it reported for that request and that no block has
	scale   float64
	total   int
	first   int // the first block that is changed
	edits   []transcript.Edit
	done    map[int]bool     // blocks that are replaced
	calls   map[string][]int // results with texts, by call
	outputs map[string]int   // the block that was replaced now, by observation
	pointer int              // tokens of a pointer, at most
	ranked  []int            // the blocks that may be replaced, in that order
	taken   map[place]bool   // strings that are replaced
	raw     int              // bytes of the strings that the map holds
}

// find returns the string of a block at a place.
func find(b *transcript.Block, at place) (transcript.Literal, bool) {
	for _, l := range slices.Concat(b.Texts, b.Copies) {
		if l.Line == at.line && l.Number == at.number {
			return l, true
		}
	}
	return transcript.Literal{}, false
}
