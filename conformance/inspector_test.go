package conformance

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// inspector runs the command line of the MCP inspector against the server of target and returns its standard output,
// the result as JSON.
func inspector(t *testing.T, env, target []string, args ...string) (result map[string]any, stderr string) {
	t.Helper()
	cmd := nodeCommand(
		t, t.Context(), "node_modules/.bin/mcp-inspector", append(append([]string{"--cli"}, target...), args...)...,
	)
	cmd.Env = env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	expect.Must(t, cmd.Run(), "inspector %v\n%s%s", args, out.String(), errs.String())
	expect.Must(t, json.Unmarshal(out.Bytes(), &result), "inspector %v\n%s", args, out.String())
	return result, errs.String()
}

func mustAbs(t testing.TB, path string) string {
	t.Helper()
	return expect.Value(filepath.Abs(path))(t)
}

// texts returns the text blocks of a tools/call result.
func texts(t *testing.T, result map[string]any) string {
	t.Helper()
	var all []string
	blocks, _ := result["content"].([]any)
	for _, b := range blocks {
		if m, ok := b.(map[string]any); ok {
			text, _ := m["text"].(string)
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no content in %v", result)
	}
	return strings.Join(all, "\n")
}

// TestInspector is the main job as another project's client sees it: list the tools, make a large search, work on what
// was kept, read it as a resource, get a prompt. At full size it goes over every transport in both eras.
func TestInspector(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	env := environment(t)
	// The words before the inspector's own flags are the server's command. It gives a server only what it is told to.
	stdio := []string{binary(t), "--cwd", mustAbs(t, ".."), "-e", "MCP_FUNNEL_ROOT=" + mustAbs(t, "..")}
	for _, kv := range env {
		if strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "XDG_") {
			stdio = append(stdio, "-e", kv)
		}
	}
	url := serveHTTP(t, "--root", mustAbs(t, "..")).url
	authorization := []string{"--header", "Authorization: Bearer " + testToken}
	ways := map[string][]string{
		"stdio": stdio,
		"http":  append([]string{url + "/mcp", "--transport", "http"}, authorization...),
		"sse":   append([]string{url + "/sse", "--transport", "sse"}, authorization...),
	}
	for way, target := range ways {
		for _, era := range []string{"legacy", "modern"} {
			if !promise.Full() && ((way == "stdio") != (era == "legacy") || way == "sse") {
				continue // make wire has the others
			}
			t.Run(way+"/"+era, func(t *testing.T) {
				t.Parallel()
				inspect(t, env, append(target, "--protocol-era", era))
			})
		}
	}
}

// inspect starts node for every request.
func inspect(t *testing.T, env, target []string) {
	list, complaints := inspector(t, env, target, "--method", "tools/list", "--strict")
	if n := len(list["tools"].([]any)); n != 6 {
		t.Errorf("tools/list has %d tools", n)
	}
	if strings.Contains(complaints, "error") {
		t.Errorf("tools/list --strict complains:\n%s", complaints)
	}
	large, _ := inspector(
		t, env, target, "--method", "tools/call", "--tool-name", "search", "--tool-arg", "pattern=func", "--tool-arg",
		"glob=*.go",
	)
	receipt := texts(t, large)
	m := regexp.MustCompile(`^LARGE OUTPUT DETECTED: kept whole as (obs:[0-9a-z]{12})\n`).FindStringSubmatch(receipt)
	if m == nil {
		t.Fatalf("no receipt:\n%s", receipt)
	}
	rows, _ := inspector(
		t, env, target, "--method", "tools/call", "--tool-name", "jq", "--tool-arg", "source="+m[1], "--tool-arg",
		"slurp=true", "--tool-arg", "filter=length",
	)
	if got := strings.TrimSpace(texts(t, rows)); !regexp.MustCompile(`^[0-9]+$`).MatchString(got) ||
		!strings.Contains(receipt, got+" matches in") {
		t.Errorf("jq counts %q, the receipt says:\n%s", got, receipt)
	}
	id := strings.TrimPrefix(m[1], "obs:")
	read, _ := inspector(t, env, target, "--method", "resources/read", "--uri", "observation://"+id+"/receipt")
	if text, err := json.Marshal(read); err != nil || !strings.Contains(string(text), "LARGE OUTPUT DETECTED") {
		t.Errorf("resources/read: %s %v", text, err)
	}
	prompt, _ := inspector(t, env, target, "--method", "prompts/get", "--prompt-name", "director")
	if text, err := json.Marshal(prompt); err != nil || !strings.Contains(string(text), "LARGE OUTPUT DETECTED") {
		t.Errorf("prompts/get: %s %v", text, err)
	}
}
