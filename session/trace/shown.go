package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxShown     = 16 << 10  // bytes of a text
	maxArgs      = 4 << 10   // bytes of arguments
	maxRecord    = 256 << 10 // longer than any record: escaping makes at most six bytes of one
	defaultShown = 256 << 20
)

// Shown is what one call was asked and what its caller was shown. Whoever appends it has masked both.
type Shown struct {
	Args    json.RawMessage `json:"args,omitempty"` // at most 4 KiB; longer ones are a JSON string of their beginning
	ArgsCut bool            `json:"args_cut,omitempty"`
	// Text has at most 16 KiB, cut at a rune. The texts of several blocks are joined by blank lines, and an image is a
	// line such as [image/png, 12,345 bytes].
	Text  string `json:"text"`
	Bytes int64  `json:"bytes"` // of the whole text
}

// ErrNotKept is the error of [Store.Shown] for a call whose text there is not.
var ErrNotKept = errors.New("what this call was asked and showed is not kept: that was switched off, there was no " +
	"room, it made room for newer texts, or it is damaged")

// notFound is the error for a call that is gone, and for a name that no call of the store can have.
func notFound(ref string) error {
	return fmt.Errorf("call %q: %w", content.ClipBytes(ref, 80), fs.ErrNotExist)
}

// record returns a text as one line of JSON, cut to its limits; nil if there is none. It sets the size in the call.
func (s *Shown) record(c *Call) []byte {
	if s == nil {
		return nil
	}
	b := *s
	b.Bytes = max(b.Bytes, int64(len(b.Text)))
	c.ShownBytes = b.Bytes
	b.Text, b.Args = content.ClipBefore(b.Text, maxShown), content.ClipJSON(s.Args, maxArgs)
	b.ArgsCut = b.ArgsCut || len(b.Args) > 0 && b.Args[0] == '"' && s.Args[0] != '"'
	record, _ := content.PlainJSON(b) // cannot fail: ClipJSON returns valid JSON
	return append(record, '\n')
}

// unnamed matches the sessions that no client named: those of a process or connection, and those that processes share.
var unnamed = content.Pattern(`^(?:[A-Z2-7]{20}|[A-Z2-7]{26}|local|stateless|investigate|link|)$`)

// Group returns the key under which calls of one owner belong together: the session if its client named it. Otherwise
// it is the session and the day in UTC, such as "local 2026-03-14". Such a session is one process over stdio and one
// session over HTTP; the commands of a day share "local", and requests without a session "stateless".
func (c Call) Group() string {
	if unnamed().MatchString(c.Session) {
		return c.Session + " " + c.At.UTC().Format(time.DateOnly)
	}
	return c.Session
}
