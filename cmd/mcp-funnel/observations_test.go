package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// stocked is a store with one observation, and run on it.
func stocked(
	t *testing.T,
) (dir string, o observations.Observation, run1 func(args ...string) (int, string, string)) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	root := t.TempDir()
	run1 = func(args ...string) (int, string, string) {
		var out, complaints strings.Builder
		code := run(
			t.Context(), append([]string{"--root", root, "--store", dir, "--min-free", "0"}, args...),
			strings.NewReader(strings.Repeat("a line\n", 500)), &out, &complaints,
		)
		return code, out.String(), complaints.String()
	}
	if code, _, complaints := run1("keep"); code != done {
		t.Fatalf("keep: code %d: %s", code, complaints)
	}
	_, list, _ := run1("observations", "list", "--json")
	if err := json.Unmarshal([]byte(list), &o); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	return dir, o, run1
}

// What a prune leaves although it is too old or too much is told with its cause.
func TestPruneSaysWhatStays(t *testing.T) {
	_, o, run1 := stocked(t)
	for _, dry := range [][]string{{"--dry"}, nil} {
		for _, limit := range []string{"--quota=1KB", "--max-age=1ns"} {
			words := append([]string{"observations", "prune", limit}, dry...)
			if code, out, _ := run1(words...); code != done ||
				!strings.Contains(out, "1 used within the last minute (prune again after it)") {
				t.Errorf("%v: code %d: %s", words, code, out)
			}
		}
	}
	if code, out, _ := run1("observations", "prune"); code != done || strings.Contains(out, "though") {
		t.Errorf("where nothing is too much: code %d: %s", code, out)
	}
	if code, _, _ := run1("observations", "pin", string(o.ID)); code != done {
		t.Fatalf("pin: code %d", code)
	}
	if _, out, _ := run1("observations", "prune", "--quota=1KB"); !strings.Contains(
		out,
		"too much, 1 pinned\n",
	) {
		t.Errorf("pinned: %s", out)
	}
}

// rm removes a pinned observation only with --yes (or after a question at a terminal), and nothing beside it.
func TestRemovingAPinnedOneNeedsYes(t *testing.T) {
	_, o, run1 := stocked(t)
	id := string(o.ID)
	code, kept, complaints := run1("keep", "--json")
	other := between(kept, `"observation_id": "`, `"`)
	if code != done || len(other) != len(id) {
		t.Fatalf("keep: code %d: %s%s", code, kept, complaints)
	}
	if code, _, complaints := run1("observations", "pin", id); code != done || complaints != "" {
		t.Fatalf("pin: code %d: %s", code, complaints)
	}
	if code, out, _ := run1("doctor"); !strings.Contains(out, ": 2 observations, ") {
		t.Errorf("doctor: code %d: %s", code, out)
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
		code, out, complaints := run1(append([]string{"observations"}, k.words...)...)
		if code != k.code || !strings.Contains(out, k.out) || !strings.Contains(complaints, k.said) ||
			(complaints == "") != (k.said == "") {
			t.Errorf(
				"%v: code %d, %q, %q; want %d, %q, %q",
				k.words,
				code,
				out,
				complaints,
				k.code,
				k.out,
				k.said,
			)
		}
	}
}

