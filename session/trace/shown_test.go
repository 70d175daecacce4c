package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// refsOf returns the names of all calls, by tool.
func refsOf(t *testing.T, s Store) map[string]string {
	t.Helper()
	refs := map[string]string{}
	for c, err := range s.Read(time.Time{}, nil) {
		expect.Must(t, err)
		if !regexp.MustCompile(`^[\w.~-]{1,80}$`).MatchString(c.Ref) {
			t.Errorf("%s is named %q", c.Tool, c.Ref)
		}
		refs[c.Tool] = c.Ref
	}
	return refs
}

// isShown checks what is kept of a call: its text, or "-" for none.
func isShown(t *testing.T, s Store, refs map[string]string, tool, want string) {
	t.Helper()
	c, got, err := s.Shown(refs[tool])
	expect.Equal(t, c.Tool, tool, "of %s", refs[tool])
	if want == "-" {
		expect.ErrorIs(t, err, ErrNotKept, "of %s", tool)
		return
	}
	expect.OK(t, err, tool)
	expect.Equal(t, got.Text, want, "text of %s", tool)
}

func text(s string) *Shown { return &Shown{Args: json.RawMessage(`{"a":1}`), Text: s} }

// TestShown has what is asked and shown, read by another process while the first goes on.
func TestShown(t *testing.T) {
	long := strings.Repeat("世", maxShown)
	cases := map[string]struct{ in, want *Shown }{
		"none": {nil, nil},
		"plain": {
			text("a\n<b>&\x00\"\u2028"), &Shown{Args: json.RawMessage(`{"a":1}`), Text: "a\n<b>&\x00\"\u2028", Bytes: 11},
		},
		"empty":  {&Shown{}, &Shown{}},
		"partly": {&Shown{Text: "beginning", Bytes: 1 << 30}, &Shown{Text: "beginning", Bytes: 1 << 30}},
		"long":   {&Shown{Text: long}, &Shown{Text: long[:maxShown-maxShown%3], Bytes: int64(len(long))}},
		"escaped": {
			&Shown{Text: strings.Repeat("\x01", 2*maxShown)},
			&Shown{Text: strings.Repeat("\x01", maxShown), Bytes: 2 * maxShown},
		},
		"spaced": {&Shown{Args: json.RawMessage("{ \"a\" :\n1 }")}, &Shown{Args: json.RawMessage(`{"a":1}`)}},
		"broken": {&Shown{Args: json.RawMessage("{")}, &Shown{Args: json.RawMessage(`"{"`), ArgsCut: true}},
	}
	everywhere(t, func(t *testing.T, open func() Store) {
		a, b := open(), open()
		for name, c := range cases {
			expect.Must(t, a.Append(Call{At: time.Now(), Tool: name}, c.in))
		}
		args := json.RawMessage(`{"pattern":"` + strings.Repeat("<é", maxArgs) + `"}`)
		expect.Must(t, b.Append(Call{At: time.Now(), Tool: "args"}, &Shown{Args: args}))
		b.KeepShown(0)
		expect.Must(t, b.Append(Call{At: time.Now(), Tool: "off"}, text("off")))
		expect.Must(t, b.Close())
		refs := refsOf(t, a)
		expect.Equal(t, len(refs), len(cases)+2)
		for name, c := range cases {
			call, got, err := a.Shown(refs[name])
			expect.Equal(t, call.Ref, refs[name])
			expect.Equal(t, call.Tool, name)
			if c.want == nil {
				expect.ErrorIs(t, err, ErrNotKept)
				continue
			}
			expect.Must(t, err, name)
			expect.Same(t, got, *c.want, name)
			expect.Equal(t, call.ShownBytes, c.want.Bytes, "bytes of %s", name)
		}
		_, got, err := a.Shown(refs["args"])
		expect.Must(t, err)
		var begin string
		expect.Must(t, json.Unmarshal(got.Args, &begin))
		expect.Has(t, begin, `{"pattern":"<é<é`)
		if !got.ArgsCut || len(got.Args) > maxArgs || !utf8.ValidString(begin) {
			t.Errorf("long arguments: cut %v, %d bytes, %.40q", got.ArgsCut, len(got.Args), begin)
		}
		isShown(t, a, refs, "off", "-")
		expect.Must(t, a.Append(Call{At: time.Now(), Tool: "later"}, text("later")))
		isShown(t, a, refs, "plain", cases["plain"].want.Text)
		isShown(t, a, refsOf(t, a), "later", "later")
	})
}

