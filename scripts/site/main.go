// Package site is a command that renders the pages of a checkout as static HTML: site SOURCE OUTPUT. The pages can be
// read from file://, ask no other host, and are the same every time. A link that leads nowhere is an error.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"log"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	renderer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html site.css site.js
var files embed.FS

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: site SOURCE OUTPUT")
	} else if err := build(os.DirFS(os.Args[1]), os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// page is a file of Markdown: docs/RUN.md becomes docs/RUN.html. Name is what the navigation calls it, and Root leads
// from it to the first page's directory.
type page struct {
	Source, Path, Root, Name, Title, Group string
	Headings                               []heading
	Body                                   template.HTML
	text                                   []byte
	root                                   ast.Node
}

type heading struct{ Level, ID, Text string }

// parts are those of the navigation: a page of docs says where it belongs in a line such as "*For users.*".
var parts = []string{
	"Start", "For users", "For operators", "For authors of other programs", "For maintainers", "The project",
}

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(renderer.WithUnsafe()),
		goldmark.WithParserOptions(parser.WithAutoHeadingID())) // unsafe: tables have <br>; see relink
	audience  = regexp.MustCompile(`(?m)^\*For .+\.\*$`)
	headings  = regexp.MustCompile(`<h([1-6]) id="([^"]*)">(.*?)</h[1-6]>`)
	noPage    = regexp.MustCompile(`(?s)<a href="file:([^"]*)">(.*?)</a>`)
	comments  = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	tags      = regexp.MustCompile(`<[^>]*>`)
	noWord    = regexp.MustCompile(`[^\pL\pN]+`)
	elsewhere = regexp.MustCompile(`^(https?|mailto):`)
	// What scrolls can be reached by keys, and an empty header is none.
	accessible = strings.NewReplacer("<table>", `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`,
		"</table>", "</table></div>", "<pre>", `<pre tabindex="0">`, "<th></th>", "<td></td>")
)

// build renders the pages of a checkout into a directory.
func build(source fs.FS, out string) error {
	names, _ := fs.Glob(source, "docs/*.md") // first: of what is found, the first of equals is shown first
	top, _ := fs.Glob(source, "*.md")
	names = slices.DeleteFunc(append(names, top...), func(name string) bool { return name == "NOTICES.md" }) // licences
	pages, nav, faults := map[string]*page{}, map[string][]*page{}, []error{}
	for _, name := range names {
		p, err := read(source, name)
		pages[name], nav[p.Group], faults = p, append(nav[p.Group], p), append(faults, err)
	}
	var sections [][3]string // address, page, heading
	words, written := map[string][]int{}, map[string][]byte{}
	layout := template.Must(template.ParseFS(files, "page.html"))
	for _, name := range names {
		p := pages[name]
		faults = append(faults, relink(source, pages, p)...)
		body := p.render()
		for i, part := range headings.Split(body, -1)[1:] {
			h, n := p.Headings[i], len(sections)
			sections = append(sections, [3]string{p.Path + "#" + h.ID, p.Title, h.Text})
			part = h.Text + " " + html.UnescapeString(tags.ReplaceAllString(part, " "))
			for _, word := range noWord.Split(strings.ToLower(part), -1) {
				if at := words[word]; word != "" && (len(at) == 0 || at[len(at)-1] != n) {
					words[word] = append(at, n)
				}
			}
		}
		p.Body = template.HTML(headings.ReplaceAllString(body, `<h$1 id="$2"><a href="#$2">$3</a></h$1>`))
		var b bytes.Buffer
		faults = append(faults, layout.Execute(&b, map[string]any{"Page": p, "Parts": parts, "Nav": nav}))
		written[p.Path] = b.Bytes()
	}
	index, err := json.Marshal(map[string]any{"sections": sections, "words": words})
	style, err2 := fs.ReadFile(source, "server/viewer/assets/style.css") // all pages of the project look alike
	ours, _ := files.ReadFile("site.css")
	written["index.js"], written["site.css"] = []byte("window.searchIndex = "+string(index)), slices.Concat(style, ours)
	written["site.js"], _ = files.ReadFile("site.js")
	if err = errors.Join(append(faults, err, err2)...); err != nil {
		return err
	}
	for name, b := range written {
		name = path.Join(out, name)
		err = errors.Join(err, os.MkdirAll(path.Dir(name), 0o755), os.WriteFile(name, b, 0o644))
	}
	return err
}

