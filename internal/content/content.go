// Package content decodes text, names its kind, scans its JSON, and makes
// what is hidden visible.
//
// Its [Scanner] is the one JSON scanner of the house: internal/cutoff reads with it too. It exists
// because a decoder of tokens holds a whole token: a string of 1 GB must not take 1 GB.
//
// It does not summarise (internal/summary) and does not say whether JSON is
// whole (internal/cutoff).
package content

// Kind is what a text is.
type Kind string

// The kinds.
const (
	JSON     Kind = "json"
	NDJSON   Kind = "ndjson"
	Diff     Kind = "diff"
	Log      Kind = "log"
	Table    Kind = "table" // CSV, TSV
	Markdown Kind = "markdown"
	Text     Kind = "text"
	Binary   Kind = "binary"
)

// Ext is the file extension for a kind, without dot: json, ndjson, diff, log, csv, md, txt, bin.
func (k Kind) Ext() string {
	switch k {
	case JSON, NDJSON, Diff, Log:
		return string(k)
	case Table:
		return "csv"
	case Markdown:
		return "md"
	case Binary:
		return "bin"
	}
	return "txt"
}