// TestShownAtOnce has processes that write and read at once: each call has its own text, also while others are added.
func TestShownAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		const processes, each = 4, 60
		var group sync.WaitGroup
		for i := range processes {
			s := open()
			group.Go(func() {
				for k := range each {
					name := fmt.Sprintf("%d.%d", i, k)
					expect.OK(t, s.Append(Call{At: time.Now(), Tool: name}, text(strings.Repeat(name, k*17))))
				}
				for c, err := range s.Read(time.Time{}, nil) {
					expect.OK(t, err)
					_, got, err := s.Shown(c.Ref)
					expect.OK(t, err, c.Tool)
					if len(got.Text) > 0 && !strings.HasPrefix(got.Text, c.Tool) {
						t.Errorf("%s has the text %.20q", c.Tool, got.Text)
					}
				}
			})
		}
		group.Wait()
		s := open()
		refs := refsOf(t, s)
		expect.Equal(t, len(refs), processes*each)
		for name := range refs {
			_, k, _ := strings.Cut(name, ".")
			var n int
			expect.Must(t, json.Unmarshal([]byte(k), &n))
			isShown(t, s, refs, name, strings.Repeat(name, n*17))
		}
	})
}

// TestShownOfNoCall has names that no call of the store has, or could have.
func TestShownOfNoCall(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		s := open()
		expect.Must(t, s.Append(Call{At: time.Now(), Tool: "first", Source: `{"v":1,"tool":"x"}`}, text("first")))
		expect.Must(t, s.Append(Call{At: time.Now(), Tool: "second"}, text("second")))
		ref := refsOf(t, s)["second"]
		stem, _, _ := strings.Cut(ref, ".")
		wrong := []string{
			"", ".", "..", "0", stem, stem + ".", stem + ".-1", stem + ".00", stem + ".+1", stem + ".1e1", stem + ".9999999999",
			stem + ".99999999999999999999", ref + "0", ref + ".", ref + "\n", "\n" + ref, " " + ref, ref + "/..", "../" + ref,
			ref + "\x00", strings.ToUpper(ref) + "x", "20200101.1", "20200101_1-0123abcd.0", "20209999.1",
			"20209999_1-0123abcd.0",
			"20200101_1-/../../x.0", "20200101_1-../../..0", `20200101_1-..\..\x.0`, strings.Repeat("9", 1000), "é" + ref,
		}
		for i := range 40 { // offsets within a line
			wrong = append(wrong, fmt.Sprint(stem, ".", 1000+i), fmt.Sprintf("%s.%d", stem, 10+i))
		}
		for _, w := range wrong {
			c, got, err := s.Shown(w)
			expect.ErrorIs(t, err, fs.ErrNotExist, "of %.40q", w)
			expect.Same(t, c, Call{}, "of %.40q", w)
			expect.Same(t, got, Shown{}, "of %.40q", w)
		}
	})
	for _, l := range []*Log{nil, {}, InDir(filepath.Join(t.TempDir(), "none"))} {
		expect.ErrorIs(t, expect.Err(func() (Shown, error) {
			_, s, err := l.Shown("20200101_1-0123abcd.0")
			return s, err
		}()), fs.ErrNotExist)
	}
}

// TestShownAge has texts of the days of a month and more: they go with their lines.
func TestShownAge(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		s, began := open(), time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
		refs := map[string]string{}
		for d := range 35 {
			at := began.AddDate(0, 0, d)
			now := func() time.Time { return at }
			switch s := s.(type) {
			case *Log:
				s.now, s.texts.now = now, now
				expect.Must(t, os.Chtimes(s.dir, at.AddDate(0, 0, -1), at.AddDate(0, 0, -1))) // the day is new to it
			case *Rows:
				s.now = now
			}
			name := fmt.Sprint(d)
			expect.Must(t, s.Append(Call{At: at, Tool: name}, text(name)))
			refs[name] = refsOf(t, s)[name]
		}
		left := refsOf(t, s)
		if len(left) < 31 || len(left) > 32 {
			t.Errorf("%d days are left", len(left))
		}
		for name, ref := range refs {
			if left[name] != "" {
				isShown(t, s, refs, name, name)
				continue
			}
			_, _, err := s.Shown(ref)
			expect.ErrorIs(t, err, fs.ErrNotExist, "of day %s", name)
		}
		if l, ok := s.(*Log); ok {
			expect.Equal(t, len(files(t, l.dir)), 2*len(left), "files of lines and of texts")
		}
	})
}

