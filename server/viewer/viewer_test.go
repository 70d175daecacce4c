package viewer

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	files "github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func TestMain(m *testing.M) {
	if ran, code := worker.Main(os.Args, jq.Workers()); ran {
		os.Exit(code)
	}
	code := workertest.WithPlainBuild(m, worker.Use)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// aKey is a secret that is masked.
const aKey = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

// fixture is a viewer of a store, with a root, a trace and a funnel of its own. Its person is the operator of this
// machine.
type fixture struct {
	*Viewer
	t     testing.TB
	root  string // a directory that is granted
	store string // the directory of the store
	who   Who
}

// newFixture returns a viewer with other options than the usual ones.
func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, root: filepath.Join(t.TempDir(), "root"), store: filepath.Join(t.TempDir(), "store")}
	f.who = Who{Owner: observations.Local, Operator: true}
	expect.Must(t, os.Mkdir(f.root, 0o700))
	store := expect.Value(observations.OpenStore(observations.Options{Dir: f.store, MinFree: -1}))(t)
	t.Cleanup(func() { expect.OK(t, store.Close()) })
	log := expect.Value(trace.Open(trace.Dir(f.store)))(t)
	t.Cleanup(func() { expect.OK(t, log.Close()) })
	root := expect.Value(files.Open(f.root, f.store))(t)
	t.Cleanup(func() { expect.OK(t, root.Close()) })
	kept := records.InDir(f.store)
	o := Options{
		Store: store, Records: kept, Trace: log, Counter: tokens.New(tokens.O200k), Mask: secrets.New(),
		Tools:        []tools.Tool{search.Search(), fs.Find(), fs.Read(), search.Grep(), jq.JQ(jq.Options{InProcess: true})},
		Investigator: investigate.New(investigate.Options{Records: kept, Trace: log}),
		Asker:        ask.New(ask.Options{Store: f.store, Records: kept}),
	}
	t.Cleanup(o.Investigator.Close)
	o.Sources = func(who funnel.Session) source.Set {
		return source.Set{Roots: []*files.Root{root}, Documents: source.NewDocuments(""), Places: []source.NamedPlace{
			source.Observations(store, who.Owner), o.Investigator.Place(who.Owner),
		}}
	}
	for _, one := range change {
		one(&o)
	}
	if o.Funnel == nil {
		o.Funnel = expect.Value(funnel.New(funnel.Options{Store: store, Trace: log, Counter: o.Counter, Mask: o.Mask}))(t)
	}
	f.Viewer = New(o)
	t.Cleanup(f.Close)
	return f
}

// file writes a file below the root.
func (f *fixture) file(name, text string) {
	f.t.Helper()
	at := filepath.Join(f.root, filepath.FromSlash(name))
	expect.Must(f.t, os.MkdirAll(filepath.Dir(at), 0o700))
	expect.Must(f.t, os.WriteFile(at, []byte(text), 0o600))
}

// call calls a tool as a client of an owner would; session "" is its process.
func (f *fixture) call(owner, session string, tool tools.Tool, args any, change ...func(*funnel.Request)) funnel.Answer {
	f.t.Helper()
	r := funnel.Request{
		Tool: tool, Args: expect.Value(json.Marshal(args))(f.t), Who: funnel.Session{ID: session, Owner: owner},
		Sources: f.o.Sources(funnel.Session{Owner: owner}),
	}
	for _, one := range change {
		one(&r)
	}
	return expect.Value(f.o.Funnel.Call(f.t.Context(), r))(f.t)
}

// keep stores a text as the output of a tool of a name, called by an owner with args (nil: {}). It returns its ID.
func (f *fixture) keep(owner, tool, text string, args any) observations.ID {
	f.t.Helper()
	if args == nil {
		args = struct{}{}
	}
	says := tools.Tool{Name: tool, Schema: json.RawMessage(`{"type":"object"}`)}
	says.Run = func(_ context.Context, _ tools.Input, out tools.Output) error {
		_, err := io.WriteString(out, text)
		return err
	}
	a := f.call(owner, "s1", says, args, func(r *funnel.Request) { r.Keep = funnel.Always })
	return expect.Value(observations.ParseID(a.Receipts[0].ObservationID))(f.t)
}

