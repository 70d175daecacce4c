package viewer

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// This file shows pages inside a client that renders MCP Apps: one document with the style and the script of all pages,
// and app.js, which asks the client for what [Viewer.Render] returns.

// Document returns the document. It depends on nothing that was stored, and shows no page yet.
func (v *Viewer) Document() string {
	q := &request{Viewer: v, app: true}
	p := &page{Title: "View", Blocks: []any{note{"Waiting for the answer of the tool.", ""}}}
	return string(q.render(p, "page"))
}

// Render returns the title of a page, in one line, its HTML without what stands around its body, and its HTTP status.
// The page is named by its address below [Base], such as obs/ID?line=5. An error is a page too.
func (v *Viewer) Render(ctx context.Context, who Who, target string) (title, html string, status int) {
	q := &request{Viewer: v, ctx: ctx, who: who, app: true}
	at, err := url.Parse(strings.TrimPrefix(strings.TrimPrefix(target, Base), "/"))
	if err == nil {
		q.query, err = url.ParseQuery(at.RawQuery)
	}
	var p *page
	if err != nil || at.IsAbs() || at.Host != "" {
		p, status = q.failed(problemf(http.StatusBadRequest, "%s is no address of a page, such as obs/ID?line=5.", content.ClipBytes(target, 100)))
	} else {
		if path := strings.Trim(at.Path, "/"); path != "" {
			q.path = strings.Split(path, "/")
		}
		p, status = q.handle()
	}
	html = string(q.render(p, "body"))
	return content.Visible(p.Title, true), html, status // render has masked the title
}
