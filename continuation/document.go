package continuation

// Verdict says what the writer of the document should do.
type Verdict string

// The verdicts.
const (
	Continue Verdict = "continue" // send the next part
	Done     Verdict = "done"     // the document is whole
	Refused  Verdict = "refused"  // the part was not joined; the document is as it was
	Stop     Verdict = "stop"     // more text cannot help
	Unknown  Verdict = "unknown"  // the text is not JSON: only its writer knows
)

// State says what the text is, by parsing it.
type State string

// The states.
const (
	Whole     State = "whole"
	Cut       State = "cut"      // more text can make it whole
	Broken    State = "broken"   // no text can
	Trailing  State = "trailing" // text follows a complete value
	Empty     State = "empty"
	Ambiguous State = "ambiguous" // a number that more digits may follow
	TooDeep   State = "too deep"  // nested deeper than is read: nothing is known
	NotJSON   State = "not JSON"  // Markdown or code
)

// faulty reports whether no further text can be joined to a text in this state.
func (s State) faulty() bool { return s == Broken || s == Trailing || s == TooDeep }

// Kind says what a document is expected to be.
type Kind uint8

// The kinds.
const (
	Any  Kind = iota // the text decides: JSON, Markdown or code
	JSON             // also in one fenced block with words around it
	Text             // nothing is parsed
)

// Options of a Document. The zero value is ready to use.
type Options struct {
	Kind          Kind
	MaxParts      int              // parts after which the document is stuck; 20
	OutlineTokens int              // maximum size of the outline in an answer; 150
	Tokens        func(string) int // counts tokens; a quarter of the bytes by default
	// AsShown reports whether a text that follows another one can be shown unchanged: nothing in it is masked or escaped.
	// nil: every text can.
	AsShown func(before, text string) bool
}

const (
	defaultMaxParts      = 20
	defaultOutlineTokens = 150
)

// Document is a text of which parts arrive. It is not safe for concurrent use.
type Document struct {
	joined
	options Options
	history history
	// The last units of the text are known to occur in it once if there are at least as many as once says, and several
	// times if there are at most as many as again says. Shorter and longer ends need not be counted.
	once, again int
}

// joined is what was joined so far.
type joined struct {
	text   []byte // in UTF-8
	plain  bool   // the text is not JSON
	parser *parser
	near   *parser // has read the text up to the restart text, or less of it
	anchor anchor
}

// Result is what Add found.
type Result struct {
	Verdict Verdict
	State   State
	Join    string // how the part was joined: "first part", "restart text", "overlap", …; "" if it was not
	Reason  string // why the part was refused, or the document is broken or stuck
	Dropped string // what of the part was left out: a preface, a doubled element
}

// New returns an empty document.
func New(o Options) *Document {
	if o.MaxParts <= 0 {
		o.MaxParts = defaultMaxParts
	}
	if o.OutlineTokens <= 0 {
		o.OutlineTokens = defaultOutlineTokens
	}
	if o.Tokens == nil {
		o.Tokens = func(s string) int { return (len(s) + 3) / 4 }
	}
	if o.AsShown == nil {
		o.AsShown = func(_, _ string) bool { return true }
	}
	return &Document{joined: joined{parser: newParser(), near: newParser()}, options: o}
}

// Text returns the text so far. The caller must not change it.
func (d *joined) Text() []byte { return d.text }

// Parts returns how many parts arrived, refused ones included.
func (d *Document) Parts() int { return len(d.history.Parts) }