// read parses a page.
func read(source fs.FS, name string) (*page, error) {
	b, err := fs.ReadFile(source, name)
	p := &page{Source: name, Path: strings.TrimSuffix(name, ".md") + ".html", text: b}
	p.Root = strings.Repeat("../", strings.Count(name, "/"))
	p.root = markdown.Parser().Parse(text.NewReader(b))
	for _, m := range headings.FindAllStringSubmatch(p.render(), -1) {
		p.Headings = append(p.Headings, heading{m[1], m[2], html.UnescapeString(tags.ReplaceAllString(m[3], ""))})
	}
	switch p.Group = strings.Trim(audience.FindString(string(b)), "*."); {
	case name == "README.md":
		p.Path, p.Group = "index.html", "Start"
	case p.Root == "":
		p.Group = "The project"
	}
	if len(p.Headings) == 0 || !slices.Contains(parts, p.Group) {
		return p, errors.Join(err, fmt.Errorf("%s:1: needs a heading, and below docs/ a line such as *For users.*", name))
	}
	p.Title = p.Headings[0].Text
	p.Name, _, _ = strings.Cut(p.Title, ": ")
	return p, err
}

// render returns a page as HTML. A link to what is no page becomes text with the path of the file.
func (p *page) render() string {
	var b bytes.Buffer
	_ = markdown.Renderer().Render(&b, p.text, p.root) // a buffer takes all
	return accessible.Replace(noPage.ReplaceAllString(comments.ReplaceAllString(b.String(), ""), "$2 ($1)"))
}

// relink turns the links of a page into those of the site, and reports those that lead nowhere.
func relink(source fs.FS, pages map[string]*page, p *page) (faults []error) {
	fault := func(n ast.Node, format string, about ...any) {
		line := 1 + bytes.Count(p.text[:n.Pos()], []byte("\n"))
		faults = append(faults, fmt.Errorf("%s:%d: "+format, append([]any{p.Source, line}, about...)...))
	}
	_ = ast.Walk(p.root, func(n ast.Node, enters bool) (ast.WalkStatus, error) {
		if n.Kind() == ast.KindImage && enters {
			fault(n, "images are not copied: link to the file")
		}
		if (n.Kind() == ast.KindRawHTML || n.Kind() == ast.KindHTMLBlock) && enters {
			var b bytes.Buffer
			_ = markdown.Renderer().Render(&b, p.text, n)
			if raw := strings.TrimSpace(comments.ReplaceAllString(b.String(), "")); raw != "" && raw != "<br>" {
				fault(n, "HTML other than comments and <br>: %s", raw)
			}
		}
		if auto, ok := n.(*ast.AutoLink); ok && enters && auto.AutoLinkType == ast.AutoLinkURL {
			if to := auto.URL(p.text); !elsewhere.Match(to) {
				fault(n, "link with another scheme than http, https or mailto: %s", to)
			}
		}
		link, ok := n.(*ast.Link)
		if !ok || !enters || elsewhere.Match(link.Destination) {
			return ast.WalkContinue, nil
		}
		to, id, _ := strings.Cut(string(link.Destination), "#")
		name, err := p.Source, error(nil)
		if to != "" {
			name = path.Join(path.Dir(p.Source), to)
		}
		if other := pages[name]; other == nil {
			_, err = fs.Stat(source, name)
			to = "file:" + name
		} else if to = p.Root + other.Path; id != "" {
			to += "#" + id
			if !slices.ContainsFunc(other.Headings, func(h heading) bool { return h.ID == id }) {
				err = fmt.Errorf("%s has no heading #%s", name, id)
			}
		}
		if err != nil {
			fault(n, "dead link to %s: %w", link.Destination, err)
		}
		link.Destination = []byte(to)
		return ast.WalkContinue, nil
	})
	return faults
}
