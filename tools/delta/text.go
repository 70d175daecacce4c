package delta

import (
	"bytes"
	"encoding/json"
	"hash/maphash"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxCompared is how many bytes of an output are compared line by line.
const maxCompared = 1 << 20

// Text is an output as far as it is compared. A longer output is compared as a whole, and exactly. NewText makes one.
type Text struct {
	sum   maphash.Hash
	text  []byte
	over  bool // longer than maxCompared
	exact bool
}

// changing matches what differs between two runs of the same program: times of day, dates, durations, addresses. It
// never reaches over the end of a line.
var changing = content.Pattern(
	`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(\.\d+)?\b|` +
		`\b\d+(\.\d+)?[ \t]?(ns|µs|us|ms|s|sec|secs|seconds|m|min|minutes)\b|0x[0-9a-f]{6,}`,
)

// NewText returns an empty text. exact says that times and addresses count, too: they are data, and do not differ only
// because a program ran again.
func NewText(exact bool) Text {
	t := Text{exact: exact}
	t.sum.SetSeed(seed)
	return t
}

var seed = maphash.MakeSeed()

// Add adds a part of the text.
func (t *Text) Add(b []byte) {
	_, _ = t.sum.Write(b)
	if t.over = t.over || len(t.text)+len(b) > maxCompared; t.over {
		t.text = nil
	} else {
		t.text = append(t.text, b...)
	}
}

// lines returns the lines of a text as they are, and as they are compared.
func (t *Text) lines(text []byte) (all [][]byte, compared []byte) {
	text = append(bytes.TrimSuffix(text, []byte("\n")), '\n')
	all = bytes.Split(text[:len(text)-1], []byte("\n"))
	if t.exact {
		return all, text
	}
	return all, changing().ReplaceAll(text, []byte("#"))
}

// Indented returns a text that is JSON on one line with a line for each value; ok is false for any other text.
func Indented(text []byte) (lines []byte, ok bool) {
	var b bytes.Buffer
	text = bytes.TrimSpace(text)
	ok = len(text) > 0 && (text[0] == '{' || text[0] == '[') && !bytes.ContainsRune(text, '\n') &&
		json.Indent(&b, text, "", "") == nil
	return b.Bytes(), ok
}
