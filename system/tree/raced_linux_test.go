package tree

import (
	"fmt"
	"io"
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
)

// exchange swaps two names atomically.
func exchange(t testing.TB, a, b string) {
	expect.OK(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
}

// swapping swaps two names until stop is closed, and counts the swaps in n if it is not nil.
func swapping(t *testing.T, wg *sync.WaitGroup, stop chan struct{}, n *atomic.Int64, a, b string) {
	wg.Go(func() {
		for !t.Failed() {
			select {
			case <-stop:
				return
			default:
			}
			exchange(t, a, b)
			if n != nil {
				n.Add(1)
			}
		}
	})
}

// secret is what no operation may reveal: by its text, or by its size.
const secret = "a secret of a length that nothing else has"

// racedTree creates a root with pairs of names, "x" and "x2": a harmless file, and one that leads out of the root or to
// a denied file, or is no file at all.
func racedTree(t *testing.T) (dir string, names []string) {
	t.Helper()
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	dir = filepath.Join(parent, "root")
	plant(t, dir, "store/f")
	plant(t, parent, "outside/f", "outside/d/f")
	for _, name := range []string{"outside/f", "outside/d/f", "root/store/f"} {
		expect.Must(t, os.WriteFile(filepath.Join(parent, name), []byte(secret), 0o600))
	}
	plant(t, dir,
		"d/f", "d2 -> ../outside", // a directory for a link out
		"f", "f2 -> ../outside/f", // a file for a link out
		"p/d/f", "p2 -> "+parent+"/outside", // a parent, the link absolute
		"l -> d3", "d3/f", "l2 -> ../outside", // a link for a link
		"e/f", "e2 -> store", "g/f", "g2 -> "+dir+"/store", "h", "h2 -> store/f", // what is denied
		"q/f", "r", "s/f", "s2", // a directory for a FIFO, a file for a FIFO, a directory for a file
	)
	if waits {
		plant(t, dir, "q2", "r2/f")
		return dir, racedNames
	}
	for _, name := range []string{"q2", "r2"} {
		expect.Must(t, unix.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	return dir, racedNames
}

var racedNames = []string{"d/f", "f", "p/d/f", "l/f", "e/f", "g/f", "h", "q/f", "r", "s/f"}

// raced counts the results of operations on a tree whose names are being swapped.
type raced struct{ operations, read, refused, escaped, swaps atomic.Int64 }

// race swaps the names of the tree while readers open, describe and walk. Now and then a reader waits for the swappers,
// so that races occur on any machine.
func (c *raced) race(
	t *testing.T, dir string, names []string, operations int, careful *Root, opens ...func(name string) (*os.File, error),
) {
	t.Helper()
	stop := make(chan struct{})
	var swappers, readers sync.WaitGroup
	for _, name := range names {
		first, _, _ := strings.Cut(name, "/")
		swapping(t, &swappers, stop, &c.swaps, filepath.Join(dir, first), filepath.Join(dir, first+"2"))
	}
	for n := range 2 {
		readers.Go(func() {
			for i := n; i < operations && !t.Failed(); i += 2 {
				c.operations.Add(1)
				name := names[i/2%len(names)]
				switch {
				case i%200 < 2 && careful != nil:
					c.walk(t, careful)
				case i%8 < 2 && careful != nil:
					if at, err := careful.Stat(name); err != nil {
						c.refused.Add(1)
					} else if at.Size() == int64(len(secret)) {
						c.escaped.Add(1)
					}
				default:
					c.open(opens[i/2%len(opens)](name))
				}
				if i%100 < 2 {
					for seen := c.swaps.Load(); c.swaps.Load() == seen && !t.Failed(); {
						time.Sleep(50 * time.Microsecond)
					}
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	swappers.Wait()
}

func (c *raced) open(f *os.File, err error) {
	if err != nil {
		c.refused.Add(1)
		return
	}
	b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	_ = f.Close()
	if string(b) == secret {
		c.escaped.Add(1)
	} else {
		c.read.Add(1)
	}
}

func (c *raced) walk(t *testing.T, r *Root) {
	_, err := r.Walk(t.Context(), Options{Stat: true, Hold: true}, func(e Entry) error {
		if e.In != nil {
			c.operations.Add(1)
			c.openHeld(e)
		}
		if strings.HasPrefix(e.Path, "store") || e.Type == File && e.Size == int64(len(secret)) {
			c.escaped.Add(1)
		}
		return nil
	})
	expect.OK(t, err)
}

// openHeld opens a file through its held directory.
func (c *raced) openHeld(e Entry) {
	o, err := e.In.Open(e.Path)
	e.In.Release()
	if err != nil {
		c.refused.Add(1)
		return
	}
	b, _ := io.ReadAll(io.LimitReader(&o, 1<<20))
	_ = o.Close()
	if string(b) == secret {
		c.escaped.Add(1)
	}
}

// While files, directories, links and parents are swapped for ones that lead out of the root or to denied files, or are
// no files, none of those is ever read, described or listed.
func TestS2RacedTreeNeverEscapes(t *testing.T) {
	dir, names := racedTree(t)
	plain, careful := open(t, dir), open(t, dir, filepath.Join(dir, "store"))
	opener := func(r *Root) func(string) (*os.File, error) {
		return func(name string) (*os.File, error) {
			f, _, err := r.OpenFile(name)
			return f, err
		}
	}
	var out, both raced
	operations := promise.Size(20_000, 1_000_000)
	if testing.Short() {
		operations = 6_000
	}
	before := descriptors(t)
	// without a store of its own the root has nothing to deny
	leadOut := []string{"d/f", "f", "p/d/f", "l/f", "q/f", "r", "s/f"}
	out.race(t, dir, leadOut, operations/4, nil, opener(plain), opener(careful))
	both.race(t, dir, names, operations-operations/4, careful, opener(careful))
	if left := descriptors(t) - before; left > 1 {
		t.Errorf("%d descriptors left open", left)
	}

	// Control: an implementation that resolves, checks and then opens, with the swap between check and open.
	var weak raced
	control, _ := racedTree(t)
	for i := range 20 {
		name := []string{"f", "h"}[i%2]
		weak.open(
			resolveCheckOpen(
				control, name, func() { exchange(t, filepath.Join(control, name), filepath.Join(control, name+"2")) },
			),
		)
		exchange(t, filepath.Join(control, name), filepath.Join(control, name+"2"))
	}
	promise.Kept(t, promise.Proof{
		Promise: "S2", Cases: int(
			out.operations.Load() + both.operations.Load(),
		), Failures: int(out.escaped.Load() + both.escaped.Load()), Control: int(weak.escaped.Load()),
		Figures: fmt.Sprintf(
			"%d swaps, %d read, %d refused", out.swaps.Load()+both.swaps.Load(), out.read.Load()+both.read.Load(),
			out.refused.Load()+both.refused.Load(),
		),
	})
}

// resolveCheckOpen is that insecure implementation; meanwhile runs between the check and the open.
func resolveCheckOpen(dir, name string, meanwhile func()) (*os.File, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(real, dir+"/") {
		return nil, ErrOutside
	}
	meanwhile()
	return os.Open(filepath.Join(dir, name))
}