// get returns the page at an address below Base, and its status. It waits until all of the page was read.
func (f *fixture) get(address string) (body string, status int) {
	f.t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		w := f.send(http.MethodGet, address, nil)
		if body = w.Body.String(); !strings.Contains(body, `tabindex="-1" data-wait`) {
			return body, w.Code
		}
		if time.Now().After(until) {
			f.t.Fatalf("%s is still being read", address)
		}
	}
}

// page is get for a page that must be there. It is text without tags: cells and lines are separated by spaces.
func (f *fixture) page(address string) string {
	f.t.Helper()
	body, status := f.get(address)
	expect.Equal(f.t, status, http.StatusOK, address)
	return plainText(body)
}

var tags = regexp.MustCompile(`(?s)<script>.*?</script>|<style>.*?</style>|<[^>]*>|\s+`)

func plainText(page string) string {
	spaced := tags.ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(html.UnescapeString(spaced)), " ")
}

// send sends a request of the fixture's person, who is signed in. A form gets the token of that person's pages.
func (f *fixture) send(method, address string, form url.Values) *httptest.ResponseRecorder {
	f.t.Helper()
	signed := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://127.0.0.1:1"+Base+"/"+strings.TrimPrefix(address, "/"), nil)
	f.signIn(signed, r, f.who)
	cookie := signed.Result().Cookies()[0]
	if form != nil {
		body, _, _ := strings.Cut(cookie.Value, ".")
		form.Set("token", f.mac("form", body))
		r = httptest.NewRequest(method, r.URL.String(), strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.AddCookie(cookie)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(f.t.Context()), nil)
	return w
}

// An owner sees what is its own: of others neither a row nor a page, unless an operator asked for all.
func TestOwners(t *testing.T) {
	for name, want := range map[string]struct {
		any, operator bool
		status        int
	}{
		"its own": {status: http.StatusNotFound}, "a flag for others": {any: true, status: http.StatusNotFound},
		"operator": {operator: true, status: http.StatusNotFound}, "all": {any: true, operator: true, status: http.StatusOK},
	} {
		f := newFixture(t, func(o *Options) { o.AnyOwner = want.any })
		mine, other := string(f.keep("ann", "t", "mine\n", nil)), string(f.keep("bob", "t", "of bob\n", nil))
		f.who = Who{Owner: "ann", Operator: want.operator}
		list := f.page("obs")
		expect.Has(t, list, mine, name)
		expect.Equal(t, strings.Contains(list, other), want.status == http.StatusOK, name)
		body, status := f.get("obs/" + other)
		expect.Equal(t, status, want.status, name)
		expect.Equal(t, strings.Contains(body, "of bob"), want.status == http.StatusOK, name)
		expect.Has(t, f.page("obs/"+mine), "mine", name)
	}
}

// A secret in an output is masked on each page of it; only an operator sees it, and asks for that.
func TestMasked(t *testing.T) {
	f := newFixture(t)
	id := string(f.keep(observations.Local, "t", "key "+aKey+" end\n", map[string]string{"key": aKey}))
	for _, at := range []string{"obs", "obs/" + id, "obs/" + id + "?as=text&line=1&from=0", "obs/" + id + "?as=receipt", "obs/" + id + "?grep=end"} {
		expect.Lacks(t, f.page(at), aKey)
	}
	body, _ := f.get("obs/" + id)
	expect.Has(t, body, `href="/view/obs/`+id+`?unmasked=1">show unmasked</a>`)
	expect.Has(t, f.page("obs/"+id+"?unmasked=1"), "key "+aKey+" end", "show masked")
	f.who.Operator = false
	expect.Lacks(t, f.page("obs/"+id), "show unmasked")
	expect.Lacks(t, f.page("obs/"+id+"?unmasked=1"), aKey)
}
