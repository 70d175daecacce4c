package kinds

import (
	"context"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// All lists the kinds in sniffing order. Text comes last because it matches every text.
var All = []*Kind{
	Binary,
	JSON,
	NDJSON,
	Diff,
	GitLog,
	Log,
	Table,
	JUnit,
	XML,
	TOML,
	INI,
	Properties,
	Env,
	YAML,
	Template,
	Markdown,
	Text,
}

// Of returns the descriptor of a kind, or Text for an unknown name.
func Of(name content.Kind) *Kind {
	for _, k := range All {
		if k.Name == name {
			return k
		}
	}
	return Text
}

// Records calls visit for each record of a text in order, until visit returns false. Records are the elements of a
// top-level JSON array, NDJSON lines (or concatenated values), CSV rows after the header, files of a diff, commits of a
// git log, and lines of a log or of other text. JSON whose top level is not an array is read as a sequence of values.
// Records reads no further than needed and retains no text. For broken text it visits the valid records and returns a
// [content.SyntaxError] with the position; see [content.LineValues] for lines that are not JSON. If the records that it
// visited can be read although the text is damaged, the error is a [content.Remarks].
func Records(ctx context.Context, r io.Reader, k content.Kind, visit func(index int64, at content.Span) bool) error {
	return Of(k).Records(ctx, r, visit)
}
