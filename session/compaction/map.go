package compaction

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// Map is what was replaced in a transcript, oldest first. It refers to places, which stay as the transcript grows.
type Map struct {
	V       int    `json:"v"` // 1
	Format  string `json:"format"`
	Session string `json:"session,omitempty"`
	Swaps   []Swap `json:"swaps"`
	Budget  int    `json:"budget,omitempty"` // of the last compaction that replaced something, in tokens; 0: unknown

	// Foreign are the SHA-256 of outputs that were pointers before, which are not restored.
	Foreign []string `json:"foreign,omitempty"`
}

// Swap is one output that was replaced.
type Swap struct {
	ToolUse     string      `json:"tool_use_id"`
	Observation string      `json:"obs"`
	SHA256      string      `json:"sha256"` // of the output's text
	Pointer     Pointer     `json:"pointer"`
	Literals    []SwappedAt `json:"literals"`        // the strings of the transcript that hold it; the first is the pointer
	Lines       int         `json:"lines,omitempty"` // of the transcript when it was replaced; 0: unknown
}

// SwappedAt is one string of a transcript that was replaced by a part of the observation.
type SwappedAt struct {
	Line   int    `json:"line"`            // from 0
	Number int    `json:"number"`          // of the string values of the line, from 0
	From   int    `json:"from"`            // byte of the observation where its text begins
	Size   int    `json:"size"`            // bytes of its text
	Inner  string `json:"inner,omitempty"` // how the output is written in a text that is JSON around it
	Head   string `json:"head,omitempty"`  // of that JSON, what stands before the output
	Tail   string `json:"tail,omitempty"`  // and behind it
	Form   string `json:"form"`            // how it was written: js, go, python; or raw: in another way
	Raw    []byte `json:"raw,omitempty"`   // the string as it was written, if Form is raw; as JSON in base64
	SHA256 string `json:"sha256"`          // of the string as it was written
	By     string `json:"by"`              // the string that stands there now, as it is written
}

func (s SwappedAt) place() place { return place{s.Line, s.Number} }

// Check returns an error if a map that was read is not one that Compact makes.
func (m *Map) Check() error {
	for n, s := range m.Swaps {
		if len(s.Literals) == 0 || s.Pointer.ID != s.Observation || !IsPointer(s.Pointer.Text()) {
			return fmt.Errorf("swap %d has no place, or no pointer to %q", n, s.Observation)
		}
		seen := map[place]bool{}
		for i, l := range s.Literals {
			by := []string{string(quote("js", above)), string(quote("js", "("+s.Observation+")"))}
			if i == 0 {
				by = []string{string(quote("js", s.Pointer.Text()))}
			}
			if l.Line < 0 || l.Number < 0 || seen[l.place()] || !slices.Contains(by, l.By) {
				return fmt.Errorf("place %d of swap %d, for %s, is named twice or has another text than its pointer",
					i, n, s.Observation)
			}
			seen[l.place()] = true
		}
	}
	return nil
}

// moved returns the swap for a place of its pointer.
func (s Swap) moved(to place) Swap {
	from := s.Literals[0].place()
	s.Literals = slices.Clone(s.Literals)
	for i := range s.Literals {
		s.Literals[i].Line += to.line - from.line
		s.Literals[i].Number += to.number - from.number
	}
	return s
}

// above replaces the second and further strings of an output; its first string becomes the pointer.
const above = "(in the observation above)"

// newSwap returns the swap of a block by a pointer.
func newSwap(b *transcript.Block, kept Kept, p Pointer) Swap {
	text := b.Output()
	s := Swap{ToolUse: b.ID, Observation: kept.ID, SHA256: hash(text), Pointer: p}
	at := 0
	for i, l := range b.Texts {
		of := l.Text()
		by := p.Text()
		if i > 0 {
			by = above
		}
		if i == 0 || len(of) > len(above) {
			s.add(l, of, b.Inner, at, by)
		}
		at += len(of) + 1
	}
	for _, l := range b.Copies {
		of := l.Text()
		if at := strings.Index(text, of); at >= 0 {
			s.add(l, of, nil, at, "("+kept.ID+")")
		}
	}
	return s
}

