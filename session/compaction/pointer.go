package compaction

import (
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Kept is a stored output.
type Kept struct {
	ID      string // obs:…
	Kind    string
	Lines   int64
	Tokens  int64
	Receipt string // as stored; its second line has the totals
}

// Pointer stands for an output that is stored.
type Pointer struct {
	ID        string `json:"pointer_id"` // obs:…
	Kind      string `json:"kind"`
	Display   string `json:"display_text"`
	Rehydrate string `json:"rehydrate_instructions"`
	Elsewhere string `json:"elsewhere,omitempty"` // how to read it without this server; once for each transcript
}

// pointerTokens is the size of a pointer, at most.
const pointerTokens = 60

// Text returns the pointer as it stands in the transcript.
func (p Pointer) Text() string {
	text := "[" + p.Display + "; " + p.Rehydrate
	if p.Elsewhere != "" {
		text += "; " + p.Elsewhere
	}
	return text + "]"
}

// rehydrate begins the instructions of every pointer; the ID follows.
const rehydrate = "read it with slice, grep or jq at source "

// maxPointer is more than a pointer has, in bytes.
const maxPointer = 2000

// IsPointer reports whether a text is a pointer and nothing else.
func IsPointer(text string) bool {
	return len(text) < maxPointer && strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") &&
		strings.Contains(text, "; "+rehydrate+"obs:") && !strings.Contains(text, "\n")
}

// isPointer is IsPointer for a string of a transcript. It reads no long one.
func isPointer(l transcript.Literal) bool { return l.Size() < maxPointer && IsPointer(l.Text()) }

// NewPointer returns the pointer to an output: what it is, which call made it, and what its receipt says of it, as much
// as fits budget tokens. elsewhere, which may be empty, is how to read the output without this server; it counts too.
func NewPointer(k Kept, tool, args, elsewhere string, budget int, count func(string) int) Pointer {
	p := Pointer{
		ID: k.ID, Kind: k.Kind, Rehydrate: rehydrate + k.ID, Elsewhere: elsewhere,
	}
	size := fmt.Sprintf("%s, %s of %s", content.Plural(k.Tokens, "token", "tokens"),
		content.Plural(k.Lines, "line", "lines"), k.Kind)
	for width := 200; ; width = width * 2 / 3 {
		p.Display = size
		if tool != "" && width >= 8 {
			p.Display += " from " + clip(tool, min(width, 60))
			if args != "" && args != "{}" && width > 50 { // the facts say more
				p.Display += " " + clip(args, width/3)
			}
		}
		if facts := factsOf(k.Receipt); facts != "" && width > 20 {
			p.Display += "; " + clip(facts, width)
		}
		if count(p.Text()) <= budget || width < 8 {
			return p
		}
	}
}

// factsOf returns what the receipt says of the output after its sizes: matches, errors, hunks, columns, or how the text
// begins.
func factsOf(receipt string) string {
	lines := strings.Split(receipt, "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "total: ")
		if !ok {
			continue
		}
		_, facts, _ := strings.Cut(rest, "; ")
		if _, more, found := strings.Cut(facts, "; "); found { // the kind is known already
			return more
		}
		if i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "--- ") {
			return lines[i+1]
		}
	}
	return ""
}

// clip returns the beginning of a text as one line.
func clip(s string, chars int) string {
	return content.Clip(strings.Join(strings.Fields(content.Visible(s, false)), " "), chars)
}
