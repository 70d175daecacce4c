package usage

import (
	"encoding/json"
	"fmt"
)

// text is a JSON string; a value of another type counts as absent, because a client may change a field that is not
// needed here.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// modelName is {"id": …} in a status line and a string in a hook.
type modelName string

// UnmarshalJSON never fails: a model is not needed.
func (m *modelName) UnmarshalJSON(b []byte) error {
	var named struct {
		ID text `json:"id"`
	}
	var plain text
	if json.Unmarshal(b, &named) == nil && named.ID != "" {
		*m = modelName(named.ID)
	} else if json.Unmarshal(b, &plain) == nil {
		*m = modelName(plain)
	}
	return nil
}

// contextSize is the member context_window of a status line. Its total_input_tokens is not read: in many versions it is
// the sum over all requests of the session.
type contextSize struct {
	size    *number
	current *claudeUsage
}

// UnmarshalJSON takes null, and what is no object, as unknown.
func (c *contextSize) UnmarshalJSON(b []byte) error {
	var o struct {
		Size    *number         `json:"context_window_size"`
		Current json.RawMessage `json:"current_usage"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return nil //nolint:nilerr // it is unknown
	}
	c.size = o.Size
	var u *claudeUsage
	if json.Unmarshal(o.Current, &u) == nil {
		c.current = u
	}
	return nil
}

// claudeUsage is the usage of one request to the model, as its API reports it.
type claudeUsage struct {
	Input      *number         `json:"input_tokens"`
	Creation   *number         `json:"cache_creation_input_tokens"`
	Read       *number         `json:"cache_read_input_tokens"`
	Iterations json.RawMessage `json:"iterations"`
}

// prompt returns the tokens of the prompt; 0 if they are unknown. With tools that run at the server, a request has
// several iterations, and its figures are their sum: the last one is the context.
func (u *claudeUsage) prompt() (int, error) {
	if u == nil || u.Input == nil {
		return 0, nil
	}
	var steps []struct {
		Type text `json:"type"`
		claudeUsage
	}
	if json.Unmarshal(u.Iterations, &steps) == nil {
		for i := len(steps) - 1; i >= 0; i-- {
			if t := steps[i].Type; (t == "" || t == "message" || t == "fallback_message") && steps[i].Input != nil {
				return steps[i].sum()
			}
		}
	}
	return u.sum()
}

func (u *claudeUsage) sum() (total int, err error) {
	for _, n := range []*number{u.Input, u.Creation, u.Read} {
		if n == nil {
			continue
		}
		v, err := n.tokens()
		if err != nil {
			return 0, err
		}
		total += v
	}
	if total > MaxTokens {
		return 0, fmt.Errorf("%w, not %d", errTokens, total)
	}
	return total, nil
}
