package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// stocked is a store with one observation.
func stocked(t *testing.T) (c *commandLine, o observations.Observation) {
	t.Helper()
	c = newCommandLine(t)
	c.in = strings.Repeat("a line\n", 500)
	c.expect(done, "", "", "keep")
	_, list, _ := c.run("observations", "list", "--json")
	expect.Must(t, json.Unmarshal([]byte(list), &o), list)
	return c, o
}

// open opens the store, and returns what it lists.
func (c *commandLine) open() (*observations.Store, []observations.Observation) {
	c.t.Helper()
	store := expect.Value(observations.OpenStore(observations.Options{Dir: c.store, MinFree: -1}))(c.t)
	c.t.Cleanup(func() { _ = store.Close() })
	list := expect.Value(store.List(observations.Local, false))(c.t)
	return store, list
}

// record writes an observation of an owner.
func record(t *testing.T, store *observations.Store, owner, text string) observations.Observation {
	t.Helper()
	r := expect.Value(store.Record(observations.Provenance{Owner: owner, Tool: "search"}))(t)
	expect.Value(r.Write([]byte(text)))(t)
	return expect.Value(r.Commit(observations.Stats{Kind: "text", Ext: "txt"}))(t)
}

// TestPruneSaysWhatStays: what is too old or too much and stays is named with its cause.
func TestPruneSaysWhatStays(t *testing.T) {
	c, o := stocked(t)
	const fresh = "1 used within the last minute (prune again after it)"
	for _, limit := range []string{"--quota=1KB", "--max-age=1ns"} {
		c.expect(done, fresh, "", "observations", "prune", limit, "--dry")
		c.expect(done, fresh, "", "observations", "prune", limit)
	}
	if code, out, _ := c.run("observations", "prune"); code != done || strings.Contains(out, "though") {
		t.Errorf("where nothing is too much: code %d: %s", code, out)
	}
	c.expect(done, "", "", "observations", "pin", string(o.ID))
	c.expect(done, "too much, 1 pinned\n", "", "observations", "prune", "--quota=1KB")
}

// TestRemovingAPinnedOneNeedsYes: rm removes a pinned observation only with --yes (or after a question at a terminal),
// and nothing beside it.
func TestRemovingAPinnedOneNeedsYes(t *testing.T) {
	c, o := stocked(t)
	id := string(o.ID)
	_, kept, _ := c.run("keep", "--json")
	other := between(kept, `"observation_id": "`, `"`)
	c.expect(done, "", "", "observations", "pin", id)
	if _, out, _ := c.run("doctor"); !strings.Contains(out, ": 2 observations, ") {
		t.Errorf("doctor: %s", out)
	}
	for _, k := range []struct {
		words     []string
		code      int
		out, said string
	}{
		{[]string{"rm", id}, usage, "", "obs:" + id + " is pinned: nothing is removed; add --yes to remove it"},
		{[]string{"rm", other, id, id}, usage, "", "obs:" + id + " is pinned: nothing is removed"},
		{[]string{"rm", "--all"}, usage, "", ", 1 pinned: nothing is removed; add --yes to remove all"},
		{[]string{"rm"}, usage, "", "or --all"},
		{[]string{"rm", "--all", id}, usage, "", "either IDs or --all"},
		{[]string{"verify"}, done, "2 of 2 intact\n", ""},
		{[]string{"unpin", id}, done, "", ""},
		{[]string{"pin", id}, done, "", ""},
		{[]string{"rm", "--yes", id}, done, "", "removed obs:" + id + ", which was pinned"},
		{[]string{"rm", id}, done, "", ""}, // it is removed already
		{[]string{"pin", other}, done, "", ""},
		{[]string{"unpin", other}, done, "", ""},
		{[]string{"rm", other}, done, "", ""},
		{[]string{"rm", "--all"}, done, "nothing is kept in ", ""},
	} {
		c.expect(k.code, k.out, k.said, append([]string{"observations"}, k.words...)...)
	}
}

// between returns the text between the first from and the next to.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestKeepNeedsInput: standard input of which nothing can be read is not kept as an observation of 0 bytes.
func TestKeepNeedsInput(t *testing.T) {
	c := newCommandLine(t)
	for want, in := range map[string]io.Reader{
		"standard input is empty: nothing is kept; ":         strings.NewReader(""),
		"standard input: nothing is kept: permission denied": iotest.ErrReader(os.ErrPermission),
	} {
		for _, words := range [][]string{{"keep"}, {"keep", "--json"}} {
			var out, said strings.Builder
			code := run(t.Context(), append([]string{"--store", c.store, "--root", c.root}, words...), in, &out, &said)
			if code != failed || out.Len() > 0 || strings.Count(said.String(), "\n") != 1 ||
				!strings.Contains(said.String(), want) {
				t.Errorf("%v: code %d: %q, %q", words, code, out.String(), said.String())
			}
		}
	}
	c.expect(done, "nothing is kept", "", "observations", "list", "--all")
}

