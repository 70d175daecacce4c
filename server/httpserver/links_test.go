package httpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

const linkBase = "https://funnel.example"

// linkServer is a server with links, and what it serves them from.
type linkServer struct {
	*webServer
	store *observations.Store
	links *links.Links
}

func serveLinks(t testing.TB, o observations.Options, f funnel.Options) *linkServer {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.MinFree = -1
	store, err := observations.OpenStore(o)
	expect.Must(t, err)
	l, err := links.New(linkBase, records.InDir(store.Dir()))
	expect.Must(t, err)
	f.Store = store
	run, err := funnel.New(f)
	expect.Must(t, err)
	s := newTestServer(t, func(o *server.Options) { o.Store, o.Funnel = store, run })
	return &linkServer{serveWeb(t, s, func(o *Options) { o.Links = l }), store, l}
}

func (s *linkServer) read(owner string, id observations.ID) string {
	url, _, err := s.links.Read(owner, id, links.Life)
	expect.Must(s.t, err)
	return strings.TrimPrefix(url, linkBase)
}

func (s *linkServer) put(owner string) string {
	url, _, err := s.links.Store(owner, links.Life)
	expect.Must(s.t, err)
	return strings.TrimPrefix(url, linkBase)
}

// ask sends a request without a token, as somebody who has nothing but the link.
func (s *linkServer) ask(method, path, body string, change ...with) reply {
	s.t.Helper()
	return s.do(method, path, body, append([]with{without("Authorization"), without("Accept")}, change...)...)
}

// kept returns what an owner has.
func (s *linkServer) kept(owner string) []observations.Observation {
	list, err := s.store.List(owner, true)
	expect.Must(s.t, err)
	return list
}

func (s *linkServer) bytes(owner, name string) string {
	id, err := observations.ParseID(name)
	expect.Must(s.t, err)
	r, err := s.store.Open(owner, id)
	expect.Must(s.t, err)
	defer func() { _ = r.Close() }()
	all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	expect.Must(s.t, err)
	return string(all)
}

var browser = all(
	header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "document"), header("Sec-Fetch-Site", "cross-site"),
)

func TestLinkReads(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := serveLinks(t, observations.Options{}, funnel.Options{})
	defer s.close()
	text := "<script>alert(1)</script>\n" + strings.Repeat("0123456789\n", 100_000)
	id := servertest.Keep(t, s.store, "anna", text, observations.Stats{})
	path := s.read("anna", id)
	whole := s.ask(http.MethodGet, path, "")
	expect.Equal(t, whole.status, http.StatusOK)
	expect.Equal(t, whole.body, text)
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin", "Accept-Ranges": "bytes",
	} {
		expect.Equal(t, whole.header.Get(name), want, name)
	}
	name := whole.header.Get("Content-Disposition")
	if !strings.HasPrefix(name, "attachment; filename=search_") || !strings.HasSuffix(name, string(id)+".txt") {
		t.Error(name)
	}
	head := s.ask(http.MethodHead, path, "")
	if head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(text)) {
		t.Errorf("HEAD: %+v", head)
	}
	tag := whole.header.Get("ETag")
	for _, c := range []struct {
		name   string
		change with
		status int
		body   string
	}{
		{"range", header("Range", "bytes=2-8"), http.StatusPartialContent, text[2:9]},
		{"end", header("Range", "bytes=-5"), http.StatusPartialContent, text[len(text)-5:]},
		{"middle of it", header("Range", "bytes=700000-700010"), http.StatusPartialContent, text[700_000:700_011]},
		{"range of this version", all(header("Range", "bytes=0-3"), header("If-Range", tag)), 206, text[:4]},
		{"range of another", all(header("Range", "bytes=0-3"), header("If-Range", `"x"`)), http.StatusOK, text},
		{"behind the end", header("Range", "bytes=99999999-"), http.StatusRequestedRangeNotSatisfiable, ""},
		{"in a browser", browser, http.StatusOK, text},
		{"typed into a browser", all(browser, header("Sec-Fetch-Site", "none")), http.StatusOK, text},
		{"by the host of links", host("funnel.example"), http.StatusOK, text},
		{"with a token that is none", as("nonsense"), http.StatusOK, text},
	} {
		got := s.ask(http.MethodGet, path, "", c.change)
		expect.Equal(t, got.status, c.status, c.name)
		if c.body != "" {
			expect.Equal(t, got.body, c.body, c.name)
		}
		expect.Equal(t, got.header.Get("Cache-Control"), "no-store", c.name)
	}
}

