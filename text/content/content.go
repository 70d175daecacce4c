// Package content decodes text, scans JSON, finds hunks of diffs and values at JSON Pointers, and makes
// hidden characters visible.
//
// [Scanner] reads JSON of any size for all packages but documents/continuation, whose parser stops within a value and
// continues with the next part. encoding/json's token decoder holds a whole token in memory: a string of 1 GB would
// need 1 GB.
package content

import "strings"

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

// Damaged says that a text was read although it is damaged. An answer that rests on it must show the notes.
type Damaged struct{ Notes []string }

func (d *Damaged) Error() string { return strings.Join(d.Notes, "; ") }
