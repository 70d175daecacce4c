// Package viewer shows people what agents saw: sessions, observations, investigations, and what they cost.
//
// It serves pages of HTML without a build step: one template file, one style sheet and one script, all embedded. A page
// is made of blocks (blocks.go), which handlers fill from the same readers as the tools; everything is rendered by the
// server and can be read without JavaScript. The same pages are shown inside clients that render MCP Apps (app.go).
//
//	request ─► Handler: cookie, token (auth.go) ─► route ─► handler ─► page of blocks ─► shown: masked, visible ─► HTML
//
// Content is data: no page runs or loads anything but what is embedded here, which its Content-Security-Policy says.
package viewer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Base is the path below which all pages are.
const Base = "/view"

// Options are what pages show, and to whom. All but AnyOwner, Secret and Mask are needed.
type Options struct {
	Store        *observations.Store
	Records      records.Store
	Trace        trace.Store
	Funnel       *funnel.Funnel // runs what a person asks of an observation
	Tools        []tools.Tool   // of which grep and jq are used
	Sources      func(funnel.Session) source.Set
	Counter      *tokens.Counter
	Mask         *secrets.Masker // nil: nothing is masked
	Investigator *investigate.Investigator
	Asker        *ask.Asker
	Log          *slog.Logger
	Secret       []byte // at least 32 bytes that all replicas share; nil: a random one, and cookies end with the process
	AnyOwner     bool   // an operator sees what belongs to all owners
}

// Who is the person or client that a page is for.
type Who struct {
	Owner    string   `json:"o"`
	Roots    []string `json:"r,omitempty"` // of an access token; nil: all
	Operator bool     `json:"op,omitempty"`
}

// Viewer serves pages. It is safe for concurrent use.
type Viewer struct {
	o     Options
	key   []byte // of cookies and of the tokens in forms
	ctx   context.Context
	stop  context.CancelFunc
	lists lists

	digests *lru.Values[string, *digest]
	state   state

	background background // reads on after its page was sent

	mu    sync.Mutex
	codes map[[sha256.Size]byte]code1 // that were not used yet
}

// New returns a viewer. Close it, because it reads in the background.
func New(o Options) *Viewer {
	v := &Viewer{
		o: o, key: keyOf(o.Secret), codes: map[[sha256.Size]byte]code1{}, lists: newLists(),
		digests: lru.New[string, *digest](maxDigests),
	}
	if o.Log == nil {
		v.o.Log = slog.New(slog.DiscardHandler)
	}
	v.ctx, v.stop = context.WithCancel(context.Background())
	return v
}

// Close ends what is read in the background.
func (v *Viewer) Close() {
	v.stop()
	v.background.end()
}

// background runs functions until it ends; later ones are not run.
type background struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

// Go runs a function in a goroutine.
func (b *background) Go(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.all.Go(f)
	}
}

func (b *background) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.all.Wait()
}

//go:embed assets
var assets embed.FS

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil { // it is embedded
		panic(err)
	}
	return string(b)
}

// look is what all pages share. It is made when the first page is.
var look = sync.OnceValue(func() (l struct {
	template      *template.Template
	style         template.CSS
	script        template.JS
	policy, boxed string // Content-Security-Policy of a page, and of a file that is sent
}) {
	style, script := asset("style.css"), asset("script.js")
	l.style, l.script = template.CSS(style), template.JS(script) //nolint:gosec // both are embedded
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	l.policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	l.boxed = "default-src 'none'; sandbox; frame-ancestors 'none'"
	l.template = template.New("")
	l.template.Funcs(template.FuncMap{
		"block_": func(b any) (template.HTML, error) {
			var out bytes.Buffer
			err := l.template.ExecuteTemplate(&out, reflect.Indirect(reflect.ValueOf(b)).Type().Name(), b)
			return template.HTML(out.String()), err //nolint:gosec // a template has escaped it
		},
		"html_": func(m markup) template.HTML { return template.HTML(m) }, //nolint:gosec // this package made it
		"bar":   bar,
		"rfc":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"exact": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
		"local": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
	})
	template.Must(l.template.Parse(asset("page.html")))
	return l
})

// request is one request for a page.
type request struct {
	*Viewer
	ctx   context.Context
	who   Who
	path  []string // below Base
	query url.Values
	token string // that a form of this page must send
	plain bool   // nothing is masked
	app   bool   // shown by an MCP client
	wait  bool   // something is still being read
}

// problem is an error with the status of its page.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// routes lead from the first element of a path to the handler of a page. (A variable would refer to itself.)
func routes() map[string]func(*request) (*page, error) {
	return map[string]func(*request) (*page, error){
		"": (*request).overview, "obs": (*request).observation,
		"sessions": (*request).sessions, "search": (*request).search,
		"compare": (*request).compare, "inv": (*request).investigations, "ans": (*request).answers,
		"servers": (*request).servers, "file": (*request).file,
	}
}

