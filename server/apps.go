package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// This file offers the pages for people to clients that render MCP Apps, the extension io.modelcontextprotocol/ui of
// 2026-01-26. A client that does not declare it gets nothing of this: no resource, no tool, no member of _meta.

// AppTool is the tool that returns pages to the document of an [App]. Clients do not offer it to a model.
const AppTool = "funnel_view"

const (
	appExtension = "io.modelcontextprotocol/ui"
	appMIME      = "text/html;profile=mcp-app"
	appURI       = "ui://funnel/observation"
	pageMetaKey  = metaPrefix + "page" // the member of _meta that holds a page
)

// App is the pages for people, as clients show them beside the answers of tools.
type App struct {
	// Document returns an HTML document that asks for its pages by calling [AppTool], and loads nothing else.
	Document func() string
	// Page returns the title, in one line, the HTML and the HTTP status of a page of an owner, who may see files in dirs
	// only. The page is named by its address, such as obs/ID?line=5.
	Page func(ctx context.Context, owner string, dirs []string, page string) (title, html string, status int)
}

// app returns what a client that renders MCP Apps gets; nil for other clients.
func (k *call) app() *App {
	s := k.conn.server
	if s.observes() || !rendersApps(k.capabilities()) {
		return nil
	}
	return s.options.App
}

// rendersApps reports whether a client declares that it renders MCP Apps of our type.
func rendersApps(c mcp.ClientCapabilities) bool {
	ui, _ := c.Extensions[appExtension].(map[string]any)
	types, _ := ui["mimeTypes"].([]any)
	return slices.Contains(types, any(appMIME))
}

// withApp returns a list of tools in which those whose answers can be receipts name the document, and that ends with
// AppTool. Pages of the other tools are read by the model, and kept only on request: a frame beside each would be noise.
//
// The tools keep their annotations: VS Code was reported to ignore the apps of annotated tools (microsoft/vscode#336916),
// but its code joins neither to the other, and without the hints it asks the user before every search.
func (s toolArea) withApp(list []any) []any {
	// The document calls no tool but AppTool, so that no other is visible to it.
	ui := map[string]any{"resourceUri": appURI, "visibility": []string{"model"}}
	for i, t := range list {
		switch t := t.(type) {
		case mcp.Tool:
			if i < len(s.options.Tools) && !s.options.Tools[i].Paged {
				t.Meta = &mcp.Meta{AdditionalFields: map[string]any{"ui": ui, "ui/resourceUri": appURI}} // older clients read the second
				list[i] = t
			}
		case json.RawMessage: // of an upstream server, which may have an app of its own
			entry := membersOf(t)
			meta := map[string]any{"ui": ui, "ui/resourceUri": appURI}
			for name, value := range membersOf(entry["_meta"]) {
				meta[name] = value
			}
			if _, own := membersOf(entry["_meta"])["ui"]; !own {
				entry["_meta"], _ = json.Marshal(meta) // it came as JSON
				list[i] = entry
			}
		}
	}
	return append(list, appTool())
}

func appTool() mcp.Tool {
	t := mcp.NewTool(AppTool, mcp.WithTitleAnnotation("View"), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithDestructiveHintAnnotation(false), mcp.WithOpenWorldHintAnnotation(false),
		mcp.WithDescription("Returns a page to the view of "+appURI+"."),
		mcp.WithString("page", mcp.Required(), mcp.Description("Its address, such as obs/ID?line=5")))
	t.Meta = &mcp.Meta{AdditionalFields: map[string]any{"ui": map[string]any{"visibility": []string{"app"}}}}
	return t
}

// showPage answers a call of AppTool: the page is in _meta, which no client shows to a model.
func (s toolArea) showPage(ctx context.Context, k *call, app *App) (any, error) {
	raw, fault := arguments(k.frame)
	if fault != nil {
		return nil, fault
	}
	var args struct {
		Page *string `json:"page"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&args) != nil || args.Page == nil {
		return nil, jsonrpc.BadParams(`%s takes one argument, page: an address such as "obs/ID?line=5"`, AppTool)
	}
	sources, done, err := k.narrowedSources(ctx, s.options.Sources(k.conn.account))
	if err != nil {
		return nil, err
	}
	dirs := []string{} // not nil, which would be all
	for _, root := range sources.Roots {
		dirs = append(dirs, root.Dir())
	}
	done()
	title, html, status := app.Page(ctx, k.conn.account.Owner, dirs, *args.Page)
	result := textResult(status != http.StatusOK, fmt.Sprintf("%s: %s", AppTool, content.ClipBytes(title, jsonrpc.MaxEcho)))
	result.Meta = &mcp.Meta{AdditionalFields: map[string]any{pageMetaKey: map[string]any{"title": title, "html": html}}}
	return result, nil
}

// appResource is the document's entry in resources/list.
func appResource() mcp.Resource {
	r := mcp.NewResource(appURI, "view", mcp.WithMIMEType(appMIME),
		mcp.WithResourceDescription("Shows people the observations of this server"))
	r.Title = "View"
	return r
}

// document returns the document as the content of its resource.
func (a *App) document() *mcp.ReadResourceResult {
	none := []string{}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{
		URI: appURI, MIMEType: appMIME, Text: a.Document(),
		Meta: map[string]any{"ui": map[string]any{
			"csp": map[string]any{
				"connectDomains": none, "resourceDomains": none, "frameDomains": none, "baseUriDomains": none,
			},
			"permissions":   map[string]any{"clipboardWrite": map[string]any{}}, // for "copy"
			"prefersBorder": true,
		}},
	}}}
}