func TestLinkTypes(t *testing.T) {
	s := serveLinks(t, observations.Options{}, funnel.Options{})
	for kind, want := range map[string]string{
		"text": "text/plain; charset=utf-8", "json": "application/json", "binary": "application/octet-stream",
		"ndjson": "text/plain; charset=utf-8", "markdown": "text/plain; charset=utf-8",
		"text/html": "text/plain; charset=utf-8",
	} {
		id := servertest.Keep(t, s.store, "local", "<html><script>", observations.Stats{Kind: kind, Ext: "html"})
		expect.Equal(t, s.ask(http.MethodGet, s.read("local", id), "").header.Get("Content-Type"), want, kind)
	}
}

func TestLinkRefusals(t *testing.T) {
	s := serveLinks(t, observations.Options{}, funnel.Options{})
	const secret = "what anna keeps"
	id := servertest.Keep(t, s.store, "anna", secret, observations.Stats{})
	gone := servertest.Keep(t, s.store, "anna", secret, observations.Stats{})
	expect.Must(t, s.store.Remove("anna", gone))
	path := s.read("anna", id)
	stranger, err := links.New(linkBase, records.InDir(t.TempDir()))
	expect.Must(t, err)
	forged, _, err := stranger.Read("anna", id, links.Life)
	expect.Must(t, err)
	now := s.links.Now
	s.links.Now = func() time.Time { return time.Now().Add(-links.Life - time.Second) }
	ended, endedPut := s.read("anna", id), s.put("anna")
	s.links.Now = now
	s.ask(http.MethodGet, path, "").is(t, http.StatusOK, secret) // the control
	for _, c := range []struct {
		name, method, path string
		change             with
		status             int
		says               string
	}{
		{"changed", "GET", path + "x", nil, 403, "changed"},
		{"of another observation", "GET", strings.Replace(path, string(id), string(gone), 1), nil, 403, "changed"},
		{"of another store", "GET", strings.TrimPrefix(forged, linkBase), nil, 403, "another server"},
		{"changed, to store", "PUT", strings.Replace(path, "get~", "put~", 1), nil, 403, "changed"},
		{"ended", "GET", ended, nil, 410, "ended"},
		{"ended, to store", "PUT", endedPut, nil, 410, "ended"},
		{"of one that expired", "GET", s.read("anna", gone), nil, 410, "expired"},
		{"of one that never was", "GET", s.read("anna", "0123456789ab"), nil, 404, "no obs:"},
		{"of another owner", "GET", s.read("bert", id), nil, 404, "no obs:"},
		{"no link", "GET", "/link/", nil, 403, "changed"},
		{"a path above", "GET", "/link/../metrics", nil, 403, "changed"},
		{"storing by one that reads", "PUT", path, nil, 405, "use GET, HEAD"},
		{"deleting", "DELETE", path, nil, 405, "GET, HEAD, PUT"},
		{"reading by one that stores", "GET", s.put("anna"), nil, 405, "use PUT"},
		{"a query", "GET", path + "?x=1", nil, 400, "query"},
		{"another host", "GET", path, host("evil.example"), 403, "Host"},
		{"another origin", "GET", path, header("Origin", "https://evil.example"), 403, "Origin"},
		{"a frame", "GET", path, all(browser, header("Sec-Fetch-Dest", "iframe")), 403, "Origin"},
		{"an image", "GET", path, all(browser, header("Sec-Fetch-Mode", "no-cors")), 403, "Origin"},
		{"a form", "PUT", s.put("anna"), browser, 403, "Origin"},
		{"a token in its place", "GET", "/link", nil, 401, "token"},
		{"asking for a link without a token", "POST", "/link", nil, 401, "token"},
		{"MCP by the host of links", "POST", "/mcp", all(host("funnel.example"), as(testToken)), 403, "Host"},
		{"MCP without a token", "POST", "/mcp", nil, 401, "token"},
		{"metrics without a token", "GET", "/metrics", nil, 401, "token"},
	} {
		change := []with{}
		if c.change != nil {
			change = append(change, c.change)
		}
		got := s.ask(c.method, c.path, "{}", change...)
		if got.status != c.status || !strings.Contains(got.body, c.says) || strings.Contains(got.body, secret) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	expect.Equal(t, len(s.kept("anna")), 2, "observations, of which one has expired")
	// Without links there is nothing.
	off := serveWeb(t, newTestServer(t))
	off.do(http.MethodGet, path, "").is(t, http.StatusNotFound)
	off.do(http.MethodGet, path, "", without("Authorization")).is(t, http.StatusUnauthorized)
	off.do(http.MethodPost, "/link", "{}").is(t, http.StatusNotFound)
}

func TestLinkStores(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	s := serveLinks(t, observations.Options{Dir: dir}, funnel.Options{})
	defer s.close()
	text, path := strings.Repeat("a line of it\n", 50_000), s.put("anna")
	got := s.ask(http.MethodPut, path, text, header("Content-Type", "text/html"))
	got.is(t, http.StatusCreated)
	var answer struct{ ID string }
	expect.Must(t, json.Unmarshal([]byte(got.body), &answer))
	expect.Equal(t, strings.TrimSpace(got.body), `{"id":"`+answer.ID+`"}`)
	expect.Equal(t, s.bytes("anna", answer.ID), text)
	o, err := s.store.Stat("anna", s.kept("anna")[0].ID)
	expect.Must(t, err)
	if o.Stats.Lines != 50_000 || !strings.Contains(o.Stats.Receipt, answer.ID) || len(s.kept("local")) != 0 {
		t.Errorf("%+v", o)
	}
	s.ask(http.MethodPut, path, "again").is(t, http.StatusConflict, answer.ID)
	s.close()
	s = serveLinks(t, observations.Options{Dir: dir}, funnel.Options{})
	defer s.close()
	s.ask(http.MethodPut, path, "again").is(t, http.StatusConflict, answer.ID)
	expect.Equal(t, len(s.kept("anna")), 1)
}

// TestLinkStoresOnce sends many bodies to one link at once: one is stored. Where nobody remembers that it was used, the
// control, it stores again.
func TestLinkStoresOnce(t *testing.T) {
	s := serveLinks(t, observations.Options{}, funnel.Options{})
	path := s.put("anna")
	got := make([]reply, 12)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() { got[i] = s.ask(http.MethodPut, path, strings.Repeat(fmt.Sprint("body ", i, "\n"), 20_000)) })
	}
	group.Wait()
	stored := 0
	for _, r := range got {
		switch r.status {
		case http.StatusCreated:
			stored++
		case http.StatusConflict:
		default:
			t.Errorf("%+v", r)
		}
	}
	expect.Equal(t, stored, 1, "bodies stored")
	expect.Equal(t, len(s.kept("anna")), 1, "observations")
	k, err := s.links.Parse(strings.TrimPrefix(path, links.Path))
	expect.Must(t, err)
	expect.Must(t, s.links.Release(k))
	s.ask(http.MethodPut, path, "once more").is(t, http.StatusCreated)
}

