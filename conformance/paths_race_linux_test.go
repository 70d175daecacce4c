package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// Whatever a path is, no tool shows anything of the outside.
func FuzzPath(f *testing.F) {
	s := surround(f)
	for i, name := range append(s.outside(f), s.globs(f)...) {
		if !strings.Contains(name, s.parent) { // which is another each time
			f.Add(uint8(i%len(places)), name)
		}
	}
	call, src := inProcess(f, funnel.Options{}), toolstest.Roots(f, s.root)
	f.Fuzz(func(t *testing.T, place uint8, name string) {
		if strings.Contains(name, canaryText) || strings.Contains(name, "48613") || strings.Contains(name, canaryYear) {
			t.Skip("it would be repeated")
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		p := places[int(place)%len(places)]
		expect.Equal(t, leaks(name, call(ctx, src, funnel.Limits{}, p.tool, p.args(name))), "", "%s %q shows", p.tool, name)
	})
}

// All tools work while files, directories, links and parents below them are exchanged for what leads out.
func TestS2AllToolsOnARacedTree(t *testing.T) {
	t.Parallel()
	s := surround(t)
	pairs := map[string]string{} // a name below the root, and what it is exchanged for
	for i, target := range []string{"../vault", s.parent + "/vault", "/", "../root-evil", "sub", "../secret.txt"} {
		dir := fmt.Sprintf("swap-%d", i)
		write(t, fmt.Sprintf("%s/%s/known.txt", s.root, dir), "an inside word\n")
		write(t, fmt.Sprintf("%s/%s/deep/known.txt", s.root, dir), "an inside word\n")
		symlink(t, target, fmt.Sprintf("%s/other-%d", s.root, i))
		pairs[dir] = fmt.Sprintf("other-%d", i)
	}
	for i, target := range []string{"../secret.txt", s.parent + "/vault/known.txt"} {
		file := fmt.Sprintf("file-%d", i)
		write(t, s.root+"/"+file, "an inside word\n")
		symlink(t, target, s.root+"/file-other-"+fmt.Sprint(i))
		pairs[file] = fmt.Sprintf("file-other-%d", i)
	}
	write(t, s.root+"/pipe-swap", "an inside word\n")
	expect.Must(t, unix.Mkfifo(s.root+"/pipe", 0o600))
	pairs["pipe-swap"] = "pipe"
	exchange := func(a, b string) {
		expect.OK(t, unix.Renameat2(
			unix.AT_FDCWD, filepath.Join(s.root, a), unix.AT_FDCWD, filepath.Join(s.root, b), unix.RENAME_EXCHANGE,
		))
	}
	if err := os.Remove(s.root + "/top"); err != nil { // by its name no walk goes through it; here it need not be tried
		t.Fatal(err)
	}
	call, src := inProcess(t, funnel.Options{}), toolstest.Roots(t, s.root)
	names := []string{".", "", "pipe-swap", "sub/in.txt", "ok.txt"}
	for a := range pairs {
		names = append(names, a, a+"/known.txt", a+"/deep/known.txt", a+"/deep", a+"/")
	}

	var swaps, operations, failed atomic.Int64
	type caller struct {
		times int
		call  func(tool string, args any) (answer, error)
	}
	// raced makes calls on these names while everything is exchanged, until enough of them showed something of the
	// outside, and gives what they showed.
	raced := func(names []string, enough int, all ...caller) (failures []string) {
		stop := make(chan struct{})
		var racers, callers sync.WaitGroup
		var mu sync.Mutex
		for a, b := range pairs {
			racers.Go(func() {
				for !t.Failed() {
					select {
					case <-stop:
						return
					default:
						exchange(a, b)
						swaps.Add(1)
						time.Sleep(20 * time.Microsecond) // the callers need a processor too
					}
				}
			})
		}
		for n, c := range all {
			callers.Go(func() {
				draw := rand.New(rand.NewPCG(1, uint64(n)))
				for range c.times {
					mu.Lock()
					shown := len(failures)
					mu.Unlock()
					if shown >= enough {
						return
					}
					p, name := places[draw.IntN(len(places))], names[draw.IntN(len(names))]
					a, err := c.call(p.tool, p.args(name))
					if err != nil {
						t.Errorf("%s %q: %v", p.tool, name, err)
						return
					}
					operations.Add(1)
					if a.failed {
						failed.Add(1)
					}
					if leak := leaks(name, a); leak != "" {
						mu.Lock()
						failures = append(failures, fmt.Sprintf("%s %q shows %s: %.200q", p.tool, name, leak, a.text()))
						mu.Unlock()
					}
				}
			})
		}
		callers.Wait()
		close(stop)
		racers.Wait()
		return failures
	}
	size := promise.Size(2_000, 100_000)
	if testing.Short() {
		size = 500
	}
	inside := func(tool string, args any) (answer, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		return call(ctx, src, funnel.Limits{}, tool, args), nil
	}
	few := promise.Size(300, 5_000) // on the server as it is released: a call of it takes longer
	if testing.Short() {
		few = 100
	}
	binary := launch{flags: []string{"--root", s.root, "--call-timeout", "20s"}}.stdio(t)
	failures := raced(names, 1_000, caller{size / 2, inside}, caller{size / 2, inside}, caller{few, binary.call})
	cases, swapped, refused := operations.Load(), swaps.Load(), failed.Load()
	report(t, failures)

	// The control: the same race on the binary without a root that holds, which one call in a few falls for. It gets the
	// names whose other side is one file: below a link to / it would walk through all of this machine.
	weakened := launch{program: weak.binary(t), flags: []string{"--root", s.root, "--call-timeout", "20s"}}.stdio(t)
	control := raced([]string{"file-0", "file-1", "swap-0/known.txt", "swap-1/known.txt"}, 20, caller{few, weakened.call})
	promise.Keptf(t, promise.Proof{Promise: "S2", Cases: int(cases), Failures: len(failures), Control: len(control)},
		"%d swaps under all tools, %d calls refused; %d calls on the binary; the control fell in the same race within %d calls",
		swapped, refused, few, operations.Load()-cases)
}
