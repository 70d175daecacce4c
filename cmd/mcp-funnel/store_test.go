package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// remoteWords are the settings of a bucket and a database of their own.
func remoteWords(t *testing.T) []string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
	p := remotetest.New(t)
	return []string{"--database", p.Database, "--s3-endpoint", p.S3, "--s3-region", "us-east-1", "--cache", t.TempDir()}
}

// filled makes a store of two owners with all that there can be in one.
func filled(t *testing.T, dir string) {
	t.Helper()
	long := time.Now().Add(-20 * 24 * time.Hour).Round(0)
	now := long
	clock := func() time.Time { return now }
	s := expect.Value(observations.OpenStore(observations.Options{Dir: dir, MinFree: -1, Now: clock}))(t)
	defer func() { expect.Must(t, s.Close()) }()
	for i, size := range []int{0, 10, 64 << 10, 64<<10 + 1, 1 << 20, 20 << 20} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		now = long.Add(time.Duration(i) * 24 * time.Hour)
		owner := []string{observations.Local, "ann"}[i%2]
		r := expect.Value(s.Record(observations.Provenance{
			Owner: owner, Tool: "search", Name: fmt.Sprint("number ", i), Args: json.RawMessage(`{"pattern":"x"}`),
			Origin: []string{"a.txt"},
		}))(t)
		_, _ = r.Write(data)
		o := expect.Value(r.Commit(observations.Stats{
			Kind: "text", Ext: "txt", Receipt: strings.Repeat("a <receipt>\n", 900*(i%2)), State: json.RawMessage(`{"a":1}`),
		}))(t)
		switch i {
		case 1:
			expect.Must(t, s.Pin(owner, o.ID, true))
		case 4:
			expect.Must(t, s.Remove(owner, o.ID))
		}
	}
	log := expect.Value(trace.Open(trace.Dir(dir)))(t)
	for i := range 250 {
		at := time.Now().Add(-time.Duration(i) * time.Hour)
		expect.Must(t, log.Append(trace.Call{At: at, Owner: "ann", Tool: "find", Millis: float64(i % 2)},
			&trace.Shown{Text: fmt.Sprint("text ", i)}))
	}
	expect.Must(t, log.Close())
	for name, body := range map[string]string{
		"answers/k3v9q2m7x4ab.json": `{"id":"k3v9q2m7x4ab","owner":"ann"}`, "maps/m.json": "{}",
		"upstreams/a-b.json":                        `{"owner":"x"}`,
		"investigations/aaaaaaaaaaaa/meta.json":     `{"id":"aaaaaaaaaaaa","identity":"ann"}`,
		"investigations/aaaaaaaaaaaa/orders/b.json": `{"id":"b"}`, "investigations/targets/ff.json": `{"id":"aaaaaaaaaaaa"}`,
		"investigations/aaaaaaaaaaaa/lock": "", "state/link-key": strings.Repeat("k", 40),
	} {
		write(t, filepath.Join(dir, name), body)
	}
}

// place is where a text is among others, in a line of the trace.
var place = regexp.MustCompile(`,"shown":\{[^}]*\}`)

// contents are the files of a store that a copy has too: with the times of last use, and the trace as lines.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := expect.Value(filepath.Rel(dir, path))(t)
		b := expect.Value(os.ReadFile(path))(t)
		switch top, _, _ := strings.Cut(name, "/"); {
		case top == "trace":
			for line := range strings.Lines(string(b)) {
				all[place.ReplaceAllString(line, "")] += "I"
			}
		case bytes.Contains(b, []byte(`"expired":`)), top == "state", top == "tmp":
		case filepath.Base(name) == "lock", filepath.Base(name) == "pruned":
		case filepath.Ext(name) == ".json" && top == "observations":
			all[name] = string(b) + expect.Value(d.Info())(t).ModTime().UTC().Truncate(time.Microsecond).String()
		default:
			all[name] = string(b)
		}
		return nil
	}))
	return all
}

