// Package tokens says what a text costs a model to read.
//
// It counts; it does not split text into tokens for anyone, and it decides
// nothing about what is shown.
//
// The counts equal those of tiktoken-go, the oracle of its tests, which is not
// used for the counting itself: it takes time quadratic in the length of an unbroken run.
package tokens

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/pkoukk/tiktoken-go"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// Encoding is the name of a vocabulary.
type Encoding string

// The encodings counted.
const (
	O200k  Encoding = "o200k_base" // the default
	CL100k Encoding = "cl100k_base"
)

// Parse takes an encoding's name or a model's ("gpt-4o", "claude-…") and returns
// its encoding. Models whose vocabulary is not public (Claude, Gemini and
// others) are counted as o200k_base; "" is o200k_base. Other names are an error.
func Parse(name string) (Encoding, error) {
	n := strings.ToLower(strings.TrimSpace(name))
	switch Encoding(n) {
	case "", O200k:
		return O200k, nil
	case CL100k:
		return CL100k, nil
	}
	if e, ok := tiktoken.MODEL_TO_ENCODING[n]; ok {
		return supported(name, e)
	}
	for prefix, e := range tiktoken.MODEL_PREFIX_TO_ENCODING {
		if strings.HasPrefix(n, prefix) {
			return supported(name, e)
		}
	}
	for _, prefix := range []string{"gpt-5", "gpt-oss", "chatgpt-", "o1", "o3", "o4", "claude", "gemini", "mistral", "llama", "deepseek", "qwen", "kimi", "grok"} {
		if strings.HasPrefix(n, prefix) {
			return O200k, nil
		}
	}
	return "", fmt.Errorf("unknown model or encoding %.60q; use %s, %s or a model's name such as gpt-4o, gpt-4, claude-sonnet, gemini-pro", name, O200k, CL100k)
}

func supported(name, encoding string) (Encoding, error) {
	switch e := Encoding(encoding); e {
	case O200k, CL100k:
		return e, nil
	}
	return "", fmt.Errorf("model %.60q uses %s, which is not supported; use %s or %s", name, encoding, O200k, CL100k)
}

// Counter counts tokens of one encoding. Safe for concurrent use.
type Counter struct {
	encoding   Encoding
	piece      func(text []byte) int // the length of its first piece
	vocabulary func() *tables.Vocabulary
	desks      sync.Pool // of *desk
}

// New returns a counter at once: its vocabulary is embedded, and read in place.
// An encoding that [Parse] does not return is a mistake of the program and panics.
func New(e Encoding) *Counter {
	switch e {
	case O200k:
		return &Counter{encoding: e, piece: nextO200k, vocabulary: tables.O200k}
	case CL100k:
		return &Counter{encoding: e, piece: nextCL100k, vocabulary: tables.CL100k}
	}
	panic("tokens: no encoding " + string(e))
}

// Encoding is what the counter counts by.
func (c *Counter) Encoding() Encoding { return c.encoding }

// Count is exact, and takes time in proportion to the text's length however
// long its unbroken runs. Invalid UTF-8 counts as U+FFFD.
func (c *Counter) Count(text string) int {
	return c.all(unsafe.Slice(unsafe.StringData(text), len(text))) // it is only read, and a copy would cost a tenth of the counting
}

func (c *Counter) all(text []byte) int {
	n, _ := c.count(text, true)
	return n
}

// count counts the pieces of text and returns how many bytes they took. Where more
// text may follow (not final), pieces that could still grow are left.
func (c *Counter) count(text []byte, final bool) (n, used int) {
	d := c.desk()
	defer c.desks.Put(d)
	text = valid(text)
	certain := len(text)
	if !final {
		certain = settled(text)
	}
	for used < len(text) {
		size := c.piece(text[used:])
		if used+size > certain {
			break
		}
		n += d.next(text[used:], size)
		used += size
	}
	return n, used
}

func (c *Counter) desk() *desk {
	if d, ok := c.desks.Get().(*desk); ok {
		return d
	}
	return &desk{Vocabulary: c.vocabulary()}
}
