package viewer

import (
	"context"
	"net/url"
	"strings"
)

// Document returns a document for clients that render MCP Apps, which asks them for what [Viewer.Render] returns.
func (v *Viewer) Document() string {
	q := &request{Viewer: v, app: true}
	all := q.render(&page{Title: "View", Blocks: []any{note{"Waiting for the answer of the tool.", ""}}}, "page")
	return strings.Replace(string(all), "</body>", "<script>"+asset("app.js")+"</script></body>", 1)
}

// Render returns the HTML of the body of a page of an owner, and its HTTP status. The page is named by its address,
// with or without [Base]. Of the roots it sees what is in dirs. An error is a page too.
func (v *Viewer) Render(ctx context.Context, owner string, dirs []string, target string) (html string, status int) {
	at, err := url.Parse(target)
	if err != nil {
		at = &url.URL{Path: target} // there is no such page
	}
	q := v.request(ctx, at)
	q.who, q.app = Who{Owner: owner, Roots: dirs}, true
	p, status := q.handle()
	return string(q.render(p, "body")), status
}
