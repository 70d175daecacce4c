package viewer

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

const maxExport = 32 << 20 // bytes of a file

// Of the HTML of templates, in which texts have neither quotes nor angle brackets, these match what needs a server, and
// attributes one by one.
var (
	served = regexp.MustCompile(
		`(?s)<form.*?</form>|<button.*?</button>|<(?:p|div) class="(?:links|pager)">.*?</(?:p|div)>`)
	attribute = regexp.MustCompile(`\s[a-z-]+="[^"]*"`)
)

// standing returns HTML without forms, ways to other pages, and addresses that lead out of it.
func standing(page []byte) []byte {
	return attribute.ReplaceAllFunc(served.ReplaceAll(page, nil), func(b []byte) []byte {
		name, value, _ := strings.Cut(string(b[1:]), `="`)
		if slices.Contains([]string{"href", "src", "action"}, name) &&
			!strings.HasPrefix(value, "#") && !strings.HasPrefix(value, "data:") {
			return nil
		}
		return b
	})
}

// Export writes an observation, obs:ID, or a session as one HTML file: all pages of its default view and what the model
// was shown, masked as in answers. The file has at most 32 MiB, says what it lacks, and needs no server and no script.
func (v *Viewer) Export(ctx context.Context, who Who, handle string, out io.Writer) error {
	q := &request{Viewer: v, ctx: ctx, who: who, path: []string{"sessions", handle}, query: url.Values{}}
	if id, ok := strings.CutPrefix(handle, observations.Prefix); ok {
		q.path = []string{"obs", id}
	}
	p, err := q.exported()
	if err != nil {
		return err
	}
	return q.export(p, out)
}

// exported returns the first page of what is exported. From now on the pages of the request hold their pictures, and
// nothing is unmasked.
func (q *request) exported() (*page, error) {
	kind, key, _ := strings.Cut(strings.Join(q.path, "/"), "/")
	if kind == "obs" && len(q.path) == 2 || kind == "sessions" && key+q.query.Get("key") != "" {
		q.app, q.plain = true, false
		for _, asks := range []string{"export", "grep", "jq"} {
			q.query.Del(asks)
		}
		return q.load(nil)
	}
	return nil, problemf(http.StatusNotFound, "An export is of obs:ID or of a session.")
}

// download sends the export of a page.
func (q *request) download(w http.ResponseWriter) error {
	p, err := q.exported()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", look().boxed)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+q.path[0]+`.html"`)
	if q.export(p, w) != nil {
		panic(http.ErrAbortHandler) // the file would look whole
	}
	return nil
}

// export writes what begins with a page.
func (q *request) export(p *page, out io.Writer) (err error) {
	room, calls := maxExport-1<<10, []url.Values{} // the last line has room
	write := func(part string, p *page) {
		b := standing(q.render(p, part))
		if room -= len(b); room >= 0 && err == nil {
			_, err = out.Write(b)
		}
	}
	write("still", &page{Title: p.Title, Notes: append(p.Notes, "Exported as pages show it: what they cut is cut here.")})
	if q.path[0] == "obs" {
		id, _ := q.idOf(q.path[1]) // the page is there
		if o, err := q.o.Store.Stat(q.who.Owner, id); err == nil && o.Stats.Receipt != "" {
			shown := section{Title: "What the model was shown", Blocks: []any{wholeLines(o.Stats.Receipt)}}
			write("blocks", &page{Blocks: []any{shown}})
		}
	}
	for blocks := p.Blocks; room >= 0 && err == nil; {
		part, next := pagedOf(blocks)
		if t, ok := part.(*table); ok && q.path[0] == "sessions" {
			for _, row := range t.Rows {
				calls = append(calls, queryOf(row[0].To))
				row[0].To = href(fmt.Sprintf("#call-%d", len(calls)))
			}
		}
		if write("blocks", &page{Blocks: blocks}); next == "" {
			break
		}
		if p, err = q.load(queryOf(next)); err == nil {
			part, _ = pagedOf(p.Blocks)
			blocks = []any{part}
		}
	}
	for i := 0; i < len(calls) && room >= 0 && err == nil; i++ {
		if p, err = q.load(calls[i]); err == nil {
			call := section{Title: p.Title, Key: fmt.Sprintf("call-%d", i+1), Blocks: p.Blocks}
			write("blocks", &page{Blocks: []any{call}})
		}
	}
	if room < 0 && err == nil {
		_, err = io.WriteString(out,
			`<p class="note bad">A file has at most `+size(maxExport)+`: what follows is left out.</p>`)
	}
	if err == nil {
		_, err = io.WriteString(out, "</main></body></html>\n")
	}
	return err
}

// queryOf returns the parameters of an address of a page.
func queryOf(at href) url.Values {
	u, _ := url.Parse(string(at)) // request.url made it
	return u.Query()
}

// load returns this page with other parameters, once all of it was read.
func (q *request) load(other url.Values) (*page, error) {
	for {
		one := *q
		one.query = maps.Clone(q.query)
		maps.Copy(one.query, other)
		p, err := routes()[q.path[0]](&one)
		if err != nil || !one.wait {
			return p, err
		}
		select {
		case <-q.ctx.Done():
			return nil, q.ctx.Err()
		case <-time.After(patience / 4):
		}
	}
}

// pagedOf returns the block that is shown by pages, and the address of the next page of it.
func pagedOf(blocks []any) (part any, next href) {
	for _, b := range blocks {
		var p *pager
		part = b
		switch b := b.(type) {
		case *table:
			p = b.Pager
		case *lines:
			p = b.Pager
		case *tree:
			p = b.Pager
		case *pager: // of what is beside it
			p, part = b, section{Blocks: blocks}
		case section:
			if part, next = pagedOf(b.Blocks); part != nil {
				return part, next
			}
		}
		if p != nil {
			return part, p.Next
		}
	}
	return nil, ""
}