// sizeOf returns the bytes of all texts of a directory.
func sizeOf(t *testing.T, dir string) (sum int64) {
	t.Helper()
	for _, name := range files(t, dir) {
		if strings.HasSuffix(name, shownExt) {
			sum += expect.Value(os.Stat(filepath.Join(dir, name)))(t).Size()
		}
	}
	return sum
}

// TestShownMakesRoom fills a directory by two processes, over days: the oldest texts go, and no line.
func TestShownMakesRoom(t *testing.T) {
	const max, each = 110 << 10, 10 << 10
	dir, c := t.TempDir(), newClock()
	other := start(t, dir, c)
	other.KeepShown(max)
	for d, calls := range []int{3, 3, 1, 4} { // of 10 KiB each: the first two days must go for the last
		for k := range calls {
			l := start(t, dir, c)
			l.KeepShown(max)
			for i, l := range []*Log{l, other} {
				expect.Must(t, l.Append(Call{At: c.at, Tool: fmt.Sprint(d, ".", k, ".", i)}, text(strings.Repeat("x", each))))
			}
			if n := sizeOf(t, dir); n > max {
				t.Errorf("%d bytes of texts, of at most %d", n, max)
			}
		}
		c.at = c.at.Add(24 * time.Hour)
	}
	c.at = c.at.Add(-24 * time.Hour)
	refs := refsOf(t, other)
	expect.Equal(t, len(refs), 2*(3+3+1+4), "lines")
	for name := range refs {
		want := strings.Repeat("x", each)
		if name[0] < '2' {
			want = "-"
		}
		isShown(t, other, refs, name, want)
	}
	// The texts of the day itself make no room.
	for _, name := range []string{"last", "full"} {
		expect.Must(t, other.Append(Call{At: c.at, Tool: name}, text(strings.Repeat("x", maxShown))))
	}
	refs = refsOf(t, other)
	isShown(t, other, refs, "2.0.0", "-")
	isShown(t, other, refs, "3.0.0", strings.Repeat("x", each))
	isShown(t, other, refs, "last", strings.Repeat("x", maxShown))
	isShown(t, other, refs, "full", "-")
	c.at = c.at.Add(24 * time.Hour)
	expect.Must(t, other.Append(Call{At: c.at, Tool: "next"}, text("next")))
	isShown(t, other, refsOf(t, other), "next", "next")
	// Nor does a copy of old calls displace newer ones.
	old := c.at.AddDate(0, 0, -20)
	expect.Must(t, other.append(Call{At: old, Tool: "copied"}, text(strings.Repeat("x", maxShown)), old))
	refs = refsOf(t, other)
	isShown(t, other, refs, "copied", "-")
	isShown(t, other, refs, "next", "next")
}

