package observations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// clock is a store's time, in a test's hands.
type clock struct{ at time.Time }

func (c *clock) now() time.Time        { return c.at }
func (c *clock) pass(d time.Duration)  { c.at = c.at.Add(d) }
func newClock() *clock                 { return &clock{time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)} }
func sum(b []byte) string              { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
func roomy(o Options) Options          { o.MinFree = -1; return o }
func dir(s *Store, name string) string { return filepath.Join(s.dir, name) }
func sidecarPath(s *Store, id ID) string {
	return filepath.Join(s.dir, observationsDir, string(id)+sideExt)
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "store")
	}
	s, err := OpenStore(roomy(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func record(t testing.TB, s *Store, m Made, b []byte) *Recording {
	t.Helper()
	r, err := s.Record(m)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Write(b); n != len(b) || err != nil {
		t.Fatalf("Write = %d, %v; want %d, nil", n, err, len(b))
	}
	return r
}

func keep(t testing.TB, s *Store, m Made, b []byte) Observation {
	t.Helper()
	o, err := record(t, s, m, b).Commit(Seen{Kind: "text", Ext: "txt", Status: "success"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func content(t testing.TB, s *Store, owner string, id ID) []byte {
	t.Helper()
	r, err := s.Open(owner, id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names are the files in a store's directory.
func names(t testing.TB, s *Store, sub string) []string {
	t.Helper()
	list, err := os.ReadDir(dir(s, sub))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// consistent says that the quota file knows what stands on the disk, and that
// nothing is left in tmp/ but the live files of those who live.
func consistent(t testing.TB, s *Store) {
	t.Helper()
	var l ledger
	b, err := os.ReadFile(dir(s, quotaName))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatalf("quota file %q: %v", b, err)
	}
	all, err := s.survey(true)
	if err != nil {
		t.Fatal(err)
	}
	var stands int64
	for _, e := range all {
		stands += e.size()
	}
	if l.Kept != stands || len(l.Held) > 0 {
		t.Errorf("the quota file says %d kept and %v held; %d stand in the store", l.Kept, l.Held, stands)
	}
	for _, n := range names(t, s, tmpDir) {
		if !strings.HasSuffix(n, liveExt) {
			t.Errorf("left in tmp/: %s", n)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	files := map[string][]byte{
		"empty":         {},
		"one byte":      {'x'},
		"war and peace": corpus.WarAndPeace(),
		"1MB":           corpus.JSON1MB(),
		"5MB":           corpus.JSON5MB(),
		"one line":      corpus.JSON1MBMinified(),
		"log":           corpus.PanicLog(),
		"cjk":           corpus.CJK(),
		"random":        corpus.Random(1 << 20),
		"memory, full":  corpus.Random(blockSize),
		"just spilled":  corpus.Random(blockSize + 1),
		"two blocks":    corpus.Random(2 * blockSize),
	}
	c := newClock()
	s := open(t, Options{Now: c.now})
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			r, err := s.Record(Made{Tool: "read", Args: json.RawMessage(`{"path": "a<b"}`), Origin: []string{"obs:k3v9q2m7x4ab"}, Name: name})
			if err != nil {
				t.Fatal(err)
			}
			for rest, n := want, 1; len(rest) > 0; n = n*3%100_003 + 1 { // pieces of many sizes
				n = min(n, len(rest))
				_, _ = r.Write(rest[:n])
				rest = rest[n:]
			}
			back := make([]byte, len(want))
			if n, err := r.ReadAt(back, 0); n != len(want) || (err != nil && !errors.Is(err, io.EOF)) || !bytes.Equal(back, want) {
				t.Fatalf("ReadAt while recording: %d bytes, %v", n, err)
			}
			if r.Size() != int64(len(want)) || r.Dropped() != 0 || r.Err() != nil || r.SHA256() != sum(want) {
				t.Fatalf("recording: size %d, dropped %d, err %v, sha256 %s", r.Size(), r.Dropped(), r.Err(), r.SHA256())
			}
			seen := Seen{Kind: "json", Ext: "json", Lines: 3, Chars: 4, Tokens: 5, TokensMargin: 0.01, Status: "success",
				Duration: time.Second, Receipt: "LARGE <b>", Counts: map[string]float64{"total_matches": 7}}
			o, err := r.Commit(seen)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Discard(); err != nil { // closes only
				t.Fatal(err)
			}
			if n, _ := r.ReadAt(back, 0); n != len(want) || !bytes.Equal(back, want) {
				t.Error("ReadAt after Commit does not give what was kept")
			}
			_ = r.Discard()
			want1 := Observation{V: 1, ID: r.ID(), Owner: Local, Tool: "read", Name: name, Args: json.RawMessage(`{"path":"a<b"}`),
				CallHash: CallHash("read", json.RawMessage(`{"path":"a<b"}`)), Origin: []string{"obs:k3v9q2m7x4ab"},
				Created: c.at, Used: c.at, File: "read_20260314T150926_" + string(r.ID()) + ".json",
				Bytes: int64(len(want)), SHA256: sum(want), Seen: seen}
			if d := cmp.Diff(want1, o); d != "" {
				t.Errorf("committed (-want +got):\n%s", d)
			}
			got, err := s.Open(Local, o.ID)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = got.Close() }()
			got.Observation.Used = got.Observation.Used.UTC()
			if d := cmp.Diff(o, got.Observation); d != "" {
				t.Errorf("opened (-committed +opened):\n%s", d)
			}
			if b := content(t, s, Local, o.ID); !bytes.Equal(b, want) {
				t.Error("what is read is not what was written")
			}
			if err := s.Verify(Local, o.ID); err != nil {
				t.Error(err)
			}
			if id, ok := s.Find(s.SavedTo(o)); !ok || id != o.ID {
				t.Errorf("Find(%q) = %q, %v", s.SavedTo(o), id, ok)
			}
			disk, err := os.ReadFile(s.SavedTo(o))
			if err != nil || sum(disk) != o.SHA256 {
				t.Errorf("file at %s: %v", s.SavedTo(o), err)
			}
		})
	}
	consistent(t, s)
}

func TestPrivateModes(t *testing.T) {
	s := open(t, Options{})
	keep(t, s, Made{Tool: "search"}, corpus.Random(100_000))
	r := record(t, s, Made{Tool: "search"}, corpus.Random(100_000)) // one in tmp/
	defer func() { _ = r.Discard() }()
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			t.Error(err)
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		return nil
	})
}

func TestOwners(t *testing.T) {
	s := open(t, Options{})
	mine := keep(t, s, Made{Owner: "ann", Tool: "search"}, []byte("secret"))
	gone := keep(t, s, Made{Owner: "ann", Tool: "search"}, []byte("secret"))
	if err := s.Remove("ann", gone.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{mine.ID, gone.ID} {
		unknown := newID()
		for name, do := range map[string]func(ID) error{
			"Open":   func(id ID) error { _, err := s.Open("bob", id); return err },
			"Look":   func(id ID) error { _, err := s.Look("bob", id); return err },
			"Verify": func(id ID) error { return s.Verify("bob", id) },
			"Pin":    func(id ID) error { return s.Pin("bob", id, true) },
			"Remove": func(id ID) error { return s.Remove("bob", id) },
		} {
			got, want := do(id), do(unknown)
			if !errors.Is(got, ErrNotFound) {
				t.Errorf("%s of another's: %v", name, got)
			}
			if g, w := strings.ReplaceAll(got.Error(), string(id), "ID"), strings.ReplaceAll(want.Error(), string(unknown), "ID"); g != w {
				t.Errorf("%s tells another's from an unknown one: %q, %q", name, g, w)
			}
		}
	}
	for owner, want := range map[string]int{"ann": 2, "bob": 0, "": 2, Local: 0} {
		if list, err := s.List(owner, true); err != nil || len(list) != want {
			t.Errorf("List(%q) = %d, %v; want %d", owner, len(list), err, want)
		}
	}
	if got := content(t, s, "ann", mine.ID); string(got) != "secret" {
		t.Errorf("the owner reads %q", got)
	}
	if _, err := s.Open("ann", gone.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("the owner's removed one: %v", err)
	}
}

func TestListNewestFirst(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now})
	var want []ID
	for i := range 5 {
		o, err := record(t, s, Made{Tool: "find"}, fmt.Appendf(nil, "%d", i)).Commit(Seen{Ext: "txt", Receipt: "r"})
		if err != nil {
			t.Fatal(err)
		}
		want = append([]ID{o.ID}, want...)
		c.pass(time.Second)
	}
	if err := s.Remove(Local, want[2]); err != nil {
		t.Fatal(err)
	}
	ids := func(tombstones bool) (ids []ID) {
		list, err := s.List(Local, tombstones)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			ids = append(ids, o.ID)
			if o.Seen.Receipt != "" {
				t.Error("a list carries receipts")
			}
		}
		return ids
	}
	if d := cmp.Diff(want, ids(true)); d != "" {
		t.Errorf("with tombstones (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]ID{want[0], want[1], want[3], want[4]}, ids(false)); d != "" {
		t.Errorf("without (-want +got):\n%s", d)
	}
	if o, err := s.Look(Local, want[0]); err != nil || o.Seen.Receipt != "r" {
		t.Errorf("Look = %q, %v", o.Seen.Receipt, err)
	}
}

func TestIDs(t *testing.T) {
	for in, want := range map[string]ID{
		"k3v9q2m7x4ab":               "k3v9q2m7x4ab",
		"K3V9Q2M7X4AB":               "k3v9q2m7x4ab",
		"obs:k3v9q2m7x4ab":           "k3v9q2m7x4ab",
		"OBS:K3v9q2m7x4ab":           "k3v9q2m7x4ab",
		"observation://k3v9q2m7x4ab": "k3v9q2m7x4ab",
		"":                           "", "obs:": "", "k3v9q2m7x4a": "", "k3v9q2m7x4abc": "", "k3v9q2m7x4al": "",
		"k3v9q2m7x4ai": "", "k3v9q2m7x4ao": "", "k3v9q2m7x4au": "", "../../../../ab": "", "obs:obs:k3v9q2m7x4ab": "",
		"observation://k3v9q2m7x4ab/receipt": "", " k3v9q2m7x4ab": "", "k3v9q2m7x4a\x00": "", strings.Repeat("k", 1<<20): "",
	} {
		got, err := ParseID(in)
		if got != want || (err == nil) != (want != "") || (err != nil && !errors.Is(err, ErrMalformed)) {
			t.Errorf("ParseID(%.40q) = %q, %v", in, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("ParseID(%.40q): an error of %d bytes", in, len(err.Error()))
		}
	}
	seen := map[ID]bool{}
	for range 10_000 {
		id := newID()
		if back, err := ParseID("obs:" + string(id)); err != nil || back != id || seen[id] {
			t.Fatalf("new ID %q: %v", id, err)
		}
		seen[id] = true
	}
	s := open(t, Options{})
	for _, id := range []ID{"", "K3V9Q2M7X4AB", "../quota", "../../etc/pw", "x"} {
		if _, err := s.Open(Local, id); !errors.Is(err, ErrMalformed) {
			t.Errorf("Open(%q): %v", id, err)
		}
	}
}

func TestDataNames(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 30, 22, 0, time.UTC)
	const id = "k3v9q2m7x4ab"
	for _, c := range []struct{ tool, ext, want string }{
		{"search", "ndjson", "search_20261120T143022_k3v9q2m7x4ab.ndjson"},
		{"", "", "tool_20261120T143022_k3v9q2m7x4ab.txt"},
		{"github__list_issues", "json", "github__list_issues_20261120T143022_k3v9q2m7x4ab.json"},
		{"../../etc/passwd", "../x", "------etc-passwd_20261120T143022_k3v9q2m7x4ab.txt"},
		{"a\x00b\u202e.c", "JSON", "a-b----c_20261120T143022_k3v9q2m7x4ab.txt"},
		{strings.Repeat("x", 500), strings.Repeat("e", 11), strings.Repeat("x", 40) + "_20261120T143022_k3v9q2m7x4ab.txt"},
	} {
		got := dataName(c.tool, at, id, c.ext)
		if got != c.want {
			t.Errorf("dataName(%.20q, %.20q) = %q, want %q", c.tool, c.ext, got, c.want)
		}
		if back, ok := parseDataName(got); !ok || back != id {
			t.Errorf("parseDataName(%q) = %q, %v", got, back, ok)
		}
	}
	for _, name := range []string{"", ".", "k3v9q2m7x4ab.json", "_20261120T143022_k3v9q2m7x4ab.txt", "search_20261320T143022_k3v9q2m7x4ab.txt",
		"search_20261120T143022_k3v9q2m7x4ab", "search_20261120T143022_k3v9q2m7x4al.txt", "search_20261120T143022_k3v9q2m7x4ab.txt.bak",
		"search-20261120T143022_k3v9q2m7x4ab.txt", "a/b_20261120T143022_k3v9q2m7x4ab.txt", "search_20261120T143022_k3v9q2m7x4ab.TXT"} {
		if id, ok := parseDataName(name); ok {
			t.Errorf("parseDataName(%q) = %q", name, id)
		}
	}
	s := open(t, Options{})
	good := "search_20261120T143022_k3v9q2m7x4ab.ndjson"
	for path, want := range map[string]bool{
		filepath.Join(s.Dir(), "observations", good):        true,
		s.Dir() + "/observations/../observations/" + good:   true,
		filepath.Join(s.Dir(), good):                        false,
		filepath.Join(s.Dir(), "tmp", good):                 false,
		"observations/" + good:                              false,
		filepath.Join(s.Dir(), "observations", "sub", good): false,
		"": false,
	} {
		if id, ok := s.Find(path); ok != want || (ok && id != "k3v9q2m7x4ab") {
			t.Errorf("Find(%q) = %q, %v", path, id, ok)
		}
	}
}

func TestDamage(t *testing.T) {
	s := open(t, Options{})
	side := func(change func(o map[string]any)) func(*testing.T, Observation) {
		return func(t *testing.T, o Observation) {
			b, err := os.ReadFile(sidecarPath(s, o.ID))
			if err != nil {
				t.Fatal(err)
			}
			m := map[string]any{}
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			change(m)
			if b, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(sidecarPath(s, o.ID), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(b string) func(*testing.T, Observation) {
		return func(t *testing.T, o Observation) {
			if err := os.WriteFile(sidecarPath(s, o.ID), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, Observation)
		open   error // of Open
		verify error
	}{
		{"nothing", func(*testing.T, Observation) {}, nil, nil},
		{"sidecar empty", write(""), ErrNotFound, ErrNotFound},
		{"sidecar torn", write(`{"v":1,"id":"`), ErrNotFound, ErrNotFound},
		{"sidecar not an object", write(`[1,2]`), ErrNotFound, ErrNotFound},
		{"sidecar huge", write(`{"v":1,"tool":"` + strings.Repeat("x", 1<<20) + `"}`), ErrNotFound, ErrNotFound},
		{"sidecar deep", write(strings.Repeat("[", maxSidecar-1)), ErrNotFound, ErrNotFound},
		{"later version", side(func(m map[string]any) { m["v"] = 2 }), ErrNotFound, ErrNotFound},
		{"another's name", side(func(m map[string]any) { m["file"] = "search_20261120T143022_k3v9q2m7x4ab.ndjson" }), ErrNotFound, ErrNotFound},
		{"a path out", side(func(m map[string]any) { m["file"] = "../../../../etc/passwd" }), ErrNotFound, ErrNotFound},
		{"another id", side(func(m map[string]any) { m["id"] = "k3v9q2m7x4ab" }), ErrNotFound, ErrNotFound},
		{"bytes below zero", side(func(m map[string]any) { m["bytes"] = -1 }), ErrNotFound, ErrNotFound},
		{"hash gone", side(func(m map[string]any) { m["sha256"] = "" }), ErrNotFound, ErrNotFound},
		{"data gone", func(t *testing.T, o Observation) { must(t, os.Remove(s.SavedTo(o))) }, ErrDamaged, ErrDamaged},
		{"data cut", func(t *testing.T, o Observation) { must(t, os.Truncate(s.SavedTo(o), 2)) }, ErrDamaged, ErrDamaged},
		{"data longer", func(t *testing.T, o Observation) { must(t, os.Truncate(s.SavedTo(o), 2000)) }, ErrDamaged, ErrDamaged},
		{"data a directory", func(t *testing.T, o Observation) {
			must(t, os.Remove(s.SavedTo(o)))
			must(t, os.Mkdir(s.SavedTo(o), 0o700))
		}, ErrDamaged, ErrDamaged},
		{"data changed", func(t *testing.T, o Observation) { must(t, os.WriteFile(s.SavedTo(o), []byte("other data"), 0o600)) }, nil, ErrDamaged},
		{"index garbage", func(t *testing.T, o Observation) {
			must(t, os.WriteFile(dir(s, "observations/"+string(o.ID)+indexExt), []byte("mfl1garbage"), 0o600))
		}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := keep(t, s, Made{Tool: "search"}, []byte("data\nlines"))
			c.damage(t, o)
			r, err := s.Open(Local, o.ID)
			if !errors.Is(err, c.open) {
				t.Errorf("Open: %v, want %v", err, c.open)
			}
			if err == nil {
				if at, line, err := r.LineOffset(2); at != 5 || line != 2 || err != nil {
					if c.verify == nil {
						t.Errorf("LineOffset(2) = %d, %d, %v", at, line, err)
					}
				}
				_ = r.Close()
			}
			if err := s.Verify(Local, o.ID); !errors.Is(err, c.verify) {
				t.Errorf("Verify: %v, want %v", err, c.verify)
			}
			if _, err := s.List("", true); err != nil {
				t.Errorf("List: %v", err)
			}
			if _, err := s.Prune(false); err != nil {
				t.Errorf("Prune: %v", err)
			}
			if _, err := s.Usage(); err != nil {
				t.Errorf("Usage: %v", err)
			}
		})
	}
}

// A sidecar of a later version is neither shown nor touched, whatever is cleaned up.
func TestLaterVersionIsLeftAlone(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, Quota: 256 << 10})
	o := keep(t, s, Made{Tool: "search"}, []byte("data"))
	side := []byte(`{"v":2,"what":"later"}`)
	if err := os.WriteFile(sidecarPath(s, o.ID), side, 0o600); err != nil {
		t.Fatal(err)
	}
	stone := newID()
	if err := os.WriteFile(sidecarPath(s, stone), side, 0o600); err != nil { // and one that may be a tombstone
		t.Fatal(err)
	}
	c.pass(200 * 24 * time.Hour)
	keep(t, s, Made{Tool: "search"}, corpus.Random(200<<10))
	if _, err := s.Prune(false); err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{o.ID, stone} {
		if b, err := os.ReadFile(sidecarPath(s, id)); err != nil || !bytes.Equal(b, side) {
			t.Errorf("sidecar of a later version: %q, %v", b, err)
		}
	}
	if b, err := os.ReadFile(s.SavedTo(o)); err != nil || string(b) != "data" {
		t.Errorf("data of a later version: %q, %v", b, err)
	}
}

func TestRefusedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"group may write": {func(t *testing.T, dir string) { mkdir(t, dir, 0o770) }, "chmod go-w"},
		"all may write":   {func(t *testing.T, dir string) { mkdir(t, dir, 0o777) }, "chmod go-w"},
		"observations writable": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			mkdir(t, filepath.Join(dir, "observations"), 0o777)
		}, "chmod go-w"},
		"observations a link": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "observations")); err != nil {
				t.Skip("links cannot be made here")
			}
		}, "move it away"},
		"tmp a file": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			must(t, os.WriteFile(filepath.Join(dir, "tmp"), nil, 0o600))
		}, "move it away"},
		"a file":  {func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) }, "--store"},
		"foreign": {func(t *testing.T, dir string) { mkdir(t, dir, 0o700); chown(t, dir, 12345) }, "chown it"},
		"tmp foreign": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			mkdir(t, filepath.Join(dir, "tmp"), 0o700)
			chown(t, filepath.Join(dir, "tmp"), 12345)
		}, "chown it"},
		"a stranger's link": {func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), dir); err != nil {
				t.Skip("links cannot be made here")
			}
			chown(t, dir, 12345)
		}, "--store"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			c.make(t, dir)
			s, err := OpenStore(Options{Dir: dir})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "open store ") {
				t.Errorf("the error does not say what to do (%q): %v", c.want, err)
			}
		})
	}
	t.Run("control: a plain one", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		mkdir(t, dir, 0o755)
		link := dir + "-link"
		if os.Symlink(dir, link) != nil {
			link = dir
		}
		open(t, Options{Dir: link})
	})
}