// TestUploadsThatFail leave nothing behind, and the link as good as before.
func TestUploadsThatFail(t *testing.T) {
	const most = 300_000
	s := serveLinks(t, observations.Options{MaxObservation: most}, funnel.Options{})
	path := s.put("anna")
	chunked := func(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(r.Body)) }
	for _, c := range []struct {
		name   string
		size   int
		change with
		status int
		says   string
	}{
		{"too long", most + 1, header("X", ""), 413, "300000 bytes"},
		{"too long, which nobody said", most + 1, chunked, 413, "300000 bytes"},
		{"empty", 0, header("X", ""), 400, "empty"},
		{"empty, which nobody said", 0, chunked, 400, "empty"},
		{"a part", 10, header("Content-Range", "bytes 0-9/20"), 400, "Content-Range"},
		{"encoded", 10, header("Content-Encoding", "gzip"), 415, "gzip"},
		{"of another origin", 10, header("Origin", "https://evil.example"), 403, "Origin"},
	} {
		got := s.ask(http.MethodPut, path, strings.Repeat("x", c.size), c.change)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	// A client that leaves in the middle.
	c, err := net.Dial("tcp", s.addr)
	expect.Must(t, err)
	_, err = fmt.Fprintf(
		c, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n%s", path, strings.Repeat("x", 100_000),
	)
	expect.Must(t, err)
	expect.Must(t, c.(*net.TCPConn).CloseWrite())
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	expect.Must(t, err)
	expect.Equal(t, res.StatusCode, http.StatusBadRequest, "a body that ends early")
	_ = res.Body.Close()
	_ = c.Close()
	expect.Equal(t, len(s.kept("anna")), 0, "observations of uploads that failed")
	s.ask(http.MethodPut, path, strings.Repeat("x", most), chunked).is(t, http.StatusCreated)
	expect.Equal(t, s.kept("anna")[0].Bytes, int64(most))
}

