package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

var acknowledgement = regexp.MustCompile(`(?:kept whole|SAVED) as obs:([a-z0-9]{12})`)

// TestS12AKilledServerKeptWhatItSaid kills the server itself, at random moments of eight calls at once, and has a later
// process look for every ID of the answers that came: each is whole, and has every line that was found.
func TestS12AKilledServerKeptWhatItSaid(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	texts := map[string][]byte{}
	for i := range 8 {
		name := fmt.Sprintf("%d.txt", i)
		texts[name] = bytes.Repeat(fmt.Appendf(nil, "a row of file %d\n", i), 2000<<(i/2))
		write(t, filepath.Join(root, name), string(texts[name]))
	}
	try := func(program, store string, kills int) (said, lost int) {
		flags := []string{"--root", root, "--store", store, "--min-free", "0", "--quota", "8GiB"}
		acknowledged := map[string]string{} // ID: file
		for range kills {
			s := launch{program: program, flags: flags}.stdio(t)
			var mu sync.Mutex
			var calls sync.WaitGroup
			first := make(chan struct{}, 2) // answers, and no more of them than are waited for
			for name := range texts {
				calls.Go(func() {
					for {
						a, err := s.call("search", map[string]any{"pattern": "row", "path": name})
						select {
						case first <- struct{}{}:
						default:
						}
						if err != nil {
							return
						}
						if m := acknowledgement.FindStringSubmatch(a.text()); m != nil {
							mu.Lock()
							acknowledged[m[1]] = name
							mu.Unlock()
						}
					}
				})
			}
			go func() { // a few answers, then the kill at a random moment
				for range cap(first) {
					<-first
				}
				time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond)
				_ = s.cmd.Process.Kill()
			}()
			calls.Wait()
			<-s.ended
		}
		return len(acknowledged), missing(t, store, acknowledged, texts)
	}
	kills := promise.Size(4, 100)
	said, lost := try(binary(t), filepath.Join(dir, "store"), kills)
	if said < kills {
		t.Errorf("only %d observations were acknowledged before %d kills", said, kills)
	}
	_, control := try(hasty.binary(t), filepath.Join(dir, "hasty"), 2)
	promise.Keptf(t, promise.Proof{Promise: "S12", Cases: said, Failures: lost, Control: control},
		"the server killed %d times beside eight calls; control: acknowledged before it is in its place", kills)
}

// missing counts the acknowledged observations that a new process does not find whole.
func missing(t *testing.T, dir string, acknowledged map[string]string, texts map[string][]byte) (n int) {
	t.Helper()
	store := expect.Value(observations.OpenStore(observations.Options{Dir: dir, MinFree: -1}))(t)
	defer func() { _ = store.Close() }()
	for id, name := range acknowledged {
		r, err := store.Open(observations.Local, observations.ID(id))
		if err == nil {
			var b []byte
			b, err = io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if want := texts[name]; bytes.Count(b, want[:bytes.IndexByte(want, '\n')]) != bytes.Count(want, []byte("\n")) {
				err = errors.Join(err, errors.New("it is not what was found"))
			}
			err = errors.Join(err, r.Close(), store.Verify(observations.Local, observations.ID(id)))
		}
		if err != nil {
			n++
			t.Logf("obs:%s, of %s: %v", id, name, err)
		}
	}
	return n
}