// TestStoreCopy copies a directory to a bucket and from there to another directory, each twice: all is the same.
func TestStoreCopy(t *testing.T) {
	words, a, b := remoteWords(t), filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	filled(t, a)
	store := func(want int, words ...string) (out, said string) {
		t.Helper()
		code, out, said := runs(t, words...)
		expect.Equal(t, code, want, "exit code of %q: %s%s", words, out, said)
		return out, said
	}
	bucket := remotetest.Bucket
	for _, from := range [][]string{{a, bucket}, {bucket, b}, {a, b}} {
		for _, again := range []bool{from[0] == a && from[1] == b, true} {
			out, said := store(done, slices.Concat(words, []string{"store", "copy"}, from)...)
			expect.Equal(t, said, "", "what it says")
			want := "observations: %d copied, 0 were there|trace: %d calls copied, 0 were there|records: %d copied, 0 were there"
			if again {
				want = "observations: 0 copied, %d were there|trace: 0 calls copied, %d were there|records: 0 copied, %d were there"
			}
			expect.Contains(t, out, strings.Split(fmt.Sprintf(want, 5, 250, 6), "|")...)
		}
	}
	expect.Same(t, contents(t, b), contents(t, a), "the other directory")
	at := append(words, "--max-age", "0", "--store", bucket) //nolint:gocritic // the words are not used again without
	out, _ := store(done, append(at, "observations", "--any-owner", "verify")...)
	expect.Has(t, out, "5 of 5 intact")
	out, _ = store(done, append(at, "store")...)
	expect.Contains(t, out, bucket+": 5 observations", "tables of version ", "observations: ", "replicas  none",
		"cache     ")
	out, _ = store(done, append(at, "store", "status", "--json")...)
	var r struct {
		Observations int
		Database     struct{ Schema, Known int }
	}
	expect.Must(t, json.Unmarshal([]byte(out), &r))
	expect.Equal(t, r.Observations, 5)
	expect.Equal(t, r.Database.Schema, r.Database.Known, "version of the tables")
	out, _ = store(done, append(at, "store", "migrate")...)
	expect.Has(t, out, fmt.Sprintf("version %d before, %d now", r.Database.Known, r.Database.Known))
	out, _ = store(done, "--max-age", "0", "--store", b, "store", "status")
	expect.Has(t, out, b+": 5 observations")

	s := expect.Value(observations.OpenStore(observations.Options{Dir: b, MinFree: -1, MaxAge: -1}))(t)
	defer func() { _ = s.Close() }()
	list := expect.Value(s.List("ann", false))(t)
	expect.Equal(t, len(list), 3, "observations of the other owner")
	answers := expect.Value(records.InDir(b).List(records.Key{Kind: records.Answer}, "*", true))(t)
	expect.Equal(t, len(answers), 1, "answers")
}

