//go:build linux || darwin

package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// cleaning is a store in which others read, write, pin and plant files while two processes clean it up.
type cleaning struct {
	t       *testing.T
	dir     string
	at      atomic.Int64 // unix nanoseconds
	outside string
	planted map[string]string // path: what stands there
	cases   int
	wrong   []string
}

func (k *cleaning) now() time.Time { return time.Unix(0, k.at.Load()) }

func (k *cleaning) pass(d time.Duration) { k.at.Add(int64(d)) }

func (k *cleaning) note(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

// process opens the store as one of the processes that share it.
func (k *cleaning) process(quota int64) *Store {
	return open(k.t, Options{Dir: k.dir, Now: k.now, Quota: quota})
}

// state describes the file under a path, with its content if that is short.
func state(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "absent"
	}
	n, _ := inode(path)
	text := fmt.Sprint(n, info.Mode(), info.Size())
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(path)
		text += to
	case info.Mode().IsRegular() && info.Size() < 1<<20:
		b, _ := os.ReadFile(path)
		text += sum(b)
	}
	return text
}

// plant creates foreign files under every kind of name the store uses. None of them may be changed, or block an open.
func (k *cleaning) plant(s *Store) {
	fresh := func(sub, name string) string { return filepath.Join(k.dir, sub, name) }
	write := func(path, text string) string {
		must(k.t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	dataOf := func() string { return backend.DataName("search", k.now(), backend.RandomID(), "txt") }
	var all []string
	k.outside = write(filepath.Join(k.t.TempDir(), "outside"), "outside the store")
	all = append(all, k.outside)
	for _, name := range []string{"observations/notes.txt", "observations/k3v9q2m7x4ab.json.bak", "observations/search_20201120T143022_k3v9q2m7x4ab.txt.orig",
		"observations/.hidden", "observations/k3v9q2m7x4ab.txt", "observations/search_20261120_k3v9q2m7x4ab.txt",
		"tmp/99999999-00000000_short.data", "tmp/core", "tmp/12-abc.live", "tmp/99999999-00000000_k3v9q2m7x4ab.mine", "state/other", "other"} {
		all = append(all, write(filepath.Join(k.dir, name), "not ours"))
	}
	for _, name := range []string{fresh(storefs.ObservationsDir, dataOf()), fresh(storefs.ObservationsDir, string(backend.RandomID())+files.SideExt), fresh(storefs.ObservationsDir, string(backend.RandomID())+files.IndexExt),
		fresh(storefs.ObservationsDir, string(backend.RandomID())+files.PinExt), fresh(storefs.TmpDir, files.NewProcess()+files.LiveExt)} {
		must(k.t, os.Symlink(k.outside, name))
		all = append(all, name)
	}
	for _, make := range []func(string) error{
		func(name string) error { return os.Mkdir(name, 0o700) },
		func(name string) error { return syscall.Mkfifo(name, 0o600) },
	} {
		for _, name := range []string{fresh(storefs.ObservationsDir, dataOf()), fresh(
			storefs.ObservationsDir, string(backend.RandomID())+files.SideExt,
		), fresh(storefs.TmpDir, files.NewProcess()+files.LiveExt)} {
			must(k.t, make(name))
			all = append(all, name)
		}
	}
	// Handwritten sidecars: their data are elsewhere, another owner's, or missing.
	other := keep(k.t, s, Provenance{Owner: "ann"}, []byte("ann's"))
	must(k.t, s.Pin("ann", other.ID, true))
	all = append(all, s.SavedTo(other), sidecarPath(s, other.ID))
	side := func(id ID, file string) string {
		return fmt.Sprintf(
			`{"v":1,"id":%q,"owner":"local","tool":"x","file":%q,"bytes":5,"sha256":%q,"created":"2020-01-01T00:00:00Z"}`, id,
			file, sum([]byte("ann's")),
		)
	}
	for _, file := range []string{"../x", "../../" +
		filepath.Base(k.outside), k.outside, other.File, "../state/quota.json", "."} {
		id := backend.RandomID()
		write(fresh(storefs.ObservationsDir, string(id)+files.SideExt), side(id, file))
		if _, err := s.Open(Local, id); !errors.Is(err, ErrNotFound) {
			k.note("a sidecar by hand that names %s: %v", file, err)
		}
		k.cases++
	}
	id := backend.RandomID()
	write(fresh(storefs.ObservationsDir, string(id)+files.SideExt), `{"v":1,"id":`)
	id = backend.RandomID()
	all = append(all, write(fresh(storefs.ObservationsDir, string(id)+files.SideExt), `{"v":2,"what":"later"}`))
	huge, err := os.Create(fresh(storefs.ObservationsDir, string(backend.RandomID())+files.SideExt))
	must(k.t, err)
	must(k.t, huge.Truncate(1<<33))
	must(k.t, huge.Close())
	// A hard link under a data file's name: the link may expire, its target must stay.
	must(k.t, os.Link(k.outside, fresh(storefs.ObservationsDir, dataOf())))

	k.planted = map[string]string{}
	for _, path := range all {
		k.planted[path] = state(path)
	}
}

// unguarded releases the locks that show who is alive and who reads: the control.
func unguarded(s *Store, r *Reader) {
	_ = syscall.Flock(int(s.f.Live().Fd()), syscall.LOCK_UN)
	if r != nil {
		file, err := r.SyscallConn()
		if err == nil {
			_ = file.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
		}
	}
}

// round is one jump of the clock with two processes cleaning up.
func (k *cleaning) round(jump time.Duration, quota int64, guarded bool) {
	reader, writer := k.process(quota), k.process(quota)
	text := corpus.Random(100 << 10)
	read, pinned, fresh := keep(
		k.t, reader, Provenance{}, text,
	), keep(k.t, reader, Provenance{}, text), keep(k.t, reader, Provenance{}, text)
	must(k.t, reader.Pin(Local, pinned.ID, true))
	r, err := reader.Open(Local, read.ID)
	must(k.t, err)
	rec := record(k.t, writer, Provenance{}, text)
	if !guarded {
		unguarded(reader, r)
		unguarded(writer, nil)
	}
	k.pass(jump)

	var group sync.WaitGroup
	notes := make(chan string, 1000)
	for range 2 {
		group.Go(func() { // a server starts, lists and cleans up
			for range 3 {
				s, err := OpenStore(roomy(Options{Dir: k.dir, Now: k.now, Quota: quota}))
				if err != nil {
					notes <- err.Error()
					return
				}
				if _, err := s.Prune(false); err != nil && !errors.Is(err, ErrNoRoom) {
					notes <- err.Error()
				}
				if _, err := s.List("", true); err != nil {
					notes <- err.Error()
				}
				_ = s.Close()
			}
		})
	}
	group.Go(func() { // reads on
		for range 5 {
			b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if err != nil || !bytes.Equal(b, text) {
				notes <- fmt.Sprintf("an open reader reads %d bytes, %v", len(b), err)
			}
		}
	})
	group.Go(func() { // writes on
		for range 3 {
			_, _ = rec.Write(text)
		}
	})
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		k.t.Fatal("cleaning up hangs")
	}
	close(notes)
	for n := range notes {
		k.note("%s", n)
	}

	gone := func(what string, err error) {
		k.cases++
		if err != nil {
			k.note("jump %v, quota %d: %s: %v", jump, quota, what, err)
		}
	}
	gone("what is being read", second(reader.Stat(Local, read.ID)))
	gone("what is pinned", reader.Verify(Local, pinned.ID))
	// under a clock that was set back, what is of the future is last, but not fresh
	if jump == 0 || (jump < 0 && quota == 0) {
		gone("what is fresh", reader.Verify(Local, fresh.ID))
	}
	kept, dropped := rec.Size(), rec.Dropped()
	if o, err := rec.Commit(Stats{}); err == nil {
		err = writer.Verify(Local, o.ID)
		if err == nil && (o.Bytes != kept || o.Dropped != dropped) {
			err = fmt.Errorf("%d bytes, %d dropped, it was %d and %d", o.Bytes, o.Dropped, kept, dropped)
		}
		gone("what was being written", err)
	} else if dropped == 0 {
		gone("what was being written", err)
	}
	_ = rec.Discard()
	must(k.t, r.Close())
	must(k.t, reader.Pin(Local, pinned.ID, false))
	for path, was := range k.planted {
		k.cases++
		if is := state(path); is != was {
			k.note("jump %v: %s was %s and is %s", jump, strings.TrimPrefix(path, k.dir), was, is)
		}
	}
	_, _ = reader.Close(), writer.Close()
}

// While two processes clean up, with clocks that jump a year forward and back, open readers, pins, fresh observations
// and those being written stay; foreign files under the store's names are neither removed, followed, nor waited for.
func TestS15CleanUpTakesOnlyItsOwn(t *testing.T) {
	const year = 365 * oneDay
	clean := func(rounds int, guarded bool) *cleaning {
		k := &cleaning{t: t, dir: filepath.Join(t.TempDir(), "store")}
		k.at.Store(time.Now().UnixNano())
		k.plant(k.process(0))
		for i := range rounds {
			for _, jump := range []time.Duration{0, 8 * oneDay, year, -year, -8 * oneDay} {
				k.round(jump, []int64{0, 2 << 20}[i%2], guarded)
			}
		}
		return k
	}
	rounds := promise.Size(4, 50)
	if testing.Short() {
		rounds = 2
	}
	k, control := clean(rounds, true), clean(1, false)
	for i, w := range k.wrong {
		if i < 20 {
			t.Error(w)
		}
	}
	promise.Kept(t, promise.Proof{Promise: "S15", Cases: k.cases, Failures: len(k.wrong), Control: len(control.wrong),
		Figures: fmt.Sprintf("%d jumps of the clock, %d plants; control: the locks of those who live and read let go", 5*rounds, len(k.planted))})
}