// TestListTimesHaveAZone: the list's times name their zone, and those of JSON are the same instants.
func TestListTimesHaveAZone(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	for offset, zone := range map[string]*time.Location{
		"+00:00": time.UTC, "+05:30": time.FixedZone("IST", 5*3600+1800), "-03:00": time.FixedZone("", -3*3600),
	} {
		time.Local = zone
		c, o := stocked(t)
		c.expect(done, o.Created.In(zone).Format("2006-01-02 15:04:05 ")+offset, "", "observations", "list")
		_, out, _ := c.run("observations", "list", "--json")
		if at, err := time.Parse(time.RFC3339, between(out, `"created":"`, `"`)); err != nil || !at.Equal(o.Created) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestRemovingAll: rm --all removes all observations of the command line, pinned ones and those whose data are missing
// too.
func TestRemovingAll(t *testing.T) {
	c, o := stocked(t)
	for range 3 {
		c.expect(done, "", "", "keep")
	}
	c.expect(done, "", "", "observations", "pin", string(o.ID))
	_, list := c.open()
	expect.Must(t, os.Remove(filepath.Join(c.store, "observations", list[0].File)))
	c.expect(done, "removed 4 observations, ", "", "observations", "rm", "--all", "--yes")
	if _, out, _ := c.run("observations", "list", "--all"); strings.Count(out, "[expired]") != 4 {
		t.Errorf("left: %s", out)
	}
}

// TestDamagedNamesTheWayOut: a damaged observation is named once, with what to do.
func TestDamagedNamesTheWayOut(t *testing.T) {
	c, o := stocked(t)
	data, id := filepath.Join(c.store, "observations", o.File), string(o.ID)
	for what, damage := range []func() error{
		func() error { return os.Truncate(data, 2) }, func() error { return os.Remove(data) },
	} {
		expect.Must(t, damage())
		for _, words := range [][]string{{"cat", id}, {"verify", id}, {"verify"}} {
			code, out, said := c.run(append([]string{"observations"}, words...)...)
			if code != failed || strings.Count(said, "obs:"+id) != 1 || !strings.Contains(said, "observations rm "+id) ||
				words[0] == "verify" && out != "0 of 1 intact\n" {
				t.Errorf("damage %d: %v: code %d: %s%s", what, words, code, out, said)
			}
		}
		if code, out, _ := c.run("call", "slice", "source=obs:"+id, "lines=1-2"); code != failed ||
			strings.Count(out, "obs:"+id) != 1 || !strings.Contains(out, "repeat the call") {
			t.Errorf("damage %d: slice: code %d: %s", what, code, out)
		}
	}
	c.expect(done, "[damaged: its data are gone]", "", "observations", "list", "--all")
	c.expect(done, `"lost":true`, "", "observations", "list", "--all", "--json")
	c.expect(done, "", "", "observations", "rm", id)
}

// TestVerifyOfAllWhileSomeGo: what another process removes while all are verified is not damaged.
func TestVerifyOfAllWhileSomeGo(t *testing.T) {
	c, _ := stocked(t)
	c.expect(done, "", "", "keep", "--name", "newer")
	store, list := c.open()
	going := list[1].ID // what is verified first is damaged: while that is printed, this goes
	expect.Must(t, os.Truncate(filepath.Join(c.store, "observations", list[0].File), 2))
	var out strings.Builder
	var err error
	said := writerFunc(func(b []byte) (int, error) {
		if going != "" {
			err, going = store.Remove(observations.Local, going), ""
		}
		return len(b), err
	})
	words := []string{"observations", "--store", c.store, "verify"}
	if code := run(t.Context(), words, strings.NewReader(""), &out, said); code != failed ||
		out.String() != "0 of 1 intact\n" {
		t.Errorf("code %d: %s (%v)", code, out.String(), err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestReadOnlyStoreNamesTheWayOut: what cannot be done in a store that may only be read is said in one line, with what
// to do.
func TestReadOnlyStoreNamesTheWayOut(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may write whatever the mode is")
	}
	c, o := stocked(t)
	modes := func(file, folder os.FileMode) {
		expect.Must(t, filepath.WalkDir(c.store, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				return os.Chmod(path, folder|0o200) // lowered once all below it are
			} else if err == nil {
				return os.Chmod(path, file)
			}
			return err
		}))
		for _, d := range []string{"observations", "state", "tmp", "trace", "."} {
			expect.Must(t, os.Chmod(filepath.Join(c.store, d), folder))
		}
	}
	modes(0o400, 0o500)
	defer modes(0o600, 0o700)
	const advice = "make it writable, or choose another with --store"
	for _, k := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"observations", "pin", string(o.ID)}, failed, advice},
		{[]string{"observations", "rm", string(o.ID)}, failed, advice},
		{[]string{"observations", "prune"}, failed, advice},
		{[]string{"call", "find"}, done, "make the store writable, or choose another with --store"},
	} {
		if code, _, said := c.run(k.args...); code != k.code || !strings.Contains(said, k.want) ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("%v: code %d: %s", k.args, code, said)
		}
	}
	if code, out, _ := c.run("doctor"); code != failed || !strings.Contains(out, advice) {
		t.Errorf("doctor: code %d: %s", code, out)
	}
	c.expect(failed, "", "set --token-file or MCP_FUNNEL_TOKEN", "serve", "--http", "0")
}