// between returns the text between the first from and the next to.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// Standard input of which nothing can be read is not kept as an observation of 0 bytes.
func TestKeepNeedsInput(t *testing.T) {
	settings := []string{
		"--store",
		filepath.Join(t.TempDir(), "store"),
		"--min-free",
		"0",
		"--root",
		t.TempDir(),
	}
	for _, k := range []struct {
		in   io.Reader
		said string
	}{
		{strings.NewReader(""), "standard input is empty: nothing is kept; "},
		{iotest.ErrReader(os.ErrPermission), "standard input: nothing is kept: permission denied"},
	} {
		for _, words := range [][]string{{"keep"}, {"keep", "--json"}} {
			var out, complaints strings.Builder
			code := run(t.Context(), append(slices.Clone(settings), words...), k.in, &out, &complaints)
			if said := complaints.String(); code != failed || out.String() != "" ||
				strings.Count(said, "\n") != 1 ||
				!strings.Contains(said, k.said) {
				t.Errorf("%v: code %d: %q, %q", words, code, out.String(), said)
			}
		}
	}
	var out strings.Builder
	words := append(slices.Clone(settings), "observations", "list", "--all")
	if code := run(t.Context(), words, strings.NewReader(""), &out, io.Discard); code != done ||
		!strings.HasPrefix(out.String(), "nothing is kept") {
		t.Errorf("code %d: %s", code, out.String())
	}
}

