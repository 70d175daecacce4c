// Package transcript reads the transcripts of clients and APIs: what was said, which tools were called, and what they
// returned. It knows where in the file each text stands, so that a text can be replaced and every other byte stays.
//
// A line that it does not understand is no error.
package transcript

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Format is the form of a transcript.
type Format string

// The formats.
const (
	Claude    Format = "claude"    // session file of Claude Code: JSON lines
	Codex     Format = "codex"     // rollout of Codex: JSON lines
	Anthropic Format = "anthropic" // messages of the Anthropic API: one JSON value
	Chat      Format = "chat"      // messages of OpenAI's chat completions: one JSON value
	Responses Format = "responses" // items of OpenAI's responses: one JSON value
)

// Role is who wrote a block.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
	Tool      Role = "tool" // the result of a tool
)

// Block is a part of the conversation.
type Block struct {
	Line int // from 0
	At   int // byte of the line where it begins
	Role Role
	Call bool    // a tool is called
	ID   string  // of the call, in the call and in its result
	Name string  // of the tool, in the call and in its result; "" if unknown
	Args Literal // of the call, as JSON; in the result too

	Texts   []Literal // what the model reads
	Copies  []Literal // further strings of the line that repeat it; the model does not read them
	Inner   *Span     // the output as a JSON string within a text that is JSON; nil: none
	Rest              // what else is in it
	Other   bool      // there is something else, such as an image
	Receipt bool      // it is a receipt of this server: the output is stored already
	Error   bool      // the tool failed
	Sent    bool      // the client would send it with its next request
	Turn    int       // how many messages of the user stood before it

	message int // where its message begins in the line
}

// Text returns the texts of a block, joined by line ends.
func (b *Block) Text() string {
	if len(b.Texts) == 1 {
		return b.Texts[0].Text()
	}
	return joined(b.Texts)
}

// Output returns what the tool wrote: the text, without the JSON that a client put around it.
func (b *Block) Output() string {
	if b.Inner != nil {
		return InnerText(b.Text(), *b.Inner)
	}
	return b.Text()
}

// InnerText returns the text of a JSON string within a text that is JSON.
func InnerText(text string, at Span) (inner string) {
	if at.End > len(text) { // the text could not be read again, as Err says
		return ""
	}
	_ = json.Unmarshal([]byte(text[at.Start:at.End]), &inner) // it was parsed before
	return inner
}

// Size returns the bytes of the text of a block.
func (b *Block) Size() (n int) {
	for _, l := range b.Texts {
		n += l.size + 1
	}
	return max(n-1, 0)
}

// Result reports whether the block is the result of a tool.
func (b *Block) Result() bool { return b.Role == Tool }

// Transcript is a transcript that was read.
type Transcript struct {
	Format      Format
	Session     string // the client's id of it; "" if it has none
	Blocks      []Block
	Unknown     int  // lines that are no JSON, or of no known type
	Torn        bool // the last line is not complete
	Again       int  // lines with the id of an earlier one, which count once
	RequestSize      // the last one that the client recorded

	bytes  Bytes
	starts []int64  // offsets of the lines, and of the end
	err    error    // of a text that could not be read again
	last   struct { // the string that was read again last
		line, start int
		text        string
	}

	cleared   map[string]clearing // results that the client has replaced since, by call id
	boundary  int                 // index of the first block after the last compaction
	lineOf    map[string]int      // the first line with an id
	preserved map[int]bool        // lines before the boundary that the client still sends
	found     struct {            // the strings of the line that Find was asked for last
		line    int
		strings []*jsontree.Node
	}
}

// RequestSize is the size of a request as the client recorded it, in tokens.
type RequestSize struct {
	Usage      int    // of the prompt; 0: unknown
	Output     int    // of the answer; 0: unknown
	Reported   int    // how many blocks stood before the answer
	ReportLine int    // of the answer, from 0
	Model      string // that answered last; "" if unknown

	message string // the id of the answer
}

// clearing is what the client sends instead of a result, and how many blocks stood before its record of that.
type clearing struct {
	by Literal
	at int
}

// Cleared returns what the client has replaced a result by since, as its own records say.
func (t *Transcript) Cleared(id string) (by string, ok bool) {
	c, ok := t.cleared[id]
	return c.by.Text(), ok
}

