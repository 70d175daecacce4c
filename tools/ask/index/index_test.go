package index

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/text/words"
)

func headings(name, text string) (all []string) {
	kind := kinds.Sniff([]byte(text), true, name)
	for _, c := range Chunks(context.Background(), name, kind, []byte(text)) {
		all = append(all, fmt.Sprintf("%d %s|%s", c.Line, c.Heading, strings.ReplaceAll(text[c.Start:c.End], "\n", "/")))
	}
	return all
}

func TestChunks(t *testing.T) {
	long := strings.Repeat("This sentence has eight words in it. ", 30) + "\n\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a.go": {"package a\n\n// F does.\nfunc F() {\n\n\tx()\n}\n\ntype T int\n", []string{
			"1 package a|package a/", "3 func F()|// F does./func F() {//\tx()/}/", "9 type T int|type T int/"}},
		"a.py": {"import os\n\n# why\ndef f(a):\n    return a\n\nclass C:\n    x = 1\n\n    def g(self):\n        pass\n", []string{
			"1 import os|import os/", "3 def f(a):|# why/def f(a):/    return a/",
			"7 class C:|class C:/    x = 1//    def g(self):/        pass/"}},
		"a.md": {"# A\n\ntext\n\n## B\n\nmore\n```\n# no heading\n```\n", []string{
			"1 A|# A//text/", "5 A > B|## B//more/```/# no heading/```/"}},
		"a.csv":    {"a,b\n1,2\n3,4\n", []string{"1 |a,b/", "2 a,b|1,2/3,4/"}},
		"a.ndjson": {"{\"a\":1}\n{\"a\":2}\n", []string{"1 |{\"a\":1}/{\"a\":2}/"}},
		"a.txt":    {"one\ntwo\n\nthree\n", []string{"1 |one/two//three/"}},
		"b.txt": {long + long, []string{"1 |" + strings.TrimSuffix(long, "\n\n") + "/",
			"3 |" + strings.TrimSuffix(long, "\n\n") + "/"}},
		"empty.txt": {"\n\n", nil},
	} {
		expect.EqualList(t, headings(name, c.text), c.want, name)
	}
}

// TestChunksCoverAll cuts random texts: passages are in order, do not overlap, leave out blanks only, begin at the line
// that they name, and have at most about 400 tokens.
func TestChunksCoverAll(t *testing.T) {
	counter := tokens.New(tokens.O200k)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{
			"\n", "\n\n", "func f() {\n", "}\n", "# Head\n", "a,b,c\n", "{\"a\": 1}\n", "東京で会議があります。", "word ",
			"Sentence one. ", "\t", strings.Repeat("long line without an end ", 80), strings.Repeat("x", 3000),
			"é", "\r\n", "- item\n", "key: value\n",
		})
		text := []byte(strings.Join(rapid.SliceOfN(part, 0, 60).Draw(t, "parts"), ""))
		name := rapid.SampledFrom([]string{"a.go", "a.py", "a.md", "a.csv", "a.json", "a.ndjson", "a.txt"}).Draw(t, "name")
		kind := kinds.Sniff(text, true, name)
		last := int64(0)
		for _, c := range Chunks(context.Background(), name, kind, text) {
			if c.Start < last || c.End <= c.Start || c.End > int64(len(text)) {
				t.Fatalf("%+v after %d of %d", c, last, len(text))
			}
			if gap := text[last:c.Start]; len(bytes.TrimSpace(gap)) > 0 {
				t.Fatalf("left out: %q", gap)
			}
			expect.MustEqual(t, 1+bytes.Count(text[:c.Start], []byte("\n")), c.Line, "line")
			if n := counter.Count(string(text[c.Start:c.End])); n > 400 {
				t.Fatalf("%d tokens", n)
			}
			last = c.End
		}
		if rest := text[last:]; len(bytes.TrimSpace(rest)) > 0 {
			t.Fatalf("left out at the end: %q", rest)
		}
	})
}

// store is a set of texts that an index reads.
type store map[string]string