// The list's times name their zone, and those of JSON are the same instants.
func TestListTimesHaveAZone(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	for _, k := range []struct {
		zone *time.Location
		want string
	}{
		{time.UTC, "+00:00"},
		{time.FixedZone("IST", 5*3600+1800), "+05:30"},
		{time.FixedZone("", -3*3600), "-03:00"},
	} {
		time.Local = k.zone
		_, o, run1 := stocked(t)
		want := o.Created.In(k.zone).Format("2006-01-02 15:04:05 ") + k.want
		if _, out, _ := run1("observations", "list"); !strings.Contains(out, want) {
			t.Errorf("no %q: %s", want, out)
		}
		_, out, _ := run1("observations", "list", "--json")
		if at, err := time.Parse(time.RFC3339, between(out, `"created":"`, `"`)); err != nil ||
			!at.Equal(o.Created) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// rm --all removes all observations of the command line, pinned ones and those whose data are missing too.
func TestRemovingAll(t *testing.T) {
	dir, o, run1 := stocked(t)
	for range 3 {
		if code, _, complaints := run1("keep"); code != done {
			t.Fatalf("keep: code %d: %s", code, complaints)
		}
	}
	if code, _, complaints := run1("observations", "pin", string(o.ID)); code != done {
		t.Fatalf("pin: code %d: %s", code, complaints)
	}
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	list, err := store.List(observations.Local, false)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d, %v", len(list), err)
	}
	if err := os.Remove(filepath.Join(dir, "observations", list[0].File)); err != nil {
		t.Fatal(err)
	}
	code, out, complaints := run1("observations", "rm", "--all", "--yes")
	if code != done || !strings.HasPrefix(out, "removed 4 observations, ") || complaints != "" {
		t.Errorf("code %d: %s%s", code, out, complaints)
	}
	if _, out, _ := run1("observations", "list", "--all"); strings.Count(out, "[expired]") != 4 {
		t.Errorf("left: %s", out)
	}
}

// A damaged observation is named once, with the way out of it.
func TestDamagedNamesTheWayOut(t *testing.T) {
	dir, o, run1 := stocked(t)
	data := filepath.Join(dir, "observations", o.File)
	for what, damage := range []func() error{
		func() error { return os.Truncate(data, 2) }, func() error { return os.Remove(data) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		for _, words := range [][]string{{"cat", string(o.ID)}, {"verify", string(o.ID)}, {"verify"}} {
			code, out, complaints := run1(append([]string{"observations"}, words...)...)
			if code != failed || strings.Count(complaints, "obs:"+string(o.ID)) != 1 ||
				!strings.Contains(complaints, "observations rm "+string(o.ID)) {
				t.Errorf("damage %d: %v: code %d: %s", what, words, code, complaints)
			}
			if words[0] == "verify" && out != "0 of 1 intact\n" {
				t.Errorf("damage %d: %v: %s", what, words, out)
			}
		}
		if code, out, _ := run1("call", "slice", "source=obs:"+string(o.ID), "lines=1-2"); code != failed ||
			strings.Count(out, "obs:"+string(o.ID)) != 1 || !strings.Contains(out, "repeat the call") {
			t.Errorf("damage %d: slice: code %d: %s", what, code, out)
		}
	}
	if _, out, _ := run1("observations", "list", "--all"); !strings.Contains(
		out,
		"[damaged: its data are gone]",
	) {
		t.Errorf("list --all of what has no data: %s", out)
	}
	if _, out, _ := run1("observations", "list", "--all", "--json"); !strings.Contains(out, `"lost":true`) {
		t.Errorf("list --all --json of what has no data: %s", out)
	}
	if code, _, complaints := run1("observations", "rm", string(o.ID)); code != done {
		t.Errorf("rm: code %d: %s", code, complaints)
	}
}

// What another process removes while all are verified is not damaged.
func TestVerifyOfAllWhileSomeGo(t *testing.T) {
	dir, _, run1 := stocked(t)
	if code, _, complaints := run1("keep", "--name", "newer"); code != done {
		t.Fatalf("keep: code %d: %s", code, complaints)
	}
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	list, err := store.List(observations.Local, false)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d, %v", len(list), err)
	}
	going := list[1].ID // what is verified first is damaged: while that is told, this goes
	if err := os.Truncate(filepath.Join(dir, "observations", list[0].File), 2); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	told := writerFunc(func(b []byte) (int, error) {
		if going != "" {
			err, going = store.Remove(observations.Local, going), ""
		}
		return len(b), err
	})
	if code := run(
		t.Context(), []string{"observations", "--store", dir, "verify"}, strings.NewReader(""), &out, told,
	); code != failed || out.String() != "0 of 1 intact\n" {
		t.Errorf("code %d: %s (%v)", code, out.String(), err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Whatever cannot be done in a store that may only be read is told in one line, with what to do.
func TestReadOnlyStoreNamesTheWayOut(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may write whatever the mode is")
	}
	dir, o, run1 := stocked(t)
	modes := func(file, folder os.FileMode) {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				return os.Chmod(path, folder|0o200) // lowered once all below it are
			} else if err == nil {
				return os.Chmod(path, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{"observations", "state", "tmp", "trace", "."} {
			if err := os.Chmod(filepath.Join(dir, d), folder); err != nil {
				t.Fatal(err)
			}
		}
	}
	modes(0o400, 0o500)
	defer modes(0o600, 0o700)
	for _, k := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"observations", "pin", string(o.ID)}, failed, "make it writable, or choose another with --store"},
		{[]string{"observations", "rm", string(o.ID)}, failed, "make it writable, or choose another with --store"},
		{[]string{"observations", "prune"}, failed, "make it writable, or choose another with --store"},
		{[]string{"call", "find"}, done, "make the store writable, or choose another with --store"},
	} {
		if code, _, complaints := run1(k.args...); code != k.code || !strings.Contains(complaints, k.want) ||
			strings.Count(complaints, "\n") != 1 {
			t.Errorf("%v: code %d: %s", k.args, code, complaints)
		}
	}
	if code, out, _ := run1("doctor"); code != failed ||
		!strings.Contains(out, "make it writable, or choose another with --store") {
		t.Errorf("doctor: code %d: %s", code, out)
	}
	if code, _, complaints := run1("serve", "--http", "0"); code != failed ||
		!strings.Contains(complaints, "set --token-file or MCP_FUNNEL_TOKEN") {
		t.Errorf("serve --http: code %d: %s", code, complaints)
	}
}

// However long its name, what is to be known of one stands whole before it.
func TestMarksAreNotClipped(t *testing.T) {
	o := observations.Observation{
		Name: strings.Repeat("name ", 100), Bytes: 10_000, Dropped: 13_378_890, Lost: true, Pinned: true,
	}
	got := label(o)
	for _, mark := range []string{"[in part, of 13388890 bytes] ", "[damaged: its data are gone] ", "[pinned] "} {
		if !strings.Contains(got, mark) {
			t.Errorf("%q lacks %q", got, mark)
		}
	}
	if len(got) > 200 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// What a name holds makes no row of its own and acts on no terminal, wherever it is shown.
func TestNamesStayInTheirLine(t *testing.T) {
	dir, o, run1 := stocked(t)
	const name = "a\tb\nobs:aaaaaaaaaaaa forged \x1b[31mred \u009b7m \u202eback"
	odd := filepath.Join(t.TempDir(), "a\nforged \x1b[31m")
	if err := os.WriteFile(odd, []byte("text"), 0o600); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	if code, _, complaints := run1("keep", "--name", name); code != done {
		t.Fatalf("keep: code %d: %s", code, complaints)
	}
	_, list, _ := run1("observations", "list", "--json")
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
		{2, []string{"__complete", "--", "mcp-funnel --store " + dir + " observations cat "}},
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
		{2, []string{name}},
		{2, []string{"--" + name}},
		{2, []string{"call", "find", "--root", odd}}, // a note, and a warning
		{-1, []string{"doctor", "--store", filepath.Join(dir, name)}},
		{1, []string{"observations", "list", "--store", odd}},
		{2, []string{"observations", "list", "--config", odd + "?"}},
	} {
		_, out, complaints := run1(k.words...)
		for _, row := range strings.Split(out+complaints, "\n") {
			if strings.HasPrefix(row, "obs:aaaa") || strings.HasPrefix(row, "forged") ||
				strings.ContainsAny(row, "\x1b\u009b\u202e") {
				t.Errorf("%.2q: %q", k.words, row)
			}
		}
		if n := strings.Count(out+complaints, "\n"); k.rows >= 0 && n != k.rows {
			t.Errorf("%.2q: %d rows, want %d: %s%s", k.words, n, k.rows, out, complaints)
		}
	}
}

// Who may read the store finds what other identities keep in it, when asked for.
func TestAnyOwner(t *testing.T) {
	dir, mine, run1 := stocked(t)
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	r, err := store.Record(observations.Provenance{Owner: "anna", Tool: "search"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("hers\n")); err != nil {
		t.Fatal(err)
	}
	hers, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt"})
	if err != nil {
		t.Fatal(err)
	}
	const told = "1 observation of other identities: --any-owner "
	id := string(hers.ID)
	for _, k := range []struct {
		words     []string
		code      int
		out, told string
	}{
		{[]string{"list"}, done, string(mine.ID), told + "lists"},
		{[]string{"list", "--json"}, done, string(mine.ID), told + "lists"},
		{[]string{"list", "--any-owner"}, done, "anna", ""},
		{[]string{"verify"}, done, "1 of 1 intact\n", told + "verifies"},
		{[]string{"verify", "--any-owner"}, done, "2 of 2 intact\n", ""},
		{[]string{"cat", id}, failed, "", "with --any-owner"},
		{[]string{"cat", "--any-owner", id, string(mine.ID)}, done, "hers\na line\n", ""},
		{[]string{"show", "--any-owner", id}, done, `"owner": "anna"`, ""},
		{[]string{"pin", "--any-owner", id}, done, "", ""},
		{[]string{"rm", id}, failed, "", "with --any-owner"},
		{[]string{"rm", "--any-owner", id}, usage, "", "is pinned: nothing is removed"},
		{[]string{"rm", "--any-owner", "--yes", id}, done, "", "which was pinned"},
		{[]string{"list"}, done, string(mine.ID), ""},
		{[]string{"list", "--all", "--any-owner"}, done, "[expired]", ""},
	} {
		code, out, complaints := run1(append([]string{"observations"}, k.words...)...)
		if code != k.code || !strings.Contains(out, k.out) || !strings.Contains(complaints, k.told) ||
			(complaints == "") != (k.told == "") {
			t.Errorf(
				"%v: code %d, %q, %q; want %d, %q, %q",
				k.words,
				code,
				out,
				complaints,
				k.code,
				k.out,
				k.told,
			)
		}
	}
}