// Tokens returns the tokens of a block as the client sends it, by a count of texts; 0 if it does not. Images count
// as [tokens.Image] each, encrypted data as nothing.
func (t *Transcript) Tokens(b *Block, count func(string) int) (n int) {
	if !b.Sent {
		return 0
	}
	if by, ok := t.Cleared(b.ID); ok && b.Result() {
		return tokensOf(by, count)
	}
	return b.tokens(count)
}

// TokensReported returns the tokens of a block as the client sent it with the request that it reported last. A result
// that the client has cleared since counts whole.
func (t *Transcript) TokensReported(b *Block, count func(string) int) int {
	if c, ok := t.cleared[b.ID]; ok && b.Sent && b.Result() && c.at > t.Reported {
		return b.tokens(count)
	}
	return t.Tokens(b, count)
}

func (b *Block) tokens(count func(string) int) int {
	n := tokensOf(b.Text(), count) + tokensOf(joined(b.More), count) + b.Images*tokens.Image
	if b.Call {
		n += count(b.Name + b.Args.Text())
	}
	return n
}

func tokensOf(text string, count func(string) int) int {
	if text == "" {
		return 0
	}
	return count(text)
}

// Number returns the line of a byte of a line, from 1: a document of an API is one line here, whatever its line ends.
func (t *Transcript) Number(line, at int) int {
	n, before := 1+line, bufio.NewReader(t.Before(line, at))
	for t.Format != Claude && t.Format != Codex {
		if _, err := before.ReadSlice('\n'); err == nil {
			n++
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	return n
}

// LineCount returns how many lines the transcript has, those of a document of an API too.
func (t *Transcript) LineCount() int {
	last := t.Lines() - 1
	return t.Number(last, int(t.starts[last+1]-t.starts[last])-1)
}

// Repeated finds results that a later result makes superfluous: it answers the same call, or has the same text. The map
// is from the index of the earlier one to that of the later one. A later result counts only if the model has it: it is
// sent, did not fail and was not cleared.
func (t *Transcript) Repeated() map[int]int {
	type sum = [sha256.Size]byte
	byCall, byText, repeated := map[sum]int{}, map[sum]int{}, map[int]int{}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if _, cleared := t.Cleared(b.ID); !b.Result() || !b.Sent || b.Error || cleared {
			continue
		}
		call, text := sha256.Sum256([]byte(b.Name+" "+b.Args.Text())), sha256.Sum256([]byte(b.Text()))
		if before, ok := byCall[call]; ok && b.Name != "" {
			repeated[before] = i
		}
		if before, ok := byText[text]; ok && b.Size() > 0 {
			repeated[before] = i
		}
		byCall[call], byText[text] = i, i
	}
	return repeated
}

// isReceipt reports whether the text of a result is a receipt of this server.
func isReceipt(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "LARGE OUTPUT DETECTED: ") || strings.Contains(first, "kept as obs:")
}

// read fills a block from a content: a string, or blocks with a text. Anything else is its rest.
func (t *Transcript) read(b *Block, content *jsontree.Node) {
	switch {
	case content == nil:
		return
	case content.Kind == '"':
		b.Texts, b.Receipt = []Literal{t.literal(b.Line, content)}, isReceipt(content.Text)
		return
	case content.Kind != '[':
		t.other(b, content)
		return
	}
	for _, block := range content.Items {
		text := block
		if kind := block.Str("type"); kind == "" || textKinds[kind] {
			text = cmp.Or(block.Get("text"), block)
		}
		if text.Kind != '"' {
			t.other(b, block)
			continue
		}
		b.Receipt = b.Receipt || len(b.Texts) == 0 && isReceipt(text.Text)
		b.Texts = append(b.Texts, t.literal(b.Line, text))
	}
}

func (t *Transcript) add(b Block) { t.Blocks = append(t.Blocks, b) }

// Find returns a string of a line by its number, or false if the line has no such string.
func (t *Transcript) Find(line, number int) (Literal, bool) {
	if line < 0 || line >= t.Lines() {
		return Literal{}, false
	}
	if t.found.strings == nil || t.found.line != line {
		n, err := t.parse(line)
		if err != nil {
			return Literal{}, false
		}
		t.found.line, t.found.strings = line, n.Strings()
	}
	if number < 0 || number >= len(t.found.strings) {
		return Literal{}, false
	}
	return t.literal(line, t.found.strings[number]), true
}
