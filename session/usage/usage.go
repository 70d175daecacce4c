// Package usage reads how full a model's context is, as its client reports it: in the `_meta` of a request, in what a
// hook or status line writes to standard input, and in the client's own session file. It also finds the session's name,
// and remembers for each session the last report and the tokens shown since.
//
// It returns numbers and ids, never text of a conversation.
package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
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

// kinds names the kinds of JSON values that are no strings.
var kinds = map[jsontext.Kind]string{'{': "object", '[': "array", '0': "number", 't': "bool", 'f': "bool"}

// ParseMeta parses `_meta["funnel/usage"]`. Its error is one line that names the field and what it must be. Unknown
// members are ignored, because a newer client may send more; so is the source, which a client cannot choose.
func ParseMeta(raw json.RawMessage) (Usage, error) {
	m, err := parse(raw)
	switch {
	case errors.Is(err, jsontree.ErrFollows):
		return Usage{}, fmt.Errorf("_meta %s: text after the object; send one object", MetaKey)
	case err != nil:
		return Usage{}, fmt.Errorf("_meta %s is not a JSON object; send %s", MetaKey, fields)
	case m.Kind != '{' && !m.IsNull():
		return Usage{}, fmt.Errorf("_meta %s must be an object with %s", MetaKey, fields)
	case m.IsNull("prompt_tokens"):
		return Usage{}, fmt.Errorf("_meta %s: prompt_tokens is missing; send the tokens of the prompt", MetaKey)
	}
	u := Usage{Source: FromMeta}
	numbers := map[string]*int{
		"prompt_tokens": &u.PromptTokens, "response_tokens_reserved": &u.ResponseTokensReserved, "window": &u.Window,
	}
	names := map[string]*string{"session": &u.Session, "turn": &u.Turn}
	for name := range strings.SplitSeq(fields, ", ") {
		switch v := m.Get(name); {
		case v.IsNull():
		case numbers[name] != nil:
			*numbers[name], err = tokens(raw, v)
		case !v.IsString():
			err = fmt.Errorf("must not be a JSON %s", kinds[v.Kind])
		case name == "at":
			if u.At, err = parseTime(v.Text); err != nil {
				err = errors.New(`must be a time such as "2026-03-14T09:26:53Z"`)
			}
		case validID(v.Text):
			*names[name] = v.Text
		default:
			err = fmt.Errorf("must be 1 to %d printable characters", maxID)
		}
		if err != nil {
			return Usage{}, fmt.Errorf("_meta %s: %s %w", MetaKey, name, err)
		}
	}
	return u, nil
}

// parse parses one JSON value as encoding/json does.
func parse(text []byte) (*jsontree.Node, error) {
	return jsontree.Parse(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
}

var errTokens = fmt.Errorf("must be a whole number from 0 to %d", MaxTokens)

// tokens returns a number of tokens; 0 for a value that is missing or null. 4096.0 and 1e5 are whole numbers too: some
// languages write them so. The error quotes the value in the text that it was parsed from, unless that is nil.
func tokens(text []byte, n *jsontree.Node) (int, error) {
	if n.IsNull() {
		return 0, nil
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case n.Kind == '0' && err == nil && f >= 0 && f <= MaxTokens && f == math.Trunc(f):
		return int(f), nil
	case text == nil:
		return 0, errTokens
	}
	return 0, fmt.Errorf("%w, not %s", errTokens, content.ClipEnd(string(text[n.Start:n.End]), 40))
}

// Tokens returns a number of tokens; 0 for a value that is none.
func Tokens(n *jsontree.Node) int {
	count, _ := tokens(nil, n)
	return count
}

// promptIn returns the tokens of the prompt by the usage that the Anthropic API reports of a request; 0 if they are
// unknown. With tools that run at the API, a request has several iterations, and its figures are their sum: the last
// one is the context.
func promptIn(text []byte, u *jsontree.Node) (total int, err error) {
	request := u
	for _, step := range u.Elements("iterations") {
		kind := step.Str("type")
		if !step.IsNull("input_tokens") && (kind == "" || kind == "message" || kind == "fallback_message") {
			request = step
		}
	}
	if u.IsNull("input_tokens") {
		return 0, nil
	}
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		n, err := tokens(text, request.Get(name))
		if err != nil {
			return 0, err
		}
		total += n
	}
	if total > MaxTokens {
		return 0, fmt.Errorf("%w, not %d", errTokens, total)
	}
	return total, nil
}

// validID reports whether a client's id can name a session: 1 to 200 bytes, no control or hidden characters.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && content.Visible(id, false) == id && !strings.ContainsAny(id, "\n\t")
}

// nameIn returns the id in a member if it can name a session, turn or model, else "".
func nameIn(n *jsontree.Node, names ...string) string {
	if id := n.Str(names...); validID(id) {
		return id
	}
	return ""
}

// parseTime accepts RFC 3339 within the years that a running client can mean.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err == nil && (at.Year() < 2000 || at.Year() > 9000) {
		err = errors.New("no such year")
	}
	return at.UTC(), err
}
