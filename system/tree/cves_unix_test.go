//go:build unix

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// Known vulnerabilities of os.Root, each tried on os.Root itself as built by this toolchain, and through this package.
// CVE-2026-32282 (Chmod follows a swapped link) and CVE-2025-0913 (creating through a dangling link, on Windows) do not
// apply: this package neither changes modes nor creates files.
func TestS3KnownHolesOfOSRoot(t *testing.T) {
	parent, dir := house(t)
	top := expect.Value(os.OpenRoot(dir))(t)
	defer func() { _ = top.Close() }()
	r, careful := open(t, dir), open(t, dir, filepath.Join(dir, "no/such/store"))
	const slash, up, entry = "CVE-2026-39822", "CVE-2025-22873", "CVE-2026-27139"
	expect.Must(t, os.Mkdir(filepath.Join(parent, "neighbour"), 0o755))
	plant(t, parent, "neighbour/in.txt")
	plant(
		t, dir, "to-neighbour -> ../neighbour", "to-neighbour-abs -> "+parent+"/neighbour", "chain -> to-neighbour",
		"swapped/in.txt",
	)

	cases, failures := 0, 0
	holds := func(cve, what string, err error) {
		t.Helper()
		if cases++; err == nil {
			failures++
			t.Errorf("%s: %s: not refused", cve, what)
		}
	}
	// ways tries every path of the attack on one of the three implementations.
	ways := func(tryOpen func(string) error, tryStat func(string) error, told func(cve, what string, err error)) {
		for _, name := range []string{"to-neighbour/", "to-neighbour-abs/", "chain/", "out-dir/", "out/", "to-neighbour/.", "to-neighbour//", "to-neighbour/./"} {
			told(slash, "open "+name, tryOpen(name))
			told(slash, "stat "+name, tryStat(name))
		}
		for _, name := range []string{"../", "..", "sub/../../", "./../", ".././", "sub/sub/../../../"} {
			told(up, "open "+name, tryOpen(name))
			told(up, "stat "+name, tryStat(name))
		}
	}
	ways(func(name string) error {
		f, err := top.Open(name)
		if err == nil {
			_ = f.Close()
		}
		return err
	}, func(name string) error { _, err := top.Stat(name); return err }, holds)
	for _, r := range []*Root{r, careful} {
		ways(func(name string) error {
			f, _, err := r.OpenFile(name)
			if err == nil {
				_ = f.Close()
				return nil
			}
			if _, err := r.Walk(t.Context(), Options{Start: name}, func(Entry) error { return nil }); err == nil {
				return nil // listed
			}
			return err
		}, func(name string) error { _, err := r.Stat(name); return err }, holds)
	}

	// A directory is read while it is swapped for a link out: the descriptions must be those of the directory that was
	// opened.
	big := strings.Repeat("x", 4321)
	expect.Must(t, os.WriteFile(filepath.Join(parent, "neighbour/in.txt"), []byte(big), 0o600))
	for _, r := range []*Root{r, careful} {
		swapped := false
		_, err := r.Walk(t.Context(), Options{Stat: true}, func(e Entry) error {
			if e.Path == "swapped" && !swapped { // it is open by now, and its names are to be read
				swapped = true
				exchangeNames(t, filepath.Join(dir, "swapped"), filepath.Join(dir, "to-neighbour"))
			}
			if strings.HasPrefix(e.Path, "swapped/") {
				if cases++; e.Size == int64(len(big)) {
					failures++
					t.Errorf("%s: %s is described as the file outside", entry, e.Path)
				}
			}
			return nil
		})
		if err != nil || !swapped {
			t.Errorf("the walk: swapped=%t, %v", swapped, err)
		}
		exchangeNames(t, filepath.Join(dir, "swapped"), filepath.Join(dir, "to-neighbour"))
	}

	// Control: the same paths with a check by name and a plain open.
	control := 0
	weak := func(name string) (string, error) {
		if clean := filepath.Clean(filepath.Join(dir, name)); clean != dir && !strings.HasPrefix(clean, dir) {
			return "", ErrOutside
		}
		return dir + "/" + name, nil
	}
	ways(func(name string) error {
		path, err := weak(name)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err == nil {
			_ = f.Close()
		}
		return err
	}, func(name string) error {
		path, err := weak(name)
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	}, func(_, _ string, err error) {
		if err == nil {
			control++
		}
	})
	if at, err := top.Stat("to-neighbour/in.txt"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("os.Root: %v %v", at, err)
	}
	promise.Keptf(t, promise.Proof{Promise: "S3", Cases: cases, Failures: failures, Control: control},
		"%s, %s, %s tried", slash, up, entry)
}

// exchangeNames swaps two names through a third.
func exchangeNames(t testing.TB, a, b string) {
	t.Helper()
	for _, step := range [][2]string{{a, a + ".tmp"}, {b, a}, {a + ".tmp", b}} {
		expect.Must(t, os.Rename(step[0], step[1]))
	}
}