// menu are the pages that every page leads to.
var menu = []struct{ name, text string }{
	{"", "Overview"}, {"sessions", "Sessions"}, {"obs", "Observations"}, {"inv", "Investigations"}, {"servers", "Servers"},
}

// request returns a request for the page at an address, with or without [Base].
func (v *Viewer) request(ctx context.Context, at *url.URL) *request {
	path := strings.FieldsFunc(strings.TrimPrefix(at.Path, Base), func(r rune) bool { return r == '/' })
	return &request{Viewer: v, ctx: ctx, path: path, query: at.Query()}
}

// first is the first element of the path; "" for the overview.
func (q *request) first() string {
	if len(q.path) == 0 {
		return ""
	}
	return q.path[0]
}

// handle returns the page of a request; an error is a page too.
func (q *request) handle() (p *page, status int) {
	to := routes()[q.first()]
	if to == nil {
		return q.result(nil, problemf(http.StatusNotFound, "There is no such page."))
	}
	return q.result(to(q))
}

// result returns a page, or that of an error, with its status.
func (q *request) result(p *page, err error) (*page, int) {
	if err == nil {
		return p, http.StatusOK
	}
	p, status := q.failed(err)
	if status == http.StatusInternalServerError {
		q.o.Log.Error("a page cannot be shown", "path", strings.Join(q.path, "/"), "error", err)
	}
	return p, status
}

// render writes a page as a document, or without what stands around its body.
func (q *request) render(p *page, part string) []byte {
	p.Wait = q.wait
	shown(reflect.ValueOf(p).Elem(), func(s string) string { return visible(q.masked(s)) })
	all := links{}
	for _, m := range menu {
		if m.name == "servers" && !q.who.Operator && q.who.Owner != observations.Local {
			continue // whoever runs the program wraps servers
		}
		all = append(all, link{Text: m.text, To: q.url(m.name), On: m.name == q.first()})
	}
	var out bytes.Buffer
	err := look().template.ExecuteTemplate(&out, part, map[string]any{
		"Page": p, "Nav": all, "Style": look().style, "Script": look().script, "Live": q.url("live"),
		"Search": &form{To: q.url("search"), Submit: "Go", Fields: []field{
			{Name: "q", Label: "Search", Value: q.query.Get("q"), Size: 16},
		}},
	})
	if err != nil {
		q.o.Log.Error("a page cannot be written", "path", strings.Join(q.path, "/"), "error", err)
		return []byte("This page cannot be shown; the log of the server says why.")
	}
	return out.Bytes()
}

// url returns the address of a page, with pairs of names and values of parameters; those with an empty value are left
// out. The elements of the path are escaped.
func (q *request) url(path string, pairs ...string) href { return q.address(path, url.Values{}, pairs) }

// with returns the address of this page with other parameters: an empty value removes one.
func (q *request) with(pairs ...string) href {
	values := url.Values{}
	maps.Copy(values, q.query)
	return q.address(strings.Join(q.path, "/"), values, pairs)
}

func (q *request) address(path string, values url.Values, pairs []string) href {
	plain := map[bool]string{true: "1"}[q.plain]
	for at := range slices.Chunk(append(slices.Clone(pairs), "unmasked", plain), 2) {
		if values.Del(at[0]); at[1] != "" {
			values.Set(at[0], at[1])
		}
	}
	u := url.URL{Path: Base + "/" + path, RawQuery: values.Encode()}
	return href(u.String())
}

// number returns a parameter that counts, or the default if it is missing or no number.
func (q *request) number(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(q.query.Get(name), 10, 64)
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// sources returns what the person may name. The caller must call done.
func (q *request) sources() (set source.Set, done func()) {
	set = q.o.Sources(funnel.Session{ID: "view", Owner: q.who.Owner})
	if q.who.Roots != nil {
		return set.Narrow(q.who.Roots)
	}
	return set, func() {}
}

// PathOf returns the address, without its host, of the page of a handle: obs:ID, inv:ID, ans:ID, or the name of a
// session; "" is the overview. code is what [Viewer.Code] has returned.
func PathOf(handle, code string) (string, error) {
	q, values := &request{}, []string{"code", code}
	kind, id, found := strings.Cut(handle, ":")
	switch {
	case handle == "":
		return string(q.url("", values...)), nil
	case !found:
		return string(q.url("sessions", append(values, "key", handle)...)), nil
	case kind != "obs" && kind != "inv" && kind != "ans":
		return "", fmt.Errorf("%.60q cannot be shown: name obs:ID, inv:ID, ans:ID or a session", handle)
	}
	parsed, err := observations.ParseID(observations.Prefix + id)
	if err != nil {
		err = fmt.Errorf("%.60q is no handle: an ID has 12 characters of 0-9 and a-z without i, l, o, u", handle)
	}
	return string(q.url(kind+"/"+string(parsed), values...)), err
}
