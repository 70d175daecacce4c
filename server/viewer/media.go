package viewer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	hexBytes  = 2 << 10  // of a page of binary data
	edgeBytes = 1 << 10  // before and after it, in which a secret may begin or end
	maxMarkup = 72 << 10 // of a page of Markdown, rendered
)

// imageType returns the type of an image that browsers show, by its first bytes; "" for other data.
func (o *opened) imageType() string {
	b, err := o.bytesAt(0, 512)
	switch t := http.DetectContentType(b); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if err == nil && o.kind == content.Binary {
			return t
		}
	}
	return ""
}

// maxInline is the size of an image that is a part of its page, in bytes.
const maxInline = 512 << 10

// imageView shows an image. A client that renders MCP Apps loads nothing, so the page holds it.
func imageView(q *request, o *opened) ([]any, error) {
	kind := o.imageType()
	alt := kind + " of " + size(o.Size)
	if !q.app {
		return []any{image{Alt: alt, To: q.url("obs/"+string(o.o.ID)+"/raw", "show", "1")}}, nil
	}
	if o.Size > maxInline {
		return []any{note{"An image (" + alt + ") is shown here up to 512 KiB: mcp-funnel view shows it.", ""}}, nil
	}
	b, err := o.bytesAt(0, o.Size)
	src := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b)
	return []any{markup(`<p><img src="` + src + `" alt="` + alt + `"></p>`)}, err
}

// hexView shows bytes, 16 a row.
func hexView(q *request, o *opened) ([]any, error) {
	from := min(q.number("from", 0), o.Size) &^ 15
	before := min(from, edgeBytes)
	b, err := o.bytesAt(from-before, before+hexBytes+edgeBytes)
	if masked := q.masks().Text(b); !bytes.Equal(masked, b) { // all between the first difference and the last is hidden
		at, end := 0, 0
		for ; at < min(len(b), len(masked)) && b[at] == masked[at]; at++ {
		}
		for ; end < min(len(b), len(masked))-at && b[len(b)-1-end] == masked[len(masked)-1-end]; end++ {
		}
		b = slices.Concat(b[:at], bytes.Repeat([]byte{'*'}, len(b)-at-end), b[len(b)-end:])
	}
	b = b[min(before, int64(len(b))):]
	b = b[:min(hexBytes, len(b))]
	s := ""
	for at := 0; at < len(b); at += 16 {
		row := b[at:min(at+16, len(b))]
		s += fmt.Sprintf("%08x  %-47s  ", from+int64(at), fmt.Sprintf("% x", row))
		for _, c := range row {
			if c < ' ' || c > '~' {
				c = '.'
			}
			s += string(rune(c))
		}
		s += "\n"
	}
	return []any{pre(s), q.bytePager("data", from, int64(len(b)), hexBytes, o.Size)}, err
}

// markdownView shows a part of a text in Markdown, rendered: HTML in it is text, images are links.
func markdownView(q *request, o *opened) ([]any, error) {
	mask, n := q.masks(), 0
	b, from, err := q.partOf(o, content.Span{End: 1 << 62}, q.number("from", 0), pageBytes+1)
	var out bytes.Buffer
	for most := pageBytes; most > 0; most /= 2 {
		if n = len(b); n > most { // it is cut between two blocks, or two lines
			n = cmp.Or(bytes.LastIndex(b[:most], []byte("\n\n"))+1, bytes.LastIndexByte(b[:most], '\n')+1, cutAt(mask, b, most))
		}
		out.Reset()
		err = errors.Join(err, rendering.Convert([]byte(visible(string(mask.Again().Text(b[:n])))), &out))
		if out.Len() <= maxMarkup {
			break
		}
	}
	// Escapes of Markdown may have hidden a character or a secret.
	body := visible(string(mask.Again().Text(out.Bytes())))
	body = `<div class="wide rendered" tabindex="0" role="region" aria-label="Rendered Markdown">` + body + "</div>"
	return []any{markup(body), q.bytePager("text", from, int64(n), pageBytes, max(o.Size, from+int64(len(b))))}, err
}

// rendering renders Markdown.
var rendering = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(cautious{}, 100))),
)

// cautious renders what could load, run or lead to something else than a page of the web.
type cautious struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (c cautious) RegisterFuncs(on renderer.NodeRendererFuncRegisterer) {
	for _, kind := range []ast.NodeKind{
		ast.KindHeading, ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock,
	} {
		on.Register(kind, c.render)
	}
}

func (cautious) render(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
	text := func(all *gtext.Segments) {
		for i := 0; enters && i < all.Len(); i++ {
			s := all.At(i)
			_, _ = w.Write(util.EscapeHTML(s.Value(source)))
		}
	}
	switch n := n.(type) {
	case *ast.Heading: // below the headings of the page
		_, _ = fmt.Fprintf(w, map[bool]string{true: "<h%d>", false: "</h%d>\n"}[enters], min(n.Level+2, 6))
	case *ast.Link:
		renderLink(w, n, n.Destination, enters)
	case *ast.Image:
		if renderLink(w, n, n.Destination, enters); enters {
			_, _ = w.WriteString("image: ")
		}
	case *ast.AutoLink:
		if renderLink(w, n, n.URL(source), enters); enters {
			_, _ = w.Write(util.EscapeHTML(n.Label(source)))
		}
	case *ast.RawHTML:
		text(n.Segments)
	case *ast.HTMLBlock:
		_, _ = w.WriteString(map[bool]string{true: "<pre>", false: "</pre>\n"}[enters])
		text(n.Lines())
		if enters && n.HasClosure() {
			_, _ = w.Write(util.EscapeHTML(n.ClosureLine.Value(source)))
		}
	}
	return ast.WalkContinue, nil
}

// renderLink renders the beginning or the end of a link to a page of the web; of another link or one within a link, its
// text and its address.
func renderLink(w util.BufWriter, n ast.Node, to []byte, enters bool) {
	web, address := outside.Match(to), util.EscapeHTML(to)
	for above := n.Parent(); above != nil; above = above.Parent() {
		web = web && above.Kind() != ast.KindLink
	}
	switch {
	case web && enters:
		_, _ = fmt.Fprintf(w, `<a rel="noreferrer" title="leads outside" href="%s">`, address)
	case web:
		_, _ = w.WriteString(" ↗</a>")
	case !enters && n.Kind() != ast.KindAutoLink:
		_, _ = fmt.Fprintf(w, " (%s)", address)
	}
}

// outside matches the addresses to which a link leads.
var outside = regexp.MustCompile(`(?i)^(?:https?://|mailto:)[^\s"<>]+$`)
