//go:build linux

package mmap

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// file creates a file of size bytes, each determined by its offset.
func file(t testing.TB, size int) (*os.File, []byte) {
	t.Helper()
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i ^ i>>8 ^ i>>16)
	}
	path := filepath.Join(t.TempDir(), "text")
	expect.Must(t, os.WriteFile(path, text, 0o600))
	f := expect.Value(os.Open(path))(t)
	t.Cleanup(func() { _ = f.Close() })
	return f, text
}

// of skips the test if temporary files are on a file system that is not mapped.
func of(t testing.TB, f *os.File) *File {
	t.Helper()
	m := Of(f)
	if m == nil {
		t.Skip("the directory for temporary files is on a file system that is read, not looked at")
	}
	return m
}

func TestLookShowsTheBytes(t *testing.T) {
	f, text := file(t, 3<<20+17)
	m := of(t, f)
	for _, c := range []struct{ from, n int }{
		{0, 1}, {0, len(text)}, {1, 4096}, {4095, 2}, {4096, 4096}, {1<<20 - 1, 1<<20 +
			2}, {len(text) - 1, 1}, {len(text) - 5000, 5000},
	} {
		ran := false
		ok := m.View(int64(c.from), c.n, func(b []byte) {
			ran = true
			expect.Equal(t, string(b), string(text[c.from:c.from+c.n]), "%d bytes at %d are not those of the file", c.n, c.from)
		})
		if !ok || !ran {
			t.Errorf("%d bytes at %d: not shown", c.n, c.from)
		}
	}
}

func TestLookRefuses(t *testing.T) {
	f, text := file(t, 100_000)
	m := of(t, f)
	for _, c := range []struct {
		from int64
		n    int
	}{
		{0, 0}, {0, MaxView + 1}, {0, -1}, {-4096, 10}, {0, len(text) + 8192}, {int64(len(text)) + 4096, 10},
	} {
		if m.View(c.from, c.n, func(b []byte) { t.Errorf("%d bytes at %d: shown %d", c.n, c.from, len(b)) }) {
			t.Errorf("%d bytes at %d: true", c.n, c.from)
		}
	}
	if Of(bytes.NewReader(text)) != nil {
		t.Error("a text in memory is no file")
	}
	if Of(io.NewSectionReader(f, 0, 10)) != nil {
		t.Error("a section is no file")
	}
	gone := expect.Value(os.Open(f.Name()))(t)
	closed := of(t, gone)
	expect.Must(t, gone.Close())
	if closed.View(0, 10, func([]byte) { t.Error("shown after it was closed") }) {
		t.Error("true after it was closed")
	}
	if Of(gone) != nil {
		t.Error("a closed file")
	}
}

func TestLooksAtOnceAreBounded(t *testing.T) {
	f, _ := file(t, 100_000)
	m := of(t, f)
	var nest func(deep int)
	deepest := 0
	nest = func(deep int) { m.View(0, 10, func([]byte) { deepest = deep; nest(deep + 1) }) }
	nest(1)
	expect.Equal(t, deepest, maxViews, "looks at once")
	if !m.View(0, 10, func([]byte) {}) {
		t.Error("none is free again")
	}
}

func TestPanicsOfOthersGoOn(t *testing.T) {
	f, _ := file(t, 100_000)
	m := of(t, f)
	boom := errors.New("boom")
	for name, look := range map[string]func([]byte){
		"a value":      func([]byte) { panic(boom) },
		"an index":     func(b []byte) { _ = b[len(b):][0] },
		"a nil":        func([]byte) { var p *File; _ = p.open },
		"another file": func([]byte) { defer func() { panic(boom) }(); sink += shrunk(t)[50_000] },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is gone", name)
				}
			}()
			m.View(0, 10, look)
		}()
	}
	if !m.View(0, 10, func([]byte) {}) {
		t.Error("none is free after panics")
	}
}

var sink byte

// shrunk returns a view beyond the end of a truncated file.
func shrunk(t testing.TB) []byte {
	t.Helper()
	f, _ := file(t, 100_000)
	all, b := of(t, f).mapRange(0, 100_000)
	t.Cleanup(func() { unmap(all) })
	expect.Must(t, os.Truncate(f.Name(), 4096))
	return b
}

// If the file is truncated during a View, the View fails and the process continues, in Go code and in assembly.
func TestFileBecomesShorterUnderTheEye(t *testing.T) {
	for name, touch := range map[string]func([]byte){
		"a byte":   func(b []byte) { sink += b[50_000] },
		"assembly": func(b []byte) { bytes.IndexByte(b, 0xa5^0xff); sink += byte(bytes.Count(b, []byte{7})) },
		"a copy":   func(b []byte) { _ = bytes.Clone(b) },
	} {
		f, text := file(t, 100_000)
		after := false
		ok := of(t, f).View(0, len(text), func(b []byte) {
			expect.Must(t, os.Truncate(f.Name(), 4096))
			touch(b)
			after = true
		})
		if ok || after {
			t.Errorf("%s: true=%v, went on=%v", name, ok, after)
		}
	}
}

const unguarded = "MAPPED_TEST_UNGUARDED"

// Control: without the guard the same access ends the process.
func TestUnguardedLookEndsTheProcess(t *testing.T) {
	if os.Getenv(unguarded) != "" {
		sink += shrunk(t)[50_000]
		return
	}
	f, _ := file(t, 1)
	of(t, f)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnguardedLookEndsTheProcess$")
	cmd.Env = append(os.Environ(), unguarded+"=1", "TMPDIR="+t.TempDir()) // it dies with what it made
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "SIGBUS") {
		t.Errorf("it lived: %v\n%.500s", err, out)
	}
}
