package kinds

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// YAML is a stream of YAML documents.
var YAML = structured(Kind{
	Name:       content.YAML,
	Ext:        "yaml",
	MIME:       fixed("application/yaml"),
	Sniff:      func(s *Sample) bool { return isYAML(s) && !isTemplate(s) },
	RecordIs:   "a document",
	RecordNote: "1.2 core schema: no is a string",
}, values.YAML)

// Template is a template of YAML, such as one of Helm, that is not YAML itself.
var Template = &Kind{
	Name:       content.Template,
	Ext:        "tpl",
	MIME:       fixed("text/plain"),
	Sniff:      func(s *Sample) bool { return isYAML(s) && isTemplate(s) },
	Summarizer: func(name string, _ []byte) digest.Summarizer { return logs.NewProse(name) },
	Records:    record.LineSpans,
	Objects:    templateLines,
	RecordIs:   "a line {line, text}",
	RecordNote: "YAML with {{ … }} that does not parse",
	Shares:     Text.Shares,
}

// templateLines writes the lines of a template, and says that they are not values.
func templateLines(ctx context.Context, r io.Reader, w io.Writer) error {
	err := record.TextLines(ctx, r, w)
	if _, remarks := errors.AsType[*content.Remarks](err); err != nil && !remarks {
		return err
	}
	return &content.Remarks{Notes: []string{"a template, not YAML until its {{ … }} are filled: its records are lines"}}
}

// isTemplate reports whether a text has actions of a template and does not parse as YAML, as far as the sample goes.
func isTemplate(s *Sample) bool {
	return bytes.Contains(s.text, []byte("{{")) && !s.parses(values.YAML)
}

var (
	yamlEntry = content.Pattern(`^ *(- +)*("[^"]+"|'[^']+'|[\w./$@-]+) *:( |$)`)
	yamlItem  = content.Pattern(`^ *- +\S`)
	yamlStart = content.Pattern(`^(%YAML |---( |$))`)
)

// isYAML reports whether a text is YAML or meant to be, because it has the name. A text without a name must parse, half
// of its lines must be entries of mappings or items of sequences, none may begin with another word, and one entry must
// have others below it, or another document: headers of mails and other "name: value" lines have not.
func isYAML(s *Sample) bool {
	if s.ext != "" {
		return s.ext == ".yaml" || s.ext == ".yml"
	}
	entries, nested, lines, open := 0, 0, 0, false
	depth := 0
	for _, l := range splitLines(s.text, s.whole) {
		text := bytes.TrimLeft(l, " ")
		indent := len(l) - len(text)
		switch {
		case yamlStart().Match(l):
			if lines > 0 { // a second document
				nested++
			}
			continue
		case len(text) == 0 || text[0] == '#':
			continue
		}
		lines++
		entry := yamlEntry().Match(l)
		switch {
		case entry || yamlItem().Match(l):
			entries++
			if open && (indent > depth || text[0] == '-' && indent == depth) {
				nested++
			}
		case indent == 0 || text[0] == '\t':
			return false
		}
		open, depth = entry && bytes.HasSuffix(bytes.TrimRight(l, " "), []byte{':'}), indent
	}
	return entries*2 >= lines && lines >= 4 && nested > 0 && s.parses(values.YAML)
}
