package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// stocked is a store with one observation, and run on it.
func stocked(t *testing.T) (dir string, o observations.Observation, run1 func(args ...string) (int, string, string)) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	root := t.TempDir()
	run1 = func(args ...string) (int, string, string) {
		var out, complaints strings.Builder
		code := run(t.Context(), append([]string{"--root", root, "--store", dir, "--min-free", "0"}, args...), strings.NewReader(strings.Repeat("a line\n", 500)), &out, &complaints)
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

func TestRemovingAPinnedOneSaysSo(t *testing.T) {
	_, o, run1 := stocked(t)
	if code, _, complaints := run1("observations", "pin", string(o.ID)); code != done || complaints != "" {
		t.Fatalf("pin: code %d: %s", code, complaints)
	}
	if code, out, _ := run1("doctor"); !strings.Contains(out, ": 1 observation, ") {
		t.Errorf("doctor: code %d: %s", code, out)
	}
	if code, _, complaints := run1("observations", "rm", string(o.ID)); code != done || !strings.Contains(complaints, "which was pinned") {
		t.Errorf("rm: code %d: %s", code, complaints)
	}
	if code, _, complaints := run1("observations", "rm", string(o.ID)); code != done || complaints != "" {
		t.Errorf("rm of what is gone: code %d: %s", code, complaints)
	}
}

// A damaged observation is named once, with the way out of it.
func TestDamagedNamesTheWayOut(t *testing.T) {
	dir, o, run1 := stocked(t)
	data := filepath.Join(dir, "observations", o.File)
	if err := os.Truncate(data, 2); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"cat", "verify"} {
		code, _, complaints := run1("observations", command, string(o.ID))
		if code != failed || strings.Count(complaints, "obs:"+string(o.ID)) != 1 || !strings.Contains(complaints, "observations rm "+string(o.ID)) {
			t.Errorf("%s: code %d: %s", command, code, complaints)
		}
	}
	if code, out, _ := run1("call", "slice", "source=obs:"+string(o.ID), "lines=1-2"); code != failed || strings.Count(out, "obs:"+string(o.ID)) != 1 || !strings.Contains(out, "repeat the call") {
		t.Errorf("slice: code %d: %s", code, out)
	}
	if code, _, complaints := run1("observations", "rm", string(o.ID)); code != done {
		t.Errorf("rm: code %d: %s", code, complaints)
	}
}

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
		if code, _, complaints := run1(k.args...); code != k.code || !strings.Contains(complaints, k.want) || strings.Count(complaints, "\n") != 1 {
			t.Errorf("%v: code %d: %s", k.args, code, complaints)
		}
	}
	if code, out, _ := run1("doctor"); code != failed || !strings.Contains(out, "make it writable, or choose another with --store") {
		t.Errorf("doctor: code %d: %s", code, out)
	}
	if code, _, complaints := run1("serve", "--http", "0"); code != failed || !strings.Contains(complaints, "set --token-file or MCP_FUNNEL_TOKEN") {
		t.Errorf("serve --http: code %d: %s", code, complaints)
	}
}
