// Package usage reads how full a model's context is, as its client reports it: in the `_meta` of a request, in what a
// hook or status line writes to standard input, and in the client's own session file. It also finds the session's name.
//
// It returns numbers and ids, never text of a conversation.
package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Usage is one report of how many tokens a model's context holds.
type Usage struct {
	Session                string    `json:"session,omitempty"`
	Turn                   string    `json:"turn,omitempty"` // names the request to the model; "" if unknown
	PromptTokens           int       `json:"prompt_tokens"`
	ResponseTokensReserved int       `json:"response_tokens_reserved,omitempty"` // 0: unknown
	Window                 int       `json:"window,omitempty"`                   // 0: unknown
	Model                  string    `json:"model,omitempty"`                    // its name; "" if unknown
	At                     time.Time `json:"at,omitzero"`                        // when the model was asked
	Source                 string    `json:"source"`
}

// Sources of a report.
const (
	FromMeta       = "meta"
	FromStatusLine = "claude-status-line"
	FromHook       = "claude-hook"
	FromClaude     = "claude-session-file"
	FromCodex      = "codex-session-file"
)

// Bounds of a report. A larger figure is a mistake or a lie: no model has such a window.
const (
	MaxTokens = 100_000_000
	maxID     = 200 // bytes of a session, turn or tool-use id
)

// MetaKey and SessionMetaKey are the keys of `_meta` that any client may set: its usage, and its session's name alone.
const (
	MetaKey        = "funnel/usage"
	SessionMetaKey = "funnel/session"
)

// fields are the members of `_meta["funnel/usage"]`, in the order in which errors name them.
const fields = "session, turn, prompt_tokens, response_tokens_reserved, window, at"

// ParseMeta parses `_meta["funnel/usage"]`. Its error is one line that names the field and what it must be. Unknown
// members are ignored, because a newer client may send more; so is the source, which a client cannot choose.
func ParseMeta(raw json.RawMessage) (Usage, error) {
	var m struct {
		Session  *string `json:"session"`
		Turn     *string `json:"turn"`
		Prompt   *number `json:"prompt_tokens"`
		Reserved *number `json:"response_tokens_reserved"`
		Window   *number `json:"window"`
		At       *string `json:"at"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&m); err != nil {
		return Usage{}, metaError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usage{}, fmt.Errorf("_meta %s: text after the object; send one object", MetaKey)
	}
	if m.Prompt == nil {
		return Usage{}, fmt.Errorf("_meta %s: prompt_tokens is missing; send the tokens of the prompt", MetaKey)
	}
	u := Usage{Source: FromMeta}
	for _, f := range []struct {
		name  string
		value *number
		to    *int
	}{
		{"prompt_tokens", m.Prompt, &u.PromptTokens},
		{"response_tokens_reserved", m.Reserved, &u.ResponseTokensReserved},
		{"window", m.Window, &u.Window},
	} {
		n, err := f.value.tokens()
		if err != nil {
			return Usage{}, fmt.Errorf("_meta %s: %s %w", MetaKey, f.name, err)
		}
		*f.to = n
	}
	for _, f := range []struct {
		name  string
		value *string
		to    *string
	}{{"session", m.Session, &u.Session}, {"turn", m.Turn, &u.Turn}} {
		if f.value == nil {
			continue
		}
		if !validID(*f.value) {
			return Usage{}, fmt.Errorf("_meta %s: %s must be 1 to %d printable characters", MetaKey, f.name, maxID)
		}
		*f.to = *f.value
	}
	if m.At != nil {
		at, err := parseTime(*m.At)
		if err != nil {
			return Usage{}, fmt.Errorf(`_meta %s: at must be a time such as "2026-03-14T09:26:53Z"`, MetaKey)
		}
		u.At = at
	}
	return u, nil
}

// metaError words an error of the decoder.
func metaError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("_meta %s must be an object with %s", MetaKey, fields)
		}
		return fmt.Errorf("_meta %s: %s must not be a JSON %s", MetaKey, wrong.Field, wrong.Value)
	}
	return fmt.Errorf("_meta %s is not a JSON object; send %s", MetaKey, fields)
}

// number is a JSON number as it was written, so that 1e18 and 1.5 are refused by a message that quotes them.
type number string

// UnmarshalJSON accepts any value; tokens reports what is wrong with it.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = number(b)
	return nil
}

var errTokens = fmt.Errorf("must be a whole number from 0 to %d", MaxTokens)

// tokens returns the number; 0 for a nil number. 4096.0 and 1e5 are whole numbers too: some languages write them so.
func (n *number) tokens() (int, error) {
	if n == nil {
		return 0, nil
	}
	var f float64
	if json.Unmarshal([]byte(*n), &f) != nil || f < 0 || f > MaxTokens || f != math.Trunc(f) {
		return 0, fmt.Errorf("%w, not %s", errTokens, content.ClipEnd(string(*n), 40))
	}
	return int(f), nil
}

// validID reports whether a client's id can name a session: 1 to 200 bytes, no control or hidden characters.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && content.Visible(id, false) == id && !strings.ContainsAny(id, "\n\t")
}

// parseTime accepts RFC 3339 within the years that a running client can mean.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err == nil && (at.Year() < 2000 || at.Year() > 9000) {
		err = errors.New("no such year")
	}
	return at.UTC(), err
}
