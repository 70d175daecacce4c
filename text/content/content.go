// Package content decodes text, scans JSON, finds hunks of diffs and values at JSON Pointers, and makes
// hidden characters visible.
//
// [Scanner] reads JSON of any size for all packages but continuation, whose parser stops within a value and
// continues with the next part. encoding/json's token decoder holds a whole token in memory: a string of 1 GB would
// need 1 GB.
package content

import (
	"maps"
	"slices"
	"strings"
)

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
	YAML     Kind = "yaml"
	Template Kind = "template"
	XML      Kind = "xml"
	JUnit    Kind = "junit"
	TOML     Kind = "toml"
	INI      Kind = "ini"
	Env      Kind = "env"

	Properties Kind = "properties"
	Text       Kind = "text"
	Binary     Kind = "binary"
)

// Remarks is the error of a text that was read, but is damaged or lacks fields. An answer based on the text must show
// the notes, and those of the fields that it reads.
type Remarks struct {
	Notes    []string
	OfFields map[string]string // notes by the name of a field
}

func (r *Remarks) Error() string {
	notes := r.Notes
	for _, field := range slices.Sorted(maps.Keys(r.OfFields)) {
		notes = append(notes[:len(notes):len(notes)], r.OfFields[field])
	}
	return strings.Join(notes, "; ")
}