func (s store) files() (all []File) {
	for p, text := range s {
		all = append(all, File{Path: p, Mark: fmt.Sprint(len(text), text), Size: int64(len(text))})
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (s store) options(read *[]string) Options {
	var reading sync.Mutex
	return Options{Below: ".", Read: func(ctx context.Context, f File) (Text, error) {
		reading.Lock()
		*read = append(*read, f.Path)
		slices.Sort(*read)
		reading.Unlock()
		text := s[f.Path]
		if strings.HasPrefix(text, "\x00") {
			return Text{Why: "binary"}, nil
		}
		return Text{Body: []byte(text), Chunks: Chunks(ctx, f.Path, content.Text, []byte(text))}, nil
	}}
}

// TestRefresh indexes files again where they changed, and only there.
func TestRefresh(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "index", "a.db"))
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	s := store{"a.txt": "alpha beta", "d/b.txt": "beta gamma", "c.bin": "\x00"}
	check := func(want []string, word string, hits ...string) {
		t.Helper()
		var read []string
		status, err := x.Refresh(t.Context(), s.files(), s.options(&read))
		if err != nil || !status.whole() || !slices.Equal(read, want) || status.Unsearchable["c.bin"] != "binary" {
			t.Errorf("read %q, want %q; %+v, %v", read, want, status, err)
		}
		found, err := x.Search(t.Context(), []string{word}, Scope{}, 10, 10)
		var paths []string
		for _, h := range found {
			paths = append(paths, h.Path)
		}
		slices.Sort(paths)
		if err != nil || !slices.Equal(paths, hits) {
			t.Errorf("%s: %q, want %q, %v", word, paths, hits, err)
		}
	}
	check([]string{"a.txt", "c.bin", "d/b.txt"}, "beta", "a.txt", "d/b.txt")
	check(nil, "beta", "a.txt", "d/b.txt")
	s["a.txt"] = "delta"
	check([]string{"a.txt"}, "beta", "d/b.txt")
	delete(s, "d/b.txt")
	check(nil, "beta")
	s["d/b.txt"] = "beta again"
	check([]string{"d/b.txt"}, "beta", "d/b.txt")
	hits, err := x.Search(t.Context(), []string{"beta", "delta"}, Scope{Below: "d"}, 10, 10)
	if err != nil || len(hits) != 1 {
		t.Errorf("below d: %v, %v", hits, err)
	}
	for _, odd := range []string{"near", "*", "(", "and"} {
		if _, err := x.Search(t.Context(), []string{odd}, Scope{}, 10, 10); err != nil {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

// TestEveryTermIsFound finds each term of a text by itself, whatever its script: FTS5 splits terms no further.
func TestEveryTermIsFound(t *testing.T) {
	x, err := Open(t.Context(), Memory)
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	text := "HTTPServer 450 000 Führung naïve Ελληνικά русский हिन्दी தமிழ் ภาษาไทย 東京 한국어 العربية עברית ᏣᎳᎩ ꙗзыкъ 𞤆𞤵𞤤𞤢𞤪"
	var read []string
	s := store{"a.txt": text}
	expect.Value(x.Refresh(t.Context(), s.files(), s.options(&read)))(t)
	all := words.Terms(text)
	rare, err := x.Rarity(t.Context(), all, Scope{})
	expect.Must(t, err)
	for _, term := range all {
		if hits, err := x.Search(t.Context(), []string{term}, Scope{}, 1, 1); err != nil || len(hits) != 1 || rare[term] == 0 {
			t.Errorf("%q: %v, %v, rarity %v", term, hits, err, rare[term])
		}
	}
}

// TestManyFiles indexes more than one batch, in the order of the files, and keeps what was written before it is stopped.
func TestManyFiles(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	s := store{}
	const count = 100
	for i := range count {
		s[fmt.Sprintf("%02d.txt", i)] = "same"
	}
	body := append([]byte("same"), make([]byte, batch/25)...) // four batches, of little to write
	var reads atomic.Int64
	read := func(context.Context, File) (Text, error) {
		reads.Add(1)
		return Text{Body: body, Chunks: []Chunk{{End: 4, Line: 1}}}, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	part, err := x.Refresh(ctx, s.files(), Options{Read: read, Progress: func(done, total int64) {
		if done > total*3/4 { // what was read before the third batch is written
			stop()
		}
	}})
	if err == nil || part.Indexed == 0 || part.whole() {
		t.Errorf("%+v, %v", part, err)
	}
	reads.Store(0)
	status, err := x.Refresh(t.Context(), s.files(), Options{Read: read})
	if err != nil || !status.whole() || reads.Load() != int64(count-part.Indexed) {
		t.Errorf("%d were read after %+v: %+v, %v", reads.Load(), part, status, err)
	}
	hits, err := x.Search(t.Context(), []string{"same"}, Scope{}, count, 1)
	if err != nil || len(hits) != count {
		t.Fatalf("%d files, %v", len(hits), err)
	}
	for i, h := range slices.SortedFunc(slices.Values(hits), func(a, b Hit) int { return cmp.Compare(a.file, b.file) }) {
		expect.Equal(t, h.Path, fmt.Sprintf("%02d.txt", i))
	}
}

// TestDeadline indexes a part, says so, and the rest later.
func TestDeadline(t *testing.T) {
	x, err := Open(t.Context(), Memory)
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	s := store{"a.txt": "alpha", "b.txt": "beta"}
	var read []string
	o := s.options(&read)
	o.Deadline = time.Now().Add(-time.Second)
	if status, err := x.Refresh(t.Context(), s.files(), o); err != nil || status.whole() || status.Indexed != 0 {
		t.Errorf("%+v, %v", status, err)
	}
	o.Deadline = time.Time{}
	if status, err := x.Refresh(t.Context(), s.files(), o); err != nil || !status.whole() {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestDamagedIndex makes an index again that is cut, foreign or of another version.
func TestDamagedIndex(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, file string) error{
		"cut":     func(_ *testing.T, file string) error { return os.Truncate(file, 5000) },
		"foreign": func(_ *testing.T, file string) error { return os.WriteFile(file, []byte("no database"), 0o600) },
		"version": func(t *testing.T, file string) error {
			x, err := open(t.Context(), file)
			if err != nil {
				return err
			}
			defer func() { _ = x.Close() }()
			_, err = x.db.ExecContext(t.Context(), "PRAGMA user_version = 99")
			return err
		},
	} {
		file := filepath.Join(t.TempDir(), "index", "a.db")
		s := store{"a.txt": "alpha"}
		for i := range 2 {
			x, err := Open(t.Context(), file)
			expect.Must(t, err, name)
			var read []string
			if status, err := x.Refresh(t.Context(), s.files(), s.options(&read)); err != nil || !status.whole() {
				t.Errorf("%s: %+v, %v", name, status, err)
			}
			if hits, err := x.Search(t.Context(), []string{"alpha"}, Scope{}, 1, 1); err != nil || len(hits) != 1 {
				t.Errorf("%s: %v, %v", name, hits, err)
			}
			expect.Must(t, x.Close())
			if i == 0 {
				_ = os.Remove(file + "-wal")
				expect.Must(t, spoil(t, file))
			}
		}
		if at, err := os.Stat(file); err != nil || at.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, at.Mode(), err)
		}
	}
}

// whole reports whether every file is in the index.
func (s Status) whole() bool { return s.Indexed == s.Files }

// TestOtherWriter opens and refreshes an index while another process writes it: Refresh waits for it, until the deadline.
func TestOtherWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	other := expect.Value(Open(t.Context(), file))(t)
	defer func() { _ = other.Close() }()
	lock := expect.Value(other.db.BeginTx(t.Context(), nil))(t)
	x := expect.Value(Open(t.Context(), file))(t)
	defer func() { _ = x.Close() }()
	x.db.SetMaxOpenConns(1)
	_, err := x.db.ExecContext(t.Context(), "PRAGMA busy_timeout = 1")
	expect.Must(t, err)
	files := []File{{Path: "a.txt", Mark: "1", Size: 3}}
	o := Options{
		Read:     func(context.Context, File) (Text, error) { return Text{}, nil },
		Deadline: time.Now().Add(100 * time.Millisecond),
	}
	s := expect.Value(x.Refresh(t.Context(), files, o))(t)
	expect.Equal(t, s.Indexed, 0, "late")
	o.Deadline = time.Time{}
	timer := time.AfterFunc(100*time.Millisecond, func() { _ = lock.Rollback() })
	defer timer.Stop()
	s = expect.Value(x.Refresh(t.Context(), files, o))(t)
	expect.Equal(t, s.Indexed, 1, "after the other")
}