// TestShownDamaged has files of texts that are cut, overwritten, missing, or no files.
func TestShownDamaged(t *testing.T) {
	for name, damage := range map[string]func(path string, size int64) error{
		"torn":    func(path string, size int64) error { return os.Truncate(path, size-3) },
		"empty":   func(path string, _ int64) error { return os.Truncate(path, 0) },
		"missing": func(path string, _ int64) error { return os.Remove(path) },
		"overwritten": func(path string, size int64) error {
			return os.WriteFile(path, bytes.Repeat([]byte("x"), int(size)), 0o600)
		},
		"a directory": func(path string, _ int64) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link": func(path string, _ int64) error {
			return errors.Join(os.Remove(path), os.Symlink(path+".jsonl", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := start(t, dir, newClock())
			expect.Must(t, l.Append(Call{Tool: "one"}, text("one")))
			path := filepath.Join(dir, l.texts.name)
			isShown(t, l, refsOf(t, l), "one", "one")
			expect.Must(t, damage(path, sizeOf(t, dir)))
			isShown(t, l, refsOf(t, l), "one", "-")
			_ = l.Close()
			again := start(t, dir, newClock())
			expect.Must(t, again.Append(Call{Tool: "two"}, text("two")), "the call is traced")
			want := "two"
			if strings.HasPrefix(name, "a ") {
				want = "-"
			}
			isShown(t, again, refsOf(t, again), "two", want)
		})
	}
	dir := t.TempDir()
	l := start(t, dir, newClock())
	expect.Must(t, l.Append(Call{Tool: "one"}, text("one")))
	_ = l.texts.file.Close() // every write of a text fails from here on
	expect.Must(t, l.Append(Call{Tool: "two"}, text("two")))
	isShown(t, l, refsOf(t, l), "one", "one")
	isShown(t, l, refsOf(t, l), "two", "-")
	line := expect.Value(os.ReadFile(filepath.Join(dir, l.day+"_"+l.name+ext)))(t)
	whole := bytes.SplitAfter(line, []byte("\n"))
	for i, bad := range []string{
		`{"at":-1,"len":5,"crc32":1}`, `{"at":0,"len":9999999999,"crc32":1}`, `{"at":0,"len":0}`, `null`,
	} {
		name := fmt.Sprintf("20260314_1-0123abc%d.jsonl", i)
		text := regexp.MustCompile(`\{"at":\d+,.*?\}`).ReplaceAll(whole[0], []byte(bad))
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		_, _, err := l.Shown(strings.TrimSuffix(name, ext) + ".0")
		expect.ErrorIs(t, err, ErrNotKept, bad)
	}
}

// TestShownRoomOfRows bounds the texts of a process and a day in a database, and those that wait.
func TestShownRoomOfRows(t *testing.T) {
	r, _ := inDatabase(t, databasetest.URL(t))
	r.KeepShown(8 * 1000)
	at := time.Date(2026, 3, 14, 23, 0, 0, 0, time.UTC)
	r.now = func() time.Time { return at }
	for i := range 3 {
		expect.Must(t, r.Append(Call{At: at, Tool: fmt.Sprint(i)}, text(strings.Repeat("x", 400))))
	}
	at = at.Add(2 * time.Hour)
	expect.Must(t, r.Append(Call{At: at, Tool: "next day"}, text("next")))
	refs := refsOf(t, r)
	for name, want := range map[string]string{
		"0": strings.Repeat("x", 400), "1": strings.Repeat("x", 400), "2": "-", "next day": "next",
	} {
		isShown(t, r, refs, name, want)
	}
	r.writing.Lock() // nothing is written meanwhile
	r.KeepShown(1 << 40)
	for i := range maxPending/2 + 1 {
		expect.Must(t, r.Append(Call{At: at, Tool: fmt.Sprint("waits ", i)}, text("t")))
	}
	r.writing.Unlock()
	refs = refsOf(t, r)
	isShown(t, r, refs, fmt.Sprint("waits ", maxPending/2-1), "t")
	isShown(t, r, refs, fmt.Sprint("waits ", maxPending/2), "-")
}

// TestShownIsMigrated has a table of before, with a call in it.
func TestShownIsMigrated(t *testing.T) {
	url := databasetest.URL(t)
	r, _ := inDatabase(t, url)
	expect.Must(t, r.Append(Call{At: time.Now(), Tool: "before"}, nil))
	expect.Must(t, r.Close())
	databasetest.Exec(t, url, "alter table trace drop column shown", "delete from funnel_schema where version = 3")
	db := expect.Value(database.Open(t.Context(), database.Options{URL: url}))(t)
	status := expect.Value(db.Status(t.Context()))(t)
	db.Close()
	expect.Same(t, []int{status.Found, status.Schema}, []int{2, 3}, "versions")
	r, _ = inDatabase(t, url)
	expect.Must(t, r.Append(Call{At: time.Now(), Tool: "after"}, text("after")))
	refs := refsOf(t, r)
	isShown(t, r, refs, "before", "-")
	isShown(t, r, refs, "after", "after")
}