func TestUploadWithoutRoom(t *testing.T) {
	s := serveLinks(t, observations.Options{Quota: 200_000}, funnel.Options{})
	path := s.put("anna")
	s.ask(http.MethodPut, path, strings.Repeat("x", 300_000)).is(t, http.StatusInsufficientStorage, "not kept")
	s.ask(http.MethodPut, path, strings.Repeat("x", 1000)).is(t, http.StatusCreated)
	expect.Equal(t, len(s.kept("anna")), 1)
}

// TestUploadIsMasked says so where the store has no secret: what is read is then not what was sent.
func TestUploadIsMasked(t *testing.T) {
	s := serveLinks(t, observations.Options{}, funnel.Options{Mask: secrets.New(), Redact: true})
	got := s.ask(http.MethodPut, s.put("anna"), "token: ghp_0123456789abcdefABCDEF0123456789abcd\n")
	got.is(t, http.StatusCreated, `"masked":1`)
	if text := s.ask(http.MethodGet, s.read("anna", s.kept("anna")[0].ID), "").body; !strings.Contains(text, "[masked") {
		t.Error(text)
	}
}

func TestIdentityGetsLinks(t *testing.T) {
	s := serveLinks(t, observations.Options{}, funnel.Options{})
	id := servertest.Keep(t, s.store, "other", "theirs", observations.Stats{})
	made := func(body string, change ...with) (answer struct {
		Method, URL string
		Until       time.Time
	}) {
		got := s.do(http.MethodPost, "/link", body, append(change, as(otherToken))...)
		got.is(t, http.StatusOK)
		expect.Must(t, json.Unmarshal([]byte(got.body), &answer))
		answer.URL = strings.TrimPrefix(answer.URL, linkBase)
		return answer
	}
	store := made(`{}`, host("funnel.example"))
	expect.Equal(t, store.Method, http.MethodPut)
	s.ask(http.MethodPut, store.URL, "sent").is(t, http.StatusCreated)
	expect.Equal(t, len(s.kept("other")), 2)
	expect.Equal(t, len(s.kept("local")), 0)
	read := made(`{"id":"obs:` + string(id) + `","for":"1h"}`)
	expect.Equal(t, read.Method, http.MethodGet)
	s.ask(http.MethodGet, read.URL, "").is(t, http.StatusOK, "theirs")
	if left := time.Until(read.Until); left > time.Hour || left < links.Life {
		t.Errorf("it ends in %s", left)
	}
	for body, status := range map[string]int{
		`{"id":"obs:` + string(id) + `"}`: 404, `{"id":"obs:0123456789ab"}`: 404, `{"id":"x"}`: 400, `{"for":"8d"}`: 400,
		`{"for":"-1s"}`: 400, `{"for":"200h"}`: 400, `{"owner":"other"}`: 400, `[]`: 400, ``: 400, `{"id":1}`: 400,
	} {
		expect.Equal(t, s.do(http.MethodPost, "/link", body).status, status, body)
	}
	expect.Equal(t, s.do(http.MethodPost, "/link", "{}", header("Content-Type", "text/plain")).status, 415)
	expect.Equal(t, s.do(http.MethodGet, "/link", "").status, 405)
}
