package conformance

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// The maximum cost of the product in a context before the first call.
const (
	maxList         = 1200 // tokens of the tools as sent, o200k_base
	maxInstructions = 150
)

// listed is a tool in the answer to tools/list.
type listedTool struct {
	Name, Title, Description string
	InputSchema              struct {
		Type       string
		Properties map[string]json.RawMessage
		Required   []string
	}
	Annotations map[string]any
}

// listTools requests tools/list from the binary and returns the list, parsed and as it was sent.
func listTools(t *testing.T, flags ...string) (raw json.RawMessage, all []listedTool) {
	t.Helper()
	m, err := serveStdio(t, mustAbs(t, ".."), flags...).ask("tools/list", object{})
	var listed struct{ Tools json.RawMessage }
	if err == nil {
		err = errors.Join(json.Unmarshal(m.Result, &listed), json.Unmarshal(listed.Tools, &all))
	}
	expect.Must(t, err)
	return listed.Tools, all
}

func TestCatalog(t *testing.T) {
	raw, all := listTools(t)
	if n := tokens.New(tokens.O200k).Count(string(raw)); n > maxList {
		t.Errorf("tools/list costs %d tokens, at most %d", n, maxList)
	}
	var names []string
	for _, tool := range all {
		names = append(names, tool.Name)
		if tool.Title == "" || tool.Description == "" || len(tool.Description) > 2000 {
			t.Errorf("%s: a tool has a title and a description (clients clip at 2 KB)", tool.Name)
		}
		for _, hint := range []string{"readOnlyHint", "openWorldHint"} {
			if _, set := tool.Annotations[hint]; !set {
				t.Errorf("%s: %s is not set: unset means destructive, open world", tool.Name, hint)
			}
		}
		if _, bad := tool.InputSchema.Properties["file_path"]; bad {
			t.Errorf(
				"%s: an argument named file_path makes a common client replace the result by the raw file",
				tool.Name,
			)
		}
		for _, r := range tool.InputSchema.Required {
			if _, there := tool.InputSchema.Properties[r]; !there {
				t.Errorf("%s: %q is required and not described", tool.Name, r)
			}
		}
	}
	if want := []string{"search", "find", "read", "grep", "jq", "slice"}; !slices.Equal(names, want) {
		t.Errorf("offered: %v, want %v", names, want)
	}
	if n := tokens.New(tokens.O200k).Count(prompts.Instructions("")); n > maxInstructions {
		t.Errorf("the instructions cost %d tokens, at most %d", n, maxInstructions)
	}
}

// TestToolsets compares what each toolset adds to the list: its tools, within their budget.
func TestToolsets(t *testing.T) {
	core, ours := listTools(t)
	for _, tt := range []struct {
		tools  string
		tokens int
		flags  []string
	}{
		{"run", 130, []string{"--toolsets", "core,shell"}},
		{"run", 130, []string{"--toolsets", "core,shell", "--allow-write", ".."}},
		{"run", 130, []string{"--toolsets", "core,shell", "--sandbox", "off"}},
		{"deliver", 180, []string{"--toolsets", "core,documents"}},
		{"edit write move remove", 450, []string{"--toolsets", "core,write"}},
		{"investigate", 230, []string{"--toolsets", "core,investigation"}},
		{"ask", 160, []string{"--toolsets", "core,answers"}},
	} {
		raw, all := listTools(t, tt.flags...)
		count := tokens.New(tokens.O200k).Count
		if n := count(string(raw)) - count(string(core)); n > tt.tokens || n < 20 {
			t.Errorf("%v: %s costs %d tokens, at most %d", tt.flags, tt.tools, n, tt.tokens)
		} else {
			t.Logf("%v: %d tokens", tt.flags, n)
		}
		var added []string
		for _, tool := range all[len(ours):] {
			added = append(added, tool.Name)
		}
		if strings.Join(added, " ") != tt.tools ||
			strings.Contains(all[len(all)-1].Description, "not contained") != slices.Contains(tt.flags, "off") {
			t.Errorf("%v: %v: %s", tt.flags, added, all[len(all)-1].Description)
		}
	}
}