// TestShownIsCopied copies from a directory to a database and back, each twice.
func TestShownIsCopied(t *testing.T) {
	now := time.Now()
	from, via, to := start(t, t.TempDir(), &clock{now}), start(t, t.TempDir(), &clock{now}), start(t, t.TempDir(), &clock{now})
	for i := range 250 {
		at := now.Add(-time.Duration(i) * time.Hour)
		var s *Shown
		if i%5 > 0 {
			s = text(strings.Repeat(fmt.Sprint(i), i%7*100))
		}
		expect.Must(t, from.append(Call{At: at, Tool: fmt.Sprint(i)}, s, at))
	}
	rows, _ := inDatabase(t, databasetest.URL(t))
	for _, pair := range [][2]Store{{from, rows}, {rows, via}, {via, to}} {
		for _, want := range []int{250, 0} {
			copied, there, err := Copy(pair[0], pair[1])
			expect.Must(t, err)
			expect.Same(t, []int{copied, there}, []int{want, 250 - want})
		}
		refs := refsOf(t, pair[1])
		for i := range 250 {
			want := "-"
			if i%5 > 0 {
				want = strings.Repeat(fmt.Sprint(i), i%7*100)
			}
			isShown(t, pair[1], refs, fmt.Sprint(i), want)
		}
	}
}

// TestLinesHoldNoText reads the files themselves: reading the lines reads no text.
func TestLinesHoldNoText(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, newClock())
	expect.Must(t, l.Append(Call{Tool: "one"}, text("the text")))
	names := files(t, dir)
	expect.EqualList(t, names, []string{"20260314.shown", l.day + "_" + l.name + ext})
	lines := expect.Value(os.ReadFile(filepath.Join(dir, names[1])))(t)
	expect.Lacks(t, string(lines), "the text", "args")
	expect.Contains(t, string(lines), `"shown_bytes":8`, `"shown":{"at":0,"len":`)
	info := expect.Value(os.Stat(filepath.Join(dir, names[0])))(t)
	expect.Equal(t, info.Mode().Perm(), 0o600)
}

func TestGroup(t *testing.T) {
	at := time.Date(2026, 3, 14, 23, 30, 0, 0, time.FixedZone("far", -9*3600))
	for session, want := range map[string]string{
		"": " 2026-03-15", "local": "local 2026-03-15", "stateless": "stateless 2026-03-15",
		"GEZDGNBVGY3TQOJQGEZDGNBVGY": "GEZDGNBVGY3TQOJQGEZDGNBVGY 2026-03-15",
		"GEZDGNBVGY3TQOJQGEZD":       "GEZDGNBVGY3TQOJQGEZD 2026-03-15",
		"key a":                      "key a", "s/agent": "s/agent",
		"0b5f2c1e-1f5e-4d0a-9f36-1f2f0e5b7d11": "0b5f2c1e-1f5e-4d0a-9f36-1f2f0e5b7d11",
	} {
		expect.Equal(t, Call{Session: session, At: at}.Group(), want)
	}
}

func BenchmarkAppendShown(b *testing.B) {
	l := expect.Value(Open(b.TempDir()))(b)
	defer func() { _ = l.Close() }()
	l.KeepShown(1 << 40)
	shown := text(strings.Repeat("a line of an answer\n", 100))
	b.ReportAllocs()
	for b.Loop() {
		l.size = 0
		expect.Must(b, l.Append(Call{At: time.Now(), Session: "s", Tool: "search", Status: "success"}, shown))
	}
}

// TestChanged has a reader that learns of each call, of whichever process, and of nothing else.
func TestChanged(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		a, b := open(), open()
		last := expect.Value(a.Changed())(t)
		for i, s := range []Store{a, b, b, a} {
			expect.Equal(t, expect.Value(a.Changed())(t), last, "before call %d", i)
			expect.Must(t, s.Append(Call{At: time.Now(), Tool: "t"}, nil))
			refsOf(t, s) // a database has it now
			now := expect.Value(a.Changed())(t)
			if now == last {
				t.Errorf("call %d changes nothing of %q", i, last)
			}
			last = now
		}
	})
	expect.Equal(t, expect.Value(InDir(t.TempDir()+"/missing").Changed())(t), "")
}
