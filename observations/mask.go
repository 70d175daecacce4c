package observations

import (
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
)

// mask masks what looks like a secret in arguments. A tombstone outlives its observation by months and needs its
// arguments only so that the call can be made again. Best effort, on at most 4 KiB; what is no JSON is dropped.
func mask(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return nil
	}
	return secrets.New().JSON(args)
}
