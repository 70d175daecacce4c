package funnel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// An output that is not kept says that the store is the cause, and what to do; where it is, to callers on this machine.
func TestWhyThereIsNoStoreIsTold(t *testing.T) {
	denied := &os.PathError{Op: "mkdir", Path: "/srv/x", Err: syscall.EACCES}
	writable := errors.New(
		"others may write in /srv/my (mode 0777): run chmod go-w on it, or choose another with --store",
	)
	for _, c := range []struct {
		err   error
		local bool
		want  string
	}{
		{nil, true, "there is no store"},
		{&observations.OpenError{Dir: "/srv/x", Err: denied}, true,
			"the store /srv/x cannot be used: permission denied; choose another with --store"},
		{&observations.OpenError{Dir: "/srv/x", Err: denied}, false,
			"the store cannot be used: permission denied; choose another with --store"},
		{&observations.OpenError{Dir: "/srv/my", Err: writable}, true,
			"the store /srv/my cannot be used: others may write in … (mode 0777): run chmod go-w on it, or choose another with --store"},
		{errors.New("open store: the home directory is unknown: name a directory with --store DIR"), true,
			"open store: the home directory is unknown: name a directory with --store DIR"},
	} {
		f := funnelOf(t, Options{NoStore: c.err, SavedTo: c.local})
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(300)))})
		if first, _, _ := strings.Cut(texted(a), "\n"); first != "LARGE OUTPUT DETECTED: not kept ("+c.want+")" {
			t.Errorf("%v: %q", c.err, first)
		}
	}
}

// A store that was opened and then cannot be written to is named as the cause too.
func TestAStoreThatFailsIsNamed(t *testing.T) {
	for _, local := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "store")
		store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
		expect.Must(t, err)
		t.Cleanup(func() { _ = store.Close() })
		if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
			t.Skip("the directory of an open store cannot be removed here")
		}
		f := funnelOf(t, Options{Store: store, SavedTo: local})
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(300)))})
		name := map[bool]string{true: "the store " + dir, false: "the store"}[local]
		want := "LARGE OUTPUT DETECTED: not kept (" + name + " cannot be written to: no such file or directory; " +
			"make it writable, or choose another with --store)"
		if first, _, _ := strings.Cut(texted(a), "\n"); first != want {
			t.Errorf("%q, want %q", first, want)
		}
	}
}
