package kinds

import (
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Text is any text that no other kind matches.
var Text = &Kind{
	Name:       content.Text,
	Ext:        "txt",
	MIME:       detected("text/plain"),
	Sniff:      func(*Sample) bool { return true },
	Summarizer: func(name string, _ []byte) digest.Summarizer { return logs.NewProse(name) },
	Records:    record.LineSpans,
	Objects:    record.TextLines,
	RecordIs:   "a line {line, text}",
	RecordNote: "of HTML with tables, a row of one {header: cell, …}",
	Shares:     Shares{Says: 0.3, Shape: 0.3, Body: 0.5},
}
