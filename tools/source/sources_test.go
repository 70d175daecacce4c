package source_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// workspace makes the files named below a directory called name and grants it.
func workspace(t *testing.T, name string, files map[string]string) *tree.Root {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func store(t *testing.T) *observations.Store {
	t.Helper()
	s, err := observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keep(t *testing.T, s *observations.Store, owner, text string) observations.Observation {
	t.Helper()
	r, err := s.Record(observations.Provenance{Owner: owner, Tool: "search", Args: []byte(`{"pattern":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(r, text); err != nil {
		t.Fatal(err)
	}
	o, err := r.Commit(observations.Stats{Kind: "ndjson", Ext: "ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Binary is asked for where Kind is not: both say the same.
func TestBinaryIsAKind(t *testing.T) {
	files := map[string]string{
		"empty": "", "text": "some text\n", "invalid": "a \xff\xfe b\xc3", "nul": "a\x00b", "png.txt": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"json": `{"a":1}`, "bom": "\xef\xbb\xbftext", "wide": "\xff\xfet\x00e\x00x\x00t\x00", "wide nul": "\xff\xfet\x00\x00\x00x\x00",
		"late": strings.Repeat("text\n", 20_000) + "\x00", "cut": strings.Repeat("a", 64<<10-1) + "é and more",
	}
	st := store(t)
	s := source.Set{
		Roots: []*tree.Root{workspace(t, "w", files)}, Places: []source.NamedPlace{source.Observations(st, "me")},
	}
	names := []string{"obs:" + string(keep(t, st, "me", "\x00\x01").ID)}
	for name := range files {
		names = append(names, name)
	}
	binaries := 0
	for _, name := range names {
		src, err := s.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if src.Binary() != (src.Kind() == content.Binary) {
			t.Errorf("%s: binary is %v, its kind %s", name, src.Binary(), src.Kind())
		}
		if src.Binary() {
			binaries++
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	if binaries < 2 || binaries > len(names)-4 {
		t.Errorf("%d of %d are binary", binaries, len(names))
	}
}

func read(t *testing.T, s source.Set, name string) (text, shown string, err error) {
	t.Helper()
	src, err := s.Open(t.Context(), name)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = src.Close() }()
	r, err := src.Text()
	if err != nil {
		return "", "", err
	}
	b, err := io.ReadAll(r)
	return string(b), src.Name, err
}

func TestOneRoot(t *testing.T) {
	root := workspace(t, "src", map[string]string{"a/b.txt": "in b", "ok.txt": "ok", "obs:x": "a file", "utf16.txt": "\xff\xfeh\x00i\x00",
		"u\u0308/e\u0301": "decomposed", "\u00f6": "composed", "w\u202ex.txt": "hidden",
		"tab\tx.txt": "tab", "a/nl\nx.txt": "newline", "esc\x1b.txt": "escape", `"ok.txt"`: "quotes of its own", `"q`: "one quote"})
	s := source.Set{
		Roots: []*tree.Root{root}, Places: []source.NamedPlace{source.Observations(store(t), observations.Local)},
	}
	for _, c := range []struct{ name, text, shown string }{
		{"a/b.txt", "in b", "a/b.txt"},
		{"./a/../ok.txt", "ok", "ok.txt"},
		{filepath.Join(root.Dir(), "ok.txt"), "ok", "ok.txt"},
		{"./obs:x", "a file", "./obs:x"},
		{"utf16.txt", "hi", "utf16.txt"},
		{"\u00fc/\u00e9", "decomposed", "\u00fc/\u00e9"},
		{"u\u0308/\u00e9", "decomposed", "u\u0308/\u00e9"},
		{"o\u0308", "composed", "o\u0308"},
		{"w\u202ex.txt", "hidden", "w\u202ex.txt"},
		{`w\u202ex.txt`, "hidden", `w\u202ex.txt`},
		{`w\u{202e}x.txt`, "hidden", `w\u{202e}x.txt`},
		{`"tab\tx.txt"`, "tab", "tab\tx.txt"},
		{`"a/nl\nx.txt"`, "newline", "a/nl\nx.txt"},
		{`"w\u202ex.txt"`, "hidden", "w\u202ex.txt"},
		{`"esc\x1b.txt"`, "escape", "esc\x1b.txt"},
		{`"esc\u001b.txt"`, "escape", "esc\x1b.txt"},
		{`"./a/b.txt"`, "in b", "a/b.txt"},
		{`"ok.txt"`, "quotes of its own", `"ok.txt"`}, // what is there as it stands means itself
		{`"\"ok.txt\""`, "quotes of its own", `"ok.txt"`},
		{`"q`, "one quote", `"q`},
	} {
		text, shown, err := read(t, s, c.name)
		if err != nil || text != c.text || shown != c.shown {
			t.Errorf("%q: %q as %q, %v", c.name, text, shown, err)
		}
	}
	for name, want := range map[string]error{
		"../src/ok.txt": tree.ErrOutside, "/etc/passwd": tree.ErrOutside, "..": tree.ErrOutside, "ok.txt/": nil, "a": tree.ErrNotFile, "missing": os.ErrNotExist, "": nil,
		"obs:x": observations.ErrMalformed, "obs:k3v9q2m7x4ab": observations.ErrNotFound, "a\x00b": nil, strings.Repeat("x", 5000): nil,
		"ok.tx": nil, "*.txt": nil,
		`"../src/ok.txt"`: nil, `"/etc/passwd"`: nil, `"../../etc/\u0070asswd"`: nil, `"missing\t"`: os.ErrNotExist, `""`: nil, `"`: nil,
	} {
		_, _, err := read(t, s, name)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", name, err, want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%.40q: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// The path of a data file names an observation only on the machine where it lies.
func TestPathsOfDataFiles(t *testing.T) {
	store := store(t)
	o := keep(t, store, observations.Local, "text\n")
	for _, c := range []struct {
		place source.NamedPlace
		named bool
	}{
		{source.Observations(store, observations.Local), true}, {source.ObservationsByID(store, observations.Local), false},
	} {
		if _, named, err := c.place.Resolve(store.SavedTo(o)); named != c.named || err != nil {
			t.Errorf("named: %t, %v; want %t", named, err, c.named)
		}
		if _, named, err := c.place.Resolve("obs:" + string(o.ID)); !named || err != nil {
			t.Errorf("by its ID: %t, %v", named, err)
		}
	}
}

// A name that only one of several roots has needs no root before it.
func TestABareNameOfOneRoot(t *testing.T) {
	one := workspace(t, "src", map[string]string{"a/server.go": "server", "b.txt": "b", "src/x.txt": "inner", "both": "1"})
	two := workspace(t, "docs", map[string]string{"c.txt": "c", "src/y.txt": "y", "both": "2", "tab\tx": "tab"})
	s := source.Set{Roots: []*tree.Root{one, two}}
	for name, want := range map[string]string{
		"b.txt": "src/b.txt", "./a/server.go": "src/a/server.go", "c.txt": "docs/c.txt", "src/b.txt": "src/b.txt",
		"src/x.txt": "src/src/x.txt", "src/y.txt": "docs/src/y.txt", `"tab\tx"`: "docs/tab\tx", "docs/both": "docs/both",
	} {
		if _, shown, err := read(t, s, name); err != nil || shown != want {
			t.Errorf("%s: %s, %v; want %s", name, shown, err, want)
		}
	}
	if l, err := s.Locate(t.Context(), "a"); err != nil || len(l) != 1 || l[0].Name() != "src/a" {
		t.Errorf("a: %v, %v", l, err)
	}
	if m, err := s.Match(t.Context(), "a/*.go", 9, nil, nil); err != nil || len(m.Names) != 1 {
		t.Errorf("a/*.go: %v, %v", m, err)
	}
	for _, name := range []string{"both", "none", "../src/b.txt"} {
		if _, shown, err := read(t, s, name); err == nil {
			t.Errorf("%s is taken: %s", name, shown)
		}
	}
}

// What cannot be taken is refused with the way on, and an outside name is not told apart from another.
func TestRefusedNamesSayTheWayOn(t *testing.T) {
	one := workspace(t, "src", map[string]string{"a/server.go": "", "b.txt": "", "both.txt": ""})
	two := workspace(t, "docs", map[string]string{"c.txt": "", "both.txt": ""})
	single, several := source.Set{Roots: []*tree.Root{one}}, source.Set{Roots: []*tree.Root{one, two}}
	for _, c := range []struct {
		s          source.Set
		name, want string
	}{
		{single, "", "source is empty: name a file or obs:ID"},
		{single, ".", "it is a directory; find with this path lists it"},
		{single, "a", "it is a directory; find with this path lists it"},
		{single, "a/srver.go", "; did you mean a/server.go?"},
		{single, "B.TXT", "; did you mean b.txt?"},
		{single, "a/*.go", "a source is one file: find with this glob lists the files that match"},
		{single, "nothing/like/it", "; find lists the existing files"},
		{single, "/etc/passwd", `name /etc/passwd: outside the root; a path is relative to the root, such as "src/a.go"; "." is the root itself`},
		{several, ".", ".: it names all roots, not a file: find lists them; a path begins with the name of a root: src, docs"},
		{several, "src", "it is a directory; find with this path lists it"},
		{several, "/etc/passwd", "name /etc/passwd: outside the root; a path begins with the name of a root: src, docs"},
	} {
		if _, _, err := read(t, c.s, c.name); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q of %d roots: %v\nwant …%s", c.name, len(c.s.Roots), err, c.want)
		}
	}
	for _, c := range []struct {
		s          source.Set
		name, want string
	}{
		{single, "b.tx", "stat b.tx: no such file or directory; did you mean b.txt?"},
		{single, "A/", "; did you mean a?"},
		{single, "nowhere", "stat nowhere: no such file or directory; find lists the existing files"},
		{single, "nowhere/at/all", "; find lists the existing files"},
		{single, "*.go", "; path takes no glob; use the argument glob"},
		{single, "../x", `outside the root; a path is relative to the root, such as "src/a.go"; "." is the root itself`},
		{single, `"no\t.txt"`, "no such file or directory; find lists the existing files"},
		{several, "docs/d.txt", "; did you mean docs/c.txt?"},
		{several, "both.txt", "both.txt: a path begins with the name of a root: src, docs; did you mean src/both.txt or docs/both.txt?"},
		{several, "src/none/b.txt", "; find lists the existing files"},
		{several, "q.txt", "q.txt: a path begins with the name of a root: src, docs"},
	} {
		if _, err := c.s.Locate(t.Context(), c.name); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("place %q of %d roots: %v\nwant …%s", c.name, len(c.s.Roots), err, c.want)
		}
	}
	there, missing := filepath.Dir(one.Dir()), filepath.Join(t.TempDir(), "missing")
	_, _, err1 := read(t, single, there)
	_, _, err2 := read(t, single, missing)
	if err1 == nil || err2 == nil ||
		strings.ReplaceAll(err1.Error(), there, "X") != strings.ReplaceAll(err2.Error(), missing, "X") {
		t.Errorf("what is there and what is not are told apart outside: %v, %v", err1, err2)
	}
	if _, _, err := read(t, several, "/"+strings.Repeat("x", 5000)); err == nil || len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestSeveralRoots(t *testing.T) {
	one := workspace(t, "src", map[string]string{"a.txt": "one"})
	two := workspace(t, "src", map[string]string{"a.txt": "two"})
	s := source.Set{Roots: []*tree.Root{one, two}}
	for name, want := range map[string]string{"src/a.txt": "one", "src-2/a.txt": "two", filepath.Join(two.Dir(), "a.txt"): "two"} {
		if text, _, err := read(t, s, name); err != nil || text != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, _, err := read(t, s, "a.txt"); err == nil || !strings.Contains(err.Error(), "src, src-2") {
		t.Errorf("a name without its root: %v", err)
	}
	places, err := s.Locate(t.Context(), ".")
	if err != nil || len(places) != 2 || places[1].Place.Name("a.txt") != "src-2/a.txt" {
		t.Errorf("all roots: %+v, %v", places, err)
	}
	places, err = s.Locate(t.Context(), "src-2")
	if err != nil || len(places) != 1 || !places[0].IsDir || places[0].Name() != "src-2/." {
		t.Errorf("one root: %+v, %v", places, err)
	}
}

// What an error calls a name is what a call may call it.
func TestErrorsNameOneOfSeveralRoots(t *testing.T) {
	s := source.Set{
		Roots: []*tree.Root{
			workspace(t, "one", map[string]string{"a.txt": "a"}), workspace(t, "two", map[string]string{"b.txt": "b"}),
		},
	}
	if _, err := s.Open(t.Context(), "two/nosuch"); err == nil || !strings.HasPrefix(err.Error(), "open two/nosuch: ") {
		t.Errorf("open: %v", err)
	}
	if _, err := s.Locate(t.Context(), "two/nosuch"); err == nil || !strings.HasPrefix(err.Error(), "stat two/nosuch: ") {
		t.Errorf("places: %v", err)
	}
}

func TestObservationsByEveryName(t *testing.T) {
	st := store(t)
	o := keep(t, st, observations.Local, "{\"a\":1}\n")
	s := source.Set{Places: []source.NamedPlace{source.Observations(st, observations.Local)}}
	for _, name := range []string{"obs:" + string(o.ID), "OBS:" + strings.ToUpper(string(o.ID)), "observation://" +
		string(o.ID), st.SavedTo(o)} {
		text, shown, err := read(t, s, name)
		if err != nil || text != "{\"a\":1}\n" || shown != "obs:"+string(o.ID) {
			t.Errorf("%s: %q as %q, %v", name, text, shown, err)
		}
	}
	if _, _, err := read(
		t, source.Set{Places: []source.NamedPlace{source.Observations(st, "another")}}, "obs:"+string(o.ID),
	); !errors.Is(err, observations.ErrNotFound) {
		t.Errorf("another owner: %v", err)
	}
	if err := st.Remove(observations.Local, o.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err := read(t, s, "obs:"+string(o.ID))
	if !errors.Is(err, observations.ErrExpired) || !strings.Contains(err.Error(), `search {"pattern":"x"}`) {
		t.Errorf("expired: %v", err)
	}
	if _, err := s.Locate(t.Context(), "."); !errors.Is(err, source.ErrNoRoot) {
		t.Errorf("no root: %v", err)
	}
}

// What may have been meant is named as it must be given: with its root, in one line.
func TestWhatMayHaveBeenMeantCanBeNamed(t *testing.T) {
	s := source.Set{Roots: []*tree.Root{
		workspace(t, "one", map[string]string{"sub/report.txt": "x"}),
		workspace(t, "two", map[string]string{"obs:reports": "x"}),
	}}
	label := s.Roots[0].Name()
	_, err := s.Open(t.Context(), label+"/sub/reprt.txt")
	want := label + "/sub/report.txt"
	if err == nil || !strings.HasSuffix(err.Error(), "did you mean "+want+"?") {
		t.Fatalf("%v", err)
	}
	if src, err := s.Open(t.Context(), want); err != nil {
		t.Errorf("%s: %v", want, err)
	} else {
		_ = src.Close()
	}
	s.Roots = s.Roots[1:]
	if _, err := s.Open(t.Context(), "./obs:report"); err == nil ||
		!strings.HasSuffix(err.Error(), "did you mean ./obs:reports?") {
		t.Errorf("%v", err)
	}
}
