package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 3, 14, 23, 59, 0, 0, time.UTC)} }

func start(t testing.TB, dir string, c *clock) *Log {
	t.Helper()
	l := expect.Value(open(dir, c.now))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func write(t testing.TB, l *Log, c Call) {
	t.Helper()
	expect.Must(t, l.Append(c, nil))
}

func read(t testing.TB, dir string, since time.Time) (calls []Call) {
	t.Helper()
	for c, err := range InDir(dir).Read(since, nil) {
		expect.Must(t, err)
		if !refName().MatchString(c.Ref) {
			t.Errorf("a call is named %q", c.Ref)
		}
		c.Ref = ""
		calls = append(calls, c)
	}
	return calls
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	list := expect.Value(os.ReadDir(dir))(t)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestRoundTrip(t *testing.T) {
	dir := Dir(t.TempDir())
	c := newClock()
	l := start(t, dir, c)
	want := Call{V: 1, At: c.at, Session: "s", Owner: "local", Tool: "search", CallHash: "h", Status: "success", Verdict: "ok",
		SeenBytes: 98311, SeenTokens: 24611, SeenMargin: 0.01, ShownTokens: 588, Observation: "k3v9q2m7x4ab", Kept: true, Millis: 12.5, Error: "e"}
	write(t, l, want)
	later := want
	later.At, later.Tool = c.at.Add(2*time.Minute).In(time.FixedZone("far", 9*3600)), "jq"
	c.at = c.at.Add(2 * time.Minute) // past midnight: the next file
	write(t, l, later)
	later.At = later.At.UTC()
	expect.Same(t, read(t, dir, time.Time{}), []Call{want, later})
	expect.Same(t, read(t, dir, want.At.Add(time.Second)), []Call{later}, "since")
	if n := files(t, dir); len(n) != 2 || !strings.HasPrefix(n[0], "20260314_") || !strings.HasPrefix(n[1], "20260315_") {
		t.Errorf("files %v", n)
	}
	for _, n := range files(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, n)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", n, info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	c.at = c.at.Add(-3 * time.Minute) // the clock is set back: on in the file of that day
	write(t, l, want)
	if n := len(read(t, dir, time.Time{})); n != 3 || len(files(t, dir)) != 2 {
		t.Errorf("after a step back: %d calls in %v", n, files(t, dir))
	}
}

func TestNothingIsKeptWithoutADirectory(t *testing.T) {
	l := expect.Value(Open(""))(t)
	for _, l := range []*Log{l, nil} {
		expect.OK(t, l.Append(Call{}, nil))
		expect.OK(t, l.Close())
	}
	if calls := read(t, filepath.Join(t.TempDir(), "none"), time.Time{}); len(calls) != 0 {
		t.Errorf("read %v", calls)
	}
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	for range 45 {
		l := start(t, dir, c)
		write(t, l, Call{At: c.at})
		_ = l.Close()
		c.at = c.at.Add(24 * time.Hour)
	}
	foreign := []string{"notes.jsonl", "20200101.jsonl", "20200101_12-0123abcd.json", "20200101_x-0123abcd.jsonl"}
	for _, n := range foreign {
		expect.Must(t, os.WriteFile(filepath.Join(dir, n), []byte("x\n"), 0o600))
	}
	write(t, start(t, dir, c), Call{At: c.at})
	calls := read(t, dir, time.Time{})
	if len(calls) < 31 || len(calls) > 32 {
		t.Errorf("%d days are kept", len(calls))
	}
	for _, n := range foreign {
		expect.OK(t, expect.Err(os.Stat(filepath.Join(dir, n))), "not ours, and removed")
	}
}

// Only the first process of a day looks for old files.
func TestRetentionIsLookedAfterOnceADay(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	old := filepath.Join(dir, "20200101_12-0123abcd.jsonl")
	for _, x := range []struct {
		changed time.Time
		stays   bool
	}{{c.at, true}, {c.at.Add(-24 * time.Hour), false}} {
		expect.Must(t, os.WriteFile(old, []byte("x\n"), 0o600))
		expect.Must(t, os.Chtimes(dir, x.changed, x.changed))
		l := start(t, dir, c)
		write(t, l, Call{At: c.at})
		if _, err := os.Stat(old); (err == nil) != x.stays {
			t.Errorf("changed on %v: %v", x.changed, err)
		}
	}
}

// Read skips lines that are torn, foreign or of another version, and reads the lines around them.
func TestReadTolerates(t *testing.T) {
	dir := t.TempDir()
	good := expect.Value(json.Marshal(Call{V: 1, Tool: "good", At: newClock().at}))(t)
	text := string(good) + "\n" +
		"\n" + "not json\n" + `{"v":1,"tool":"torn` + "\n" + `{"v":2,"tool":"later"}` + "\n" + `[1]` + "\n" +
		`{"v":1,"tool":"` + strings.Repeat("x", 3*maxLine) + `"}` + "\n" +
		"\x00\xff\n" + string(good) + "\n" + string(good[:len(good)-5])
	name := "20260314_1-0123abcd.jsonl"
	expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	expect.Must(t, os.WriteFile(filepath.Join(dir, "20260314_1-0123abce.jsonl"), []byte(strings.Repeat("x", 3*maxLine)), 0o600))
	expect.Must(t, os.Mkdir(filepath.Join(dir, "20260314_1-0123abcf.jsonl"), 0o700))
	outside := filepath.Join(t.TempDir(), "outside")
	expect.Must(t, os.WriteFile(outside, append(good, '\n'), 0o600))
	if err := os.Symlink(outside, filepath.Join(dir, "20260314_1-0123abc0.jsonl")); err != nil {
		t.Log("links cannot be made here")
	}
	calls := read(t, dir, time.Time{})
	if len(calls) != 2 || calls[0].Tool != "good" || calls[1].Tool != "good" {
		t.Errorf("read %+v", calls)
	}
	for _, err := range InDir(dir).Read(time.Time{}, nil) {
		expect.Must(t, err)
		break // stopping early is no trouble
	}
}

// After a torn write, the next line is complete.
func TestTornWrite(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	l := start(t, dir, c)
	write(t, l, Call{Tool: "first"})
	_, _ = l.file.WriteString(`{"v":1,"tool":"to`) // as a full disk leaves it
	l.torn = true
	write(t, l, Call{Tool: "last"})
	calls := read(t, dir, time.Time{})
	if len(calls) != 2 || calls[1].Tool != "last" {
		t.Errorf("read %+v", calls)
	}
	_ = l.file.Close() // every write fails from here on
	expect.ErrorIs(t, l.Append(Call{}, nil), os.ErrClosed, "Append to a broken file")
	_ = l.Close()
	expect.Fails(t, l.Append(Call{}, nil), "", "Append after Close")
}

func TestLinesAreBounded(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	l := start(t, dir, c)
	long := strings.Repeat("\x01世", 100_000)
	write(t, l, Call{Session: long, Owner: long, Tool: long, CallHash: long, Status: long, Verdict: long, Observation: long, Error: long,
		Millis: math.NaN(), SeenMargin: math.Inf(1)})
	b, err := os.ReadFile(filepath.Join(dir, files(t, dir)[0]))
	if err != nil || len(b) > 8<<10 || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("a line of %d bytes, %v", len(b), err)
	}
	calls := read(t, dir, time.Time{})
	if len(calls) != 1 || len(calls[0].Error) > maxText || !strings.HasSuffix(calls[0].Error, "…") {
		t.Errorf("read %+v", calls)
	}
	l.size = maxFile
	expect.Fails(t, l.Append(Call{}, nil), "64 MiB", "a full file")
}

// TestOpenedFitALine has files whose names take several times their bytes as JSON: the call is read again, and says how
// many of them are left out.
func TestOpenedFitALine(t *testing.T) {
	for name, path := range map[string]string{
		"plain":      strings.Repeat("x", 170),
		"HTML":       strings.Repeat("R&D/", 42),
		"long":       strings.Repeat("<", 3000),
		"very long":  strings.Repeat("<", 30_000),
		"no UTF-8":   strings.Repeat("\xff", 170),
		"whole room": strings.Repeat("<", 40<<10),
	} {
		dir := t.TempDir()
		l := start(t, dir, newClock())
		opened := slices.Repeat([]Opened{{File: "/" + path, Shown: 1 << 40, Hash: strings.Repeat("f", 64)}}, 300)
		write(t, l, Call{Tool: "search", Opened: opened, Error: strings.Repeat("<", 1000)})
		skipped := 0
		var calls []Call
		for c, err := range InDir(dir).Read(time.Time{}, &skipped) {
			expect.Must(t, err)
			calls = append(calls, c)
		}
		if len(calls) != 1 || skipped != 0 || len(calls[0].Opened)+calls[0].OpenedMore != 300 {
			t.Errorf("%s: %d calls, %d skipped", name, len(calls), skipped)
		}
	}
}

// With many goroutines and several logs in one directory, every line is complete.
func TestConcurrentAppends(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	var group sync.WaitGroup
	const logs, each, calls = 3, 4, 100
	for i := range logs {
		l := start(t, dir, c)
		for j := range each {
			group.Go(func() {
				for k := range calls {
					expect.OK(t, l.Append(Call{At: c.at, Tool: fmt.Sprintf("%d.%d.%d", i, j, k)}, nil))
				}
			})
		}
	}
	group.Wait()
	seen := map[string]bool{}
	for _, call := range read(t, dir, time.Time{}) {
		seen[call.Tool] = true
	}
	if len(seen) != logs*each*calls {
		t.Errorf("%d of %d calls are read", len(seen), logs*each*calls)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	expect.Must(t, os.WriteFile(file, nil, 0o600))
	expect.Fails(t, expect.Err(Open(file)), "", "a file was taken for a directory")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Skip("links cannot be made here")
	}
	expect.Fails(t, expect.Err(Open(link)), "", "a planted link was followed")
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"v\":1}\n"))
	f.Add([]byte("{\"v\":1,\"at\":\"2026\"}\n{"))
	f.Add([]byte("\n\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		expect.Must(t, os.WriteFile(filepath.Join(dir, "20260314_1-0123abcd.jsonl"), b, 0o600))
		n := 0
		for _, err := range InDir(dir).Read(time.Time{}, nil) {
			expect.Must(t, err)
			n++
		}
		if n > bytes.Count(b, []byte("\n")) {
			t.Fatalf("%d calls from %d lines", n, bytes.Count(b, []byte("\n")))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	l := expect.Value(Open(b.TempDir()))(b)
	defer func() { _ = l.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		l.size = 0
		expect.Must(b, l.Append(
			Call{
				At: time.Now(), Session: "s", Tool: "search", CallHash: strings.Repeat("0", 64), Status: "success",
				SeenTokens: 24611,
			}, nil,
		))
	}
}
