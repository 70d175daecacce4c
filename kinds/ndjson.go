package kinds

import (
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// NDJSON is a sequence of JSON values, usually one per line.
var NDJSON = &Kind{
	Name:       content.NDJSON,
	Ext:        "ndjson",
	MIME:       fixed("application/x-ndjson"),
	Sniff:      func(s *Sample) bool { return s.json() == content.NDJSON },
	Summarizer: func(string, []byte) digest.Summarizer { return shape.NewDocument(content.NDJSON) },
	Records:    content.LineValues,
	Numbered:   record.NumberedLines,
	RecordIs:   "the JSON value of a line",
	Shares:     Shares{Says: 0.3, Shape: 0.4, Body: 0.35},
}
