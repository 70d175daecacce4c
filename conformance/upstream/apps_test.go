//go:build linux

package upstream_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// Tools of upstream servers name the document for clients that render MCP Apps, and it shows what is stored of their
// answers. With --observe nothing is added.
func TestAppsOfUpstreamServers(t *testing.T) {
	inParallel(t)
	const renders = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`
	plain := startWith(t, "{}", wrapped(t.TempDir(), sick("none", "")...)...)
	expect.Lacks(t, plain.request("tools/list", "{}"), "_meta", "funnel_view")
	c := startWith(t, renders, wrapped(t.TempDir(), sick("none", "")...)...)
	metaOf := map[string]string{}
	for _, tool := range listed(t, c.request("tools/list", "{}")) {
		metaOf[tool.Name] = string(tool.Meta)
	}
	expect.Contains(t, metaOf["rows"], `"resourceUri":"ui://funnel/observation"`, `"visibility":["model"]`)
	expect.Equal(t, metaOf["slice"], "")
	expect.Contains(t, c.request("resources/read", `{"uri":"ui://funnel/observation"}`), "<!doctype html>")
	var answer struct {
		Meta struct {
			Receipt struct {
				ID string `json:"observation_id"`
			} `json:"funnel/receipt"`
		} `json:"_meta"`
	}
	expect.Must(t, json.Unmarshal([]byte(c.call("rows", "{}")), &answer))
	expect.Contains(t, c.call("funnel_view", `{"page":"obs/`+answer.Meta.Receipt.ID+`"}`), `"text":"funnel_view: OK"`)

	command := wrapped(t.TempDir(), sick("none", "")...)
	observed := startWith(t, renders, slices.Insert(command, slices.Index(command, "wrap")+1, "--observe")...)
	expect.Lacks(t, observed.request("tools/list", "{}"), "_meta", "funnel_view")
}

type listedTool struct {
	Name string
	Meta json.RawMessage `json:"_meta"`
}

func listed(t *testing.T, result string) []listedTool {
	t.Helper()
	var list struct{ Tools []listedTool }
	expect.Must(t, json.Unmarshal([]byte(result), &list))
	return list.Tools
}