func mkdir(t *testing.T, dir string, mode fs.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string, uid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: a directory cannot be given to another user")
	}
	if err := os.Lchown(path, uid, -1); err != nil {
		t.Fatal(err)
	}
}

// Links that someone planted under the names of a store lead nowhere.
func TestPlantedLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	const secret = "outside the store"
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{})
	inside := keep(t, s, Made{Owner: "ann", Tool: "search"}, []byte(secret))
	for _, target := range []string{outside, filepath.Base(s.SavedTo(inside))} { // also one that stays inside
		for name, plant := range map[string]func(o Observation) string{
			"data":    func(o Observation) string { return s.SavedTo(o) },
			"sidecar": func(o Observation) string { return sidecarPath(s, o.ID) },
			"index":   func(o Observation) string { return dir(s, "observations/"+string(o.ID)+indexExt) },
		} {
			o := keep(t, s, Made{Tool: "search"}, []byte(strings.Repeat("x", len(secret))))
			path := plant(o)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Skip("links cannot be made here")
			}
			if r, err := s.Open(Local, o.ID); err == nil {
				b, _ := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
				if strings.Contains(string(b), secret) {
					t.Errorf("%s as a link to %s: it was followed", name, target)
				}
				_, _, _ = r.LineOffset(2)
				_ = r.Close()
			} else if name == "index" {
				t.Errorf("%s as a link: %v", name, err)
			}
			if _, err := s.Prune(false); err != nil {
				t.Error(err)
			}
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != secret {
		t.Errorf("outside: %q, %v", b, err)
	}
	// The control: without the guard the link is followed, so a pass above means something.
	o := keep(t, s, Made{Tool: "search"}, []byte("x"))
	must(t, os.Remove(s.SavedTo(o)))
	must(t, os.Symlink(filepath.Base(s.SavedTo(inside)), s.SavedTo(o)))
	f, err := s.disk.dirs[observationsDir].Open(o.File)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if b, _ := io.ReadAll(f); string(b) != secret {
		t.Errorf("control: a link inside is not followed: %q", b)
	}
	// The names of the quota and of a live file.
	if err := os.Remove(dir(s, quotaName)); err != nil {
		t.Fatal(err)
	}
	must(t, os.Symlink(outside, dir(s, quotaName)))
	if _, err := record(t, s, Made{}, []byte("x")).Commit(Seen{}); err == nil {
		t.Error("a quota file that is a link was taken")
	}
	if b, _ := os.ReadFile(outside); string(b) != secret {
		t.Errorf("outside was written: %q", b)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := DefaultDir(); err != nil || filepath.ToSlash(got) != "/home/ann/.local/state/mcp-funnel" {
		t.Errorf("DefaultDir() = %q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if got, _ := DefaultDir(); filepath.ToSlash(got) != "/home/ann/.local/state/mcp-funnel" {
		t.Errorf("a relative XDG_STATE_HOME gives %q", got)
	}
	t.Setenv("XDG_STATE_HOME", "/var/state")
	if got, _ := DefaultDir(); filepath.ToSlash(got) != "/var/state/mcp-funnel" {
		t.Errorf("XDG_STATE_HOME=/var/state gives %q", got)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := DefaultDir(); err == nil || !strings.Contains(err.Error(), "--store") {
		t.Errorf("no home: %v", err)
	}
}

func TestAmounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 256 << 20: "256 MiB", 1 << 30: "1 GiB", 3 << 29: "1.5 GiB"} {
		if got := amount(n); got != want {
			t.Errorf("amount(%d) = %q, want %q", n, got, want)
		}
	}
}