// add adds a string whose text begins at a byte of the observation. A string that no known way of writing gives back,
// such as one that is no valid UTF-8, is in the map itself. inner is the output in a text that is JSON around it; or
// nil.
func (s *Swap) add(l transcript.Literal, text string, inner *transcript.Span, from int, by string) {
	raw := l.Raw()
	at := SwappedAt{
		Line: l.Line, Number: l.Number, From: from, Size: len(text), SHA256: hash(string(raw)), By: string(quote("js", by)),
		Form: formOf(text, raw),
	}
	if inner != nil && inner.End <= len(text) {
		output := transcript.InnerText(text, *inner)
		at.Inner = formOf(output, []byte(text[inner.Start:inner.End]))
		at.Head, at.Tail, at.Size = strings.Clone(text[:inner.Start]), strings.Clone(text[inner.End:]), len(output)
	}
	if at.Form == rawForm || at.Inner == rawForm {
		at.Form, at.Raw, at.Inner, at.Head, at.Tail = rawForm, raw, "", "", ""
	}
	s.Literals = append(s.Literals, at)
}

// rawForm is the form of a string that is in the map itself.
const rawForm = "raw"

// formOf returns in which form a text is written as a JSON string.
func formOf(text string, as []byte) string {
	for _, form := range []string{"js", "go", "python"} {
		if bytes.Equal(quote(form, text), as) {
			return form
		}
	}
	return rawForm
}

// quote writes a text as a JSON string as JavaScript's JSON.stringify does (and serde), as Go's encoding/json, or as
// Python's json.dumps.
func quote(form, s string) []byte {
	if form == "go" {
		b, _ := json.Marshal(s) // a string can always be written
		return b
	}
	js, _ := jsontext.AppendQuote(nil, s) // the error says that it has U+FFFD for what is not UTF-8
	if form != "python" {
		return js
	}
	out := make([]byte, 0, len(js))
	for _, r := range string(js) {
		if r < 0x7f {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// Uses reports whether a transcript has a result that a swap has replaced, or would replace.
func (s Swap) Uses(t *transcript.Transcript) bool {
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Result() && b.ID == s.ToolUse && len(b.Texts) > 0 &&
			(b.Texts[0].Is(s.Pointer.Text()) || s.replaced(b)) {
			return true
		}
	}
	return false
}

// replaced reports whether a block has the text that a swap has replaced. Older maps have it with the JSON around it.
func (s Swap) replaced(b *transcript.Block) bool {
	return hash(b.Output()) == s.SHA256 || b.Inner != nil && hash(b.Text()) == s.SHA256
}

// Key names the map of a transcript: by the client's session, or by all that stands before the first output of a tool.
func Key(t *transcript.Transcript) string {
	if t.Session != "" {
		return hash(string(t.Format) + "\x00" + t.Session)[:32]
	}
	for _, b := range t.Blocks {
		if b.Result() && len(b.Texts) > 0 {
			h := sha256.New()
			_, _ = io.WriteString(h, string(t.Format)+"\x00")     // a hash never fails
			_, _ = io.Copy(h, t.Before(b.Line, b.Texts[0].Start)) // the next reader of it says if that failed
			return hex.EncodeToString(h.Sum(nil))[:32]
		}
	}
	return hash(string(t.Format))[:32]
}

// Moved returns the map for a copy of the transcript in which lines have moved; −1 is a line that the copy lacks.
func (m *Map) Moved(lines []int, session string) *Map {
	moved := &Map{V: m.V, Format: m.Format, Session: session, Budget: m.Budget, Foreign: slices.Clone(m.Foreign)}
	for _, s := range m.Swaps {
		s.Literals = slices.Clone(s.Literals)
		s.Lines = movedLines(lines, s.Lines)
		ok := true
		for i, l := range s.Literals {
			if ok = ok && l.Line < len(lines) && lines[l.Line] >= 0; ok {
				s.Literals[i].Line = lines[l.Line]
			}
		}
		if ok {
			moved.Swaps = append(moved.Swaps, s)
		}
	}
	return moved
}

// movedLines returns how many of the first n lines a copy has.
func movedLines(lines []int, n int) (left int) {
	for _, line := range lines[:min(n, len(lines))] {
		if line >= 0 {
			left++
		}
	}
	return left
}

// place is a string of a transcript: its line, and its number in it.
type place struct{ line, number int }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