// TestStoreCopyRefuses has copies that cannot begin, or leave something out.
func TestStoreCopyRefuses(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	filled(t, a)
	for _, k := range []struct {
		code  int
		words []string
		says  string
	}{
		{usage, []string{"store", "copy", a, "s3://x/y"}, "--database"},
		{usage, []string{"--database", "postgres://x/y", "store", "copy", "s3://x/y", "s3://x/z"}, "--to-database"},
		{failed, []string{"store", "copy", filepath.Join(root, "none"), b}, "no such file"},
		{usage, []string{"store", "migrate"}, "no tables"},
		{usage, []string{"--database", "postgres://x/y", "store", "status"}, "--store s3://"},
		{failed, []string{"--quota", "1MiB", "store", "copy", a, b}, "nothing was copied: raise --quota"},
	} {
		code, out, said := runs(t, k.words...)
		if code != k.code || !strings.Contains(said, k.says) {
			t.Errorf("%q: code %d, %s%s", k.words, code, out, said)
		}
	}

	data := expect.Value(filepath.Glob(filepath.Join(a, "observations", "search_*")))(t)
	ids := map[string]string{}
	for i, name := range data {
		id := name[strings.LastIndex(name, "_")+1 : len(name)-len(".txt")]
		side := filepath.Join(a, "observations", id+".json")
		text := expect.Value(os.ReadFile(side))(t)
		switch {
		case len(expect.Value(os.ReadFile(name))(t)) == 0:
			ids[id] = "its sidecar was written by another version"
			text = bytes.Replace(text, []byte(`"v":1`), []byte(`"v":2`), 1)
		case bytes.Contains(text, []byte(`"number 1"`)):
			ids[id] = "its data file .* is missing"
			expect.Must(t, os.Remove(name))
		case bytes.Contains(text, []byte(`"number 2"`)):
			ids[id] = "its sidecar cannot be read"
			text = text[:len(text)/2]
		case bytes.Contains(text, []byte(`"number 3"`)):
			ids[id] = "its sha256 was "
			all := expect.Value(os.ReadFile(name))(t)
			all[i] ^= 1
			expect.Must(t, os.WriteFile(name, all, 0o600))
		}
		expect.Must(t, os.WriteFile(side, text, 0o600))
	}
	write(t, filepath.Join(b, "answers/k3v9q2m7x4ab.json"), "{}")
	code, out, said := runs(t, "store", "copy", a, b)
	expect.Equal(t, code, failed, "exit code")
	expect.Contains(t, out, "observations: 1 copied, 0 were there, 1 have expired", "records: 5 copied")
	expect.Contains(t, said, "k3v9q2m7x4ab.json is another one")
	for id, why := range ids {
		if !regexp.MustCompile("skipped: .*obs:" + id + ".*" + why).MatchString(said) {
			t.Errorf("%s: %s is missing in\n%s", id, why, said)
		}
	}
	expect.Equal(t, strings.Count(said, "skipped: "), 5, "what was skipped: %s", said)
	expect.Equal(t, len(expect.Value(os.ReadDir(filepath.Join(b, "observations")))(t)), 3, "files")

	other := filepath.Join(root, "other")
	filled(t, other)
	for _, name := range slices.Collect(maps.Keys(contents(t, b))) {
		id, sidecar := strings.CutSuffix(filepath.Base(name), ".json")
		if sidecar && strings.HasPrefix(name, "observations/") {
			text := expect.Value(os.ReadFile(filepath.Join(b, name)))(t)
			sum := regexp.MustCompile(`"sha256":"..`).ReplaceAll(text, []byte(`"sha256":"zz`))
			expect.Must(t, os.WriteFile(filepath.Join(b, name), sum, 0o600))
			code, _, said = runs(t, "store", "copy", a, b)
			expect.Equal(t, code, failed, "exit code")
			expect.Contains(t, said, "another observation obs:"+id, "nothing was copied")
		}
	}
}

// TestStoreCopyKilled kills copies in the middle, until one is left to end: nothing is lost, half, or twice.
func TestStoreCopyKilled(t *testing.T) {
	words, a, b := remoteWords(t), filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	filled(t, a)
	for _, ends := range [][]string{{a, remotetest.Bucket}, {remotetest.Bucket, b}} {
		all := slices.Concat([]string{"--min-free", "0"}, words, []string{"store", "copy"}, ends)
		for wait := 200 * time.Millisecond; ; wait *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), wait) // which kills it
			cmd := exec.CommandContext(ctx, os.Args[0])           //nolint:gosec // this test
			cmd.Env = append(os.Environ(), runAsProgram+"="+strings.Join(all, "\n"))
			out, err := cmd.CombinedOutput()
			killed := ctx.Err() != nil
			cancel()
			if err == nil {
				break
			}
			if strings.Contains(string(out), "dead process") && wait < 30*time.Minute { // it was killed while it wrote this one
				databasetest.Exec(t, words[slices.Index(words, "--database")+1],
					"update reservations set at = at - interval '1 hour'",
					"update replicas set seen = seen - interval '1 minute'")
				code, _, said := runs(t, append(slices.Clone(words), "--store", remotetest.Bucket, "--max-age", "0",
					"--quota", "0", "observations", "prune")...)
				expect.Equal(t, code, done, said)
			} else if !killed {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	expect.Same(t, contents(t, b), contents(t, a), "the other directory")
}
