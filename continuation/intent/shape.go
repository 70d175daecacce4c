package intent

import (
	"embed"
	"strings"
)

//go:embed shape_*.md
var shapes embed.FS

// Shape returns what a model must be told to write a document of this level, with an example that passes the check;
// "" for an unknown level. Prompts and tools use the same text.
func Shape(level Level) string {
	text, err := shapes.ReadFile("shape_" + string(level) + ".md")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
