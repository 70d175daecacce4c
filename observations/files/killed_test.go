package files_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// workAge is the maximum age of an observation in playWork: 60 ms, by its clock.
const workAge = time.Hour

// playWork records, commits, reads, pins, removes and prunes until it is killed. A line acknowledges an operation, or
// announces the next one. Its clock runs a minute in a millisecond, so that observations also expire. weak renames the
// sidecar before the data, acknowledges, and dies in between.
func playWork(dir, epoch, how string) error {
	at := time.UnixMilli(atoi(epoch))
	s, err := OpenStore(
		Options{Dir: dir, MinFree: -1, MaxAge: workAge, Now: func() time.Time { return at.Add(time.Since(at) * 60_000) }},
	)
	if err != nil {
		return err
	}
	if how == "weak" {
		var commits atomic.Int64
		s.Disk().Fault = func(op, name string) error {
			if id, ok := backend.ParseDataName(filepath.Base(name)); ok && op == "rename" {
				side := filepath.Join(storefs.TmpDir, files.Key(s.f.ProcessName(), id)+files.SideExt)
				if err := os.Link(
					filepath.Join(dir, side), filepath.Join(dir, storefs.ObservationsDir, string(id)+files.SideExt),
				); err != nil {
					return err
				}
				if commits.Add(1) == 6 { // by then one of three was acknowledged
					fmt.Println(id, "early")
					if self, err := os.FindProcess(os.Getpid()); err == nil {
						_ = self.Kill()
					}
					select {}
				}
			}
			return nil
		}
	}
	var group sync.WaitGroup
	failed := make(chan error, 3)
	for range cap(failed) {
		group.Go(func() {
			for {
				if err := workOnce(s); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	return <-failed
}

func workOnce(s *Store) error {
	text := noise(rand.IntN(2) * rand.IntN(4*blockSize))
	r, err := s.Record(Provenance{Tool: "keep"})
	if err != nil {
		return err
	}
	_, _ = r.Write(text)
	if rand.IntN(8) == 0 {
		return r.Discard()
	}
	o, err := r.Commit(Stats{})
	if errors.Is(err, ErrNoRoom) { // said in time: nothing was acknowledged
		return r.Discard()
	}
	if err != nil {
		return errors.Join(err, r.Discard())
	}
	fmt.Println(o.ID, sum(text))
	switch rand.IntN(8) {
	case 0:
		fmt.Println(o.ID, "removing")
		if err = s.Remove(Local, o.ID); err == nil {
			fmt.Println(o.ID, "removed")
		}
	case 1:
		if err = s.Pin(Local, o.ID, true); err == nil {
			fmt.Println(o.ID, "pinned")
		}
		if err == nil && rand.IntN(4) > 0 {
			fmt.Println(o.ID, "letting go")
			err = s.Pin(Local, o.ID, false)
		}
	case 2:
		var back *Reader
		if back, err = s.Open(Local, o.ID); err == nil {
			b, _ := io.ReadAll(io.NewSectionReader(back, 0, back.Size()))
			if sum(b) != sum(text) {
				err = fmt.Errorf("obs:%s reads as %d bytes of another content", o.ID, len(b))
			}
			_ = back.Close()
		}
	case 3:
		_, err = s.Prune(false)
	}
	if errors.Is(err, ErrExpired) || errors.Is(err, ErrNoRoom) { // its hour is 60 ms; and a locked quota file is told
		return nil
	}
	return err
}

// killing is a store whose writers are killed, and what they acknowledged.
type killing struct {
	dir    string
	how    string
	want   map[ID]*promised
	kills  int
	acked  int
	checks int
	whole  int // of what was acknowledged, verified whole at the end
	gone   int // of it, expired or removed, as asked for
	wrong  []string
}

// promised is what was acknowledged about an observation.
type promised struct {
	sha256                    string
	pinned, removing, removed bool
}

func (k *killing) note(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf("after kill %d: ", k.kills)+fmt.Sprintf(format, args...))
}

// round starts one or two writers and kills them at a random moment.
func (k *killing) round(t *testing.T) {
	writers := []*another{start(t, "work", k.dir, fmt.Sprint(time.Now().UnixMilli()), k.how)}
	if rand.IntN(4) == 0 {
		writers = append(writers, start(t, "work", k.dir, fmt.Sprint(time.Now().UnixMilli()), k.how))
	}
	for _, a := range writers {
		if first, ok := <-a.lines; ok { // it is at work
			k.hear(first)
		} else {
			t.Fatal(a.Wait(), &a.said)
		}
	}
	for _, a := range writers {
		if k.how != "weak" { // which kills itself at a moment that must be seen
			time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond)
			_ = a.Process.Kill() // it may be dead already
		}
		lines, _ := a.rest()
		for _, l := range lines {
			k.hear(l)
		}
		if a.said.Len() > 0 {
			k.note("%s", &a.said)
		}
		k.kills++
	}
	k.check(t)
}

func (k *killing) hear(line string) {
	id, what, _ := strings.Cut(line, " ")
	p := k.want[ID(id)]
	if p == nil {
		p = &promised{}
		k.want[ID(id)] = p
	}
	switch what {
	case "removing":
		p.removing = true
	case "removed":
		p.removed = true
	case "pinned":
		p.pinned = true
	case "letting go":
		p.pinned = false
	default:
		p.sha256 = what
		k.acked++
	}
}

// check opens the store in this process and verifies everything ever promised.
func (k *killing) check(t *testing.T) {
	s := value(OpenStore(roomy(Options{Dir: k.dir, MaxAge: -1})))
	defer func() { _ = s.Close() }()
	k.whole = 0
	for id, p := range k.want {
		k.checks++
		err := s.Verify(Local, id)
		var expired *ExpiredError
		errors.As(err, &expired)
		switch {
		case expired != nil && expired.Observation.Why == whyRemoved && p.removing,
			expired != nil && !p.pinned && expired.Observation.Why == whyAge &&
				expired.Observation.Expired.Sub(expired.Observation.Created) > workAge:
			delete(k.want, id)
			k.gone++
		case p.removed:
			k.note("obs:%s was removed: %v", id, err)
		case err != nil:
			k.note("obs:%s was acknowledged: %v", id, err)
		default:
			if o, err := s.Stat(Local, id); err != nil || o.SHA256 != p.sha256 || (p.pinned && !o.Pinned) {
				k.note("obs:%s with %+v is %+v, %v", id, *p, o, err)
			} else {
				k.whole++
			}
		}
	}
	all := value(s.f.Scan(true))
	for id, e := range all {
		k.checks++
		if !e.Side || (e.Data == "") != !e.Index || (e.Data == "" && e.Pin) {
			k.note("left of obs:%s: %+v", id, e)
		} else if e.Data != "" && k.want[id] == nil && s.Verify(Local, id) != nil {
			k.note("obs:%s is torn: %v", id, s.Verify(Local, id))
		}
	}
	k.wrong = append(k.wrong, inconsistencies(s)...)
}

// Processes are killed while they record, commit, pin, remove, expire and prune. Every ID they acknowledged is complete
// for another process, or was removed as requested; nothing is torn or left behind, and the quota file is correct.
func TestS12AcknowledgedMeansThere(t *testing.T) {
	kill := func(how string, enough func(*killing) bool) *killing {
		k := &killing{dir: filepath.Join(t.TempDir(), "store"), how: how, want: map[ID]*promised{}}
		for !enough(k) {
			k.round(t)
		}
		return k
	}
	kills := promise.Size(40, 1000)
	if testing.Short() {
		kills = 10
	}
	k := kill("", func(k *killing) bool { return k.kills >= kills })
	for i, w := range k.wrong {
		if i < 10 {
			t.Error(w)
		}
	}
	if k.acked < k.kills {
		t.Errorf("%d acknowledged in %d kills: too few to mean anything", k.acked, k.kills)
	}
	control := kill("weak", func(k *killing) bool { return k.kills > 0 })
	promise.Kept(t, promise.Proof{Promise: "S12", Cases: k.checks, Failures: len(k.wrong), Control: len(control.wrong),
		Figures: fmt.Sprintf("%d kills; of %d acknowledged %d had expired or were removed as asked, %d were verified whole after the last kill; control: acknowledged with the sidecar, before the data", k.kills, k.acked, k.gone, k.whole)})
}