// TestMarksAreNotClipped: what is to be known of an observation stands whole before its name, however long that is.
func TestMarksAreNotClipped(t *testing.T) {
	got := label(observations.Observation{
		Name: strings.Repeat("name ", 100), Bytes: 10_000, Dropped: 13_378_890, Lost: true, Pinned: true,
	})
	for _, mark := range []string{"[in part, of 13388890 bytes] ", "[damaged: its data are gone] ", "[pinned] "} {
		if !strings.Contains(got, mark) || len(got) > 200 {
			t.Errorf("%q lacks %q, or is long", got, mark)
		}
	}
}

// TestNamesStayInTheirLine: a name makes no row of its own and acts on no terminal, wherever it is shown.
func TestNamesStayInTheirLine(t *testing.T) {
	c, o := stocked(t)
	const name = "a\tb\nobs:aaaaaaaaaaaa forged \x1b[31mred \u009b7m \u202eback"
	odd := filepath.Join(t.TempDir(), "a\nforged \x1b[31m")
	if err := os.WriteFile(odd, []byte("text"), 0o600); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	c.expect(done, "", "", "keep", "--name", name)
	_, list, _ := c.run("observations", "list", "--json")
	var named observations.Observation
	if err := json.NewDecoder(strings.NewReader(list)).Decode(&named); err != nil || named.Name != name {
		t.Fatalf("%v: %q, want the name as it is: %q", err, list, name)
	}
	id := string(named.ID)
	for _, k := range []struct {
		rows  int
		words []string
	}{
		{3, []string{"observations", "list"}},
		{3, []string{"observations", "list", "--all", "--any-owner"}},
		{2, []string{"observations", "list", "--json"}},
		{-1, []string{"observations", "show", id}},
		{-1, []string{"call", "find", "path=obs:"}},
		{-1, []string{"call", "find", "path=obs:", "--json"}},
		{2, []string{"__complete", "--", "mcp-funnel --store " + c.store + " observations cat "}},
		{0, []string{"observations", "rm", id}},
		{1, []string{"observations", "cat", id}},
		{1, []string{"observations", "cat", name}},
		{1, []string{"observations", "verify", name, string(o.ID)}},
		{-1, []string{"call", "slice", "source=obs:" + id}},
		{1, []string{"call", name}},
		{-1, []string{"call", "read", "path=" + name}},
		{-1, []string{"call", "read", "path=" + odd}},
		{-1, []string{"tokens", odd}},
		{1, []string{"tokens", odd + "?"}},
		{1, []string{name}},
		{2, []string{"--" + name}},
		{2, []string{"call", "find", "--root", odd}}, // a note, and a warning
		{-1, []string{"doctor", "--store", filepath.Join(c.store, name)}},
		{1, []string{"observations", "list", "--store", odd}},
		{2, []string{"observations", "list", "--config", odd + "?"}},
	} {
		_, out, said := c.run(k.words...)
		for _, row := range strings.Split(out+said, "\n") {
			if strings.HasPrefix(row, "obs:aaaa") || strings.HasPrefix(row, "forged") ||
				strings.ContainsAny(row, "\x1b\u009b\u202e") {
				t.Errorf("%.2q: %q", k.words, row)
			}
		}
		if n := strings.Count(out+said, "\n"); k.rows >= 0 && n != k.rows {
			t.Errorf("%.2q: %d rows, want %d: %s%s", k.words, n, k.rows, out, said)
		}
	}
}

// TestAnyOwner: a user who may read the store finds the observations of other identities with --any-owner.
func TestAnyOwner(t *testing.T) {
	c, mine := stocked(t)
	store, _ := c.open()
	const said = "1 observation of other identities: --any-owner "
	id, own := string(record(t, store, "anna", "hers\n").ID), string(mine.ID)
	for _, k := range []struct {
		words     []string
		code      int
		out, said string
	}{
		{[]string{"list"}, done, own, said + "lists"},
		{[]string{"list", "--json"}, done, own, said + "lists"},
		{[]string{"list", "--any-owner"}, done, "anna", ""},
		{[]string{"verify"}, done, "1 of 1 intact\n", said + "verifies"},
		{[]string{"verify", "--any-owner"}, done, "2 of 2 intact\n", ""},
		{[]string{"cat", id}, failed, "", "with --any-owner"},
		{[]string{"cat", "--any-owner", id, own}, done, "hers\na line\n", ""},
		{[]string{"show", "--any-owner", id}, done, `"owner": "anna"`, ""},
		{[]string{"pin", "--any-owner", id}, done, "", ""},
		{[]string{"rm", id}, failed, "", "with --any-owner"},
		{[]string{"rm", "--any-owner", id}, usage, "", "is pinned: nothing is removed"},
		{[]string{"rm", "--any-owner", "--yes", id}, done, "", "which was pinned"},
		{[]string{"list"}, done, own, ""},
		{[]string{"list", "--all", "--any-owner"}, done, "[expired]", ""},
	} {
		c.expect(k.code, k.out, k.said, append([]string{"observations"}, k.words...)...)
	}
}
