package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// App is the pages for people, for clients that render MCP Apps (extension io.modelcontextprotocol/ui of 2026-01-26).
// Clients that do not declare it get nothing of this. resources/list has no document: hosts find it by the tools.
type App interface {
	Document() string // HTML that gets its pages by calling [AppTool]
	// Render returns the HTML and HTTP status of a page, named by its address, of an owner who sees files in dirs only.
	Render(ctx context.Context, owner string, dirs []string, page string) (html string, status int)
}

// AppTool is the tool that returns pages to the document of an [App]. Clients do not offer it to a model.
const AppTool = "funnel_view"

const (
	appMIME = "text/html;profile=mcp-app"
	appURI  = "ui://funnel/observation"

	// The document calls no tool but AppTool, so no other is visible to it. Older clients read the second member.
	receiptMeta = `{"ui":{"resourceUri":"` + appURI + `","visibility":["model"]},"ui/resourceUri":"` + appURI + `"}`
	appTool     = `{"name":"` + AppTool + `","title":"View","description":"Returns a page to the view of this server.",` +
		`"inputSchema":{"type":"object","properties":{"page":{"type":"string"}},"required":["page"]},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"ui":{"visibility":["app"]}}}`
	documentUI = `{"csp":{"connectDomains":[],"resourceDomains":[],"frameDomains":[],"baseUriDomains":[]},` +
		`"permissions":{"clipboardWrite":{}},"prefersBorder":true}`
)

// app returns what a client that renders MCP Apps gets; nil for other clients.
func (k *call) app() App {
	ui, _ := k.capabilities().Extensions["io.modelcontextprotocol/ui"].(map[string]any)
	types, _ := ui["mimeTypes"].([]any)
	if k.conn.server.observes() || !slices.Contains(types, any(appMIME)) {
		return nil
	}
	return k.conn.server.options.App
}

// withApp adds AppTool to a list, and the document to tools whose answers can be receipts: pages of others are for the
// model, and stored only on request. Annotations stay: VS Code was reported to show no app of a tool that has some
// (microsoft/vscode#336916), but its code has no such condition, and without them it asks before each search.
func (s toolArea) withApp(list []any) []any {
	for i, t := range list {
		if i < len(s.offers.Tools) && (i >= len(s.options.Tools) || s.options.Tools[i].Paged) {
			continue
		}
		raw, _ := json.Marshal(t) // it is a listing
		entry, meta := membersOf(raw), membersOf(json.RawMessage(receiptMeta))
		own := membersOf(entry["_meta"])
		if own["ui"] == nil && own["ui/resourceUri"] == nil { // an upstream server may have an app
			maps.Copy(meta, own)
			entry["_meta"], _ = json.Marshal(meta) // it came as JSON
			list[i] = entry
		}
	}
	return append(list, json.RawMessage(appTool))
}

// showPage answers a call of AppTool: the page is in _meta, which clients do not show to a model.
func (s toolArea) showPage(ctx context.Context, k *call) (any, error) {
	args := membersOf(k.frame.Params["arguments"])
	page, err := jsonrpc.Unquote(args["page"])
	if err != nil || len(args) != 1 {
		return nil, jsonrpc.BadParams(`%s takes one argument, page: an address such as "obs/ID?line=5"`, AppTool)
	}
	sources, done, err := k.narrowedSources(ctx, s.options.Sources(k.conn.account))
	if err != nil {
		return nil, err
	}
	defer done()
	dirs := []string{} // not nil, which would be all
	for _, root := range sources.Roots {
		dirs = append(dirs, root.Dir())
	}
	html, status := k.app().Render(ctx, k.conn.account.Owner, dirs, page)
	result := textResult(status != http.StatusOK, AppTool+": "+http.StatusText(status))
	result.Meta = &mcp.Meta{AdditionalFields: map[string]any{"funnel/page": map[string]string{"html": html}}}
	return result, nil
}
