package clientconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// requests ask a server for its tools.
const requests = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"mcp-funnel install","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// CountTools starts this server as a client does, in a directory, and returns how many tools it lists.
func CountTools(ctx context.Context, dir string, argv []string) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(requests)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = errors.New("it did not answer in time")
	}
	for line := range strings.Lines(string(out)) {
		var answer struct {
			ID     any
			Error  *struct{ Message string }
			Result struct {
				Tools      []json.RawMessage
				NextCursor string
			}
		}
		switch wrong := json.Unmarshal([]byte(line), &answer); {
		case err != nil:
		case wrong != nil:
			err = wrong
		case answer.Error != nil:
			err = errors.New(answer.Error.Message)
		case answer.ID == 2.0 && answer.Result.NextCursor == "":
			return len(answer.Result.Tools), nil
		}
	}
	if err == nil {
		err = errors.New("it did not list its tools")
	}
	return 0, fmt.Errorf("%w %s", err, content.ClipBytes(strings.TrimSpace(complaints.String()), 500))
}
