// Package text makes text fit to be shown to a model: it shows hidden characters, escapes lines that imitate this
// server's own, and clips long lines in their middle.
package text

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// The words by which a model recognizes this server's own lines.
const (
	LargeOutput = "LARGE OUTPUT DETECTED: "
	NextPrefix  = "next: "
	NotePrefix  = "note: "
	ErrorPrefix = "error: "
)

// The guards of untrusted text. They are variables only so that tests can run without one of them and show that it
// is needed; nothing else may set them.
var (
	// Visible shows hidden characters as escapes: as JSON writes them if json is true.
	Visible = content.Visible
	// Escape puts ">" before lines that imitate this server's own.
	Escape = escapeImitations
)

// Sanitize makes untrusted text fit to be shown: it shows hidden characters and marks lines that imitate ours.
func Sanitize(s string, json bool, at Position) string {
	return Escape(Visible(s, json), at)
}

// VisibleLine is [Visible] for text that must stay on one line: line ends are escaped too.
func VisibleLine(s string, json bool) string {
	s = Visible(s, json)
	if strings.Contains(s, "\n") {
		newline := `\x0a`
		if json {
			newline = `\n`
		}
		s = strings.ReplaceAll(s, "\n", newline)
	}
	return s
}
