// Package content decodes text, scans JSON, finds rows of tables, hunks of diffs and values at JSON Pointers, and
// makes hidden characters visible.
//
// [Scanner] is the only JSON scanner of this project; text/jsontrunc uses it too. encoding/json's token decoder
// would not do because it holds a whole token in memory: a string of 1 GB would need 1 GB.
//
// Other packages detect the kind of a text (kinds), summarise a text (the packages below this one) and check
// JSON for truncation (text/jsontrunc).
package content

// Kind is the name of a text's format; the same name is used on the wire. kinds has a descriptor per kind.
type Kind string

// The kinds that other packages refer to. Each further kind is named in its own file in kinds.
const (
	JSON     Kind = "json"
	NDJSON   Kind = "ndjson"
	Diff     Kind = "diff"
	GitLog   Kind = "gitlog"
	Log      Kind = "log"
	Table    Kind = "table" // CSV, TSV
	Markdown Kind = "markdown"
	Text     Kind = "text"
	Binary   Kind = "binary"
)
