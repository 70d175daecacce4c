package files_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// failures are the errors of a disk, a disk quota or a full table.
var failures = []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT, syscall.EACCES}

// lying makes the nth file operation fail without an error, except to missed; a write writes half. It is the control: a
// layer that ignores an error.
func lying(f *storefs.FS, dir string, nth int, missed func(op string)) (done *int) {
	n, torn := 0, ""
	f.Fault = func(op, name string) error {
		if torn != "" {
			if info, err := os.Stat(filepath.Join(dir, torn)); err == nil {
				_ = os.Truncate(filepath.Join(dir, torn), info.Size()/2)
			}
			torn = ""
		}
		if n++; n == nth {
			missed(op)
			if op == "write" {
				torn = name
			}
		}
		return nil
	}
	return &n
}

// sick is a store whose disk fails at one operation of a verb.
type sick struct {
	s          *Store
	c          *clock
	base, old  Observation // one that is fresh, one that is eight days old
	baseText   []byte
	once       bool // the fault passes
	unsure     bool // a sync or a close failed: what was written need not last
	wrong      []string
	verb, tell string // the verb, and the fault
}

func (k *sick) note(format string, args ...any) {
	k.wrong = append(k.wrong, k.verb+", "+k.tell+": "+fmt.Sprintf(format, args...))
}

// missed is called for each operation that fails. After a failed sync or close the bytes are still on this disk: only
// the error shows it.
func (k *sick) missed(op string) { k.unsure = k.unsure || op == "sync" || op == "close" }

// honest checks an error: it must name the fault and no path outside the store, and must not report a failing disk as a
// missing or damaged observation.
func (k *sick) honest(err error, fault error) {
	if !errors.Is(err, fault) && !errors.Is(err, ErrNoRoom) {
		k.note("%v does not say %v", err, fault)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrExpired) {
		k.note("a disk that fails is said to be %v", err)
	}
	if strings.Contains(err.Error(), k.s.Dir()) || len(err.Error()) > 200 {
		k.note("it tells a path: %v", err)
	}
}

// verb performs one operation of the store while the disk may fail, and returns checks that must hold if it reported
// success. first runs before the disk fails.
type verb struct {
	lasts bool // it is not done before it is known to last
	first func(k *sick) error
	do    func(k *sick) (after func(), err error)
}

var verbs = map[string]verb{
	"record small": {lasts: true, do: func(k *sick) (func(), error) { return k.record(1000) }},
	"record large": {lasts: true, do: func(k *sick) (func(), error) { return k.record(2*blockSize + 1000) }},
	"open":         {do: sickOpen},
	"open without index": {do: sickOpen, first: func(k *sick) error {
		return os.Remove(dir(k.s, storefs.ObservationsDir+"/"+string(k.base.ID)+files.IndexExt))
	}},
	"list": {do: func(k *sick) (func(), error) {
		list, err := k.s.List(Local, true)
		after := func() {
			if len(list) != 2 {
				k.note("%d of 2 are listed", len(list))
			}
		}
		return after, err
	}},
	"look": {do: func(k *sick) (func(), error) {
		o, err := k.s.Stat(Local, k.base.ID)
		after := func() {
			if o.SHA256 != k.base.SHA256 {
				k.note("it looks like %+v", o)
			}
		}
		return after, err
	}},
	"verify": {do: func(k *sick) (func(), error) { return func() {}, k.s.Verify(Local, k.base.ID) }},
	"usage": {do: func(k *sick) (func(), error) {
		u, err := k.s.Usage()
		after := func() {
			if u.Observations != 2 {
				k.note("%+v of 2 observations", u)
			}
		}
		return after, err
	}},
	"damaged": {do: func(k *sick) (func(), error) {
		ids, err := k.s.Damaged()
		after := func() {
			if len(ids) > 0 {
				k.note("%v are called damaged", ids)
			}
		}
		return after, err
	}},
	"pin": {lasts: true, do: func(k *sick) (func(), error) {
		after := func() {
			if o, err := k.s.Stat(Local, k.base.ID); err != nil || !o.Pinned {
				k.note("said to be pinned, and is not: %v", err)
			}
		}
		return after, k.s.Pin(Local, k.base.ID, true)
	}},
	"let go": {lasts: true, first: func(k *sick) error { return k.s.Pin(Local, k.base.ID, true) }, do: func(k *sick) (func(), error) {
		after := func() {
			if o, err := k.s.Stat(Local, k.base.ID); err != nil || o.Pinned {
				k.note("said not to be pinned, and is: %v", err)
			}
		}
		return after, k.s.Pin(Local, k.base.ID, false)
	}},
	"remove": {lasts: true, do: func(k *sick) (func(), error) {
		after := func() {
			if _, err := os.Stat(k.s.SavedTo(k.old)); err == nil || !errors.Is(second(k.s.Stat(Local, k.old.ID)), ErrExpired) {
				k.note("said to be removed, and is there")
			}
		}
		return after, k.s.Remove(Local, k.old.ID)
	}},
	"prune": {do: func(k *sick) (func(), error) {
		p, err := k.s.Prune(false)
		after := func() {
			_, look := k.s.Stat(Local, k.old.ID)
			if p.Removed == 1 && !errors.Is(look, ErrExpired) {
				k.note("%+v, and then %v", p, look)
			}
		}
		return after, err
	}},
}

func sickOpen(k *sick) (func(), error) {
	r, err := k.s.Open(Local, k.base.ID)
	if err != nil {
		return func() {}, err
	}
	b := make([]byte, r.Size())
	_, err = r.ReadAt(b, 0)
	line, _, lines := r.LineOffset(2)
	after := func() {
		if string(b) != string(k.baseText) || line != 6 {
			k.note("it was read as %d bytes of another text, line 2 at %d", len(b), line)
		}
	}
	return after, cmp.Or(err, lines, r.Close())
}

// record is the funnel's use of the store: Write never fails, and the bytes can be read until Discard.
func (k *sick) record(size int) (func(), error) {
	text := corpus.Random(size)
	r, err := k.s.Record(Provenance{Tool: "keep"})
	if err != nil {
		k.note("Record fails: %v", err)
		return func() {}, err
	}
	for rest := text; len(rest) > 0; {
		n := min(len(rest), 50_000)
		if m, err := r.Write(rest[:n]); m != n || err != nil {
			k.note("Write = %d, %v", m, err)
		}
		rest = rest[n:]
	}
	if r.Size()+r.Dropped() != int64(size) || (r.Dropped() > 0) != (r.Err() != nil) {
		k.note("%d kept and %d dropped of %d, %v", r.Size(), r.Dropped(), size, r.Err())
	}
	k.unsure = false // of an old one that was to go first: it stays
	o, err := r.Commit(Stats{})
	if err != nil {
		if sick := k.s.Disk().Fault; k.once {
			k.s.Disk().Fault = nil // what is in hand can still be read
			back := make([]byte, r.Size())
			if n, err := r.ReadAt(back, 0); n != len(back) || (err != nil && !errors.Is(err, io.EOF)) ||
				!bytes.Equal(back, text[:n]) {
				k.note("after a failed commit %d of %d bytes are read, %v", n, len(back), err)
			}
			k.s.Disk().Fault = sick
		}
		_ = r.Discard() // it may fail as well, while the disk does; then what is left goes with the process
		return func() {}, err
	}
	_ = r.Discard()
	return func() {
		if o.Bytes != int64(size) || o.Dropped != 0 || o.SHA256 != sum(text) {
			k.note("committed %d of %d, dropped %d", o.Bytes, size, o.Dropped)
		}
		if err := k.s.Verify(Local, o.ID); err != nil {
			k.note("acknowledged, and: %v", err)
		}
	}, nil
}

// descriptors returns how many files this process has open; 0 if unknown.
func descriptors() int {
	if runtime.GOOS != "linux" {
		return 0
	}
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// sicken creates a store with two observations and a dead process's leftovers, runs a verb while the nth operation
// fails, and checks the store once the disk works again. failed is false if the verb took fewer operations. Without a
// fault the disk lies.
func sicken(t *testing.T, place, name string, nth int, fault error, sticky, fsync bool) (k *sick, failed bool) {
	store := filepath.Join(place, "store")
	defer func() { _ = os.RemoveAll(store) }()
	k = &sick{
		c: newClock(), once: !sticky, baseText: []byte("first\nsecond\n"), verb: name,
		tell: fmt.Sprintf("operation %d, %v, sticky %v, fsync %v", nth, fault, sticky, fsync),
	}
	fds := descriptors()
	options := roomy(Options{Dir: store, Now: k.c.now, Fsync: fsync})
	lasting := options
	lasting.MaxAge = -1
	fill := open(t, lasting)
	k.old = keep(t, fill, Provenance{}, []byte("old"))
	k.c.pass(8 * oneDay)
	k.base = keep(t, fill, Provenance{}, k.baseText)
	must(t, fill.Close())
	k.c.pass(2 * time.Hour) // it is time for a look at ages

	disk := &storefs.FS{}
	arm := func() *int {
		n := failing(disk, nth, fault, sticky)
		fail := disk.Fault
		disk.Fault = func(op, name string) error {
			err := fail(op, name)
			if err != nil {
				k.missed(op)
			}
			return err
		}
		return n
	}
	if fault == nil {
		arm = func() *int { return lying(disk, store, nth, k.missed) }
	}
	var n *int
	var err error
	if name == "start" {
		dead := open(t, Options{Dir: store, Now: k.c.now})
		text := corpus.Random(100 << 10)
		w := value(dead.f.Create(Provenance{Owner: Local}, k.c.now()))
		value(w.Room(int64(len(text)), 16<<20))
		value(w.Write(text))
		w.(*files.Writer).Die()
		dead.f.Die()
		n = arm()
		if k.s, err = openStore(options, disk); err == nil {
			err = k.s.Unwritable()
		}
		disk.Fault = nil
		if err != nil && !errors.Is(err, fault) {
			k.note("%v does not say %v", err, fault)
		}
	} else {
		k.s, err = openStore(options, disk)
		must(t, err)
		v := verbs[name]
		if v.first != nil {
			must(t, v.first(k))
		}
		n = arm()
		after, err := v.do(k)
		disk.Fault = nil
		if err != nil {
			k.honest(err, fault)
		} else {
			after()
			// there it is tried again, when bytes have made room
			if v.lasts && k.unsure && !(name == "remove" && storefs.IsFull(fault)) {
				k.note("said to be done, after a sync or a close that failed")
			}
		}
	}
	if k.s != nil {
		if err := k.s.Verify(Local, k.base.ID); err != nil {
			k.note("what was there before: %v", err)
		}
		_ = k.s.Close()
	}

	// The disk works again: the next process finds a consistent store without reservations.
	again := open(t, options)
	if err := again.Verify(Local, k.base.ID); err != nil {
		k.note("what was there before, for the next process: %v", err)
	}
	if _, err := again.Prune(false); err != nil {
		k.note("prune: %v", err)
	}
	if err := second(again.Stat(Local, k.old.ID)); !errors.Is(err, ErrExpired) {
		k.note("the old one, after a prune: %v", err)
	}
	if k.c.pass(8 * oneDay); second(os.Stat(again.SavedTo(k.old))) == nil { // then its bytes may go by age
		if _, err := again.Prune(false); err != nil || second(os.Stat(again.SavedTo(k.old))) == nil {
			k.note("the bytes of a tombstone stay: %v", err)
		}
	}
	keep(t, again, Provenance{}, []byte("after"))
	k.wrong = append(k.wrong, prefixed(k, inconsistencies(again))...)
	must(t, again.Close())
	if now := descriptors(); now > fds {
		k.note("%d descriptors leaked", now-fds)
	}
	return k, *n >= nth
}

func prefixed(k *sick, list []string) []string {
	for i := range list {
		list[i] = k.verb + ", " + k.tell + ": " + list[i]
	}
	return list
}

// Every file operation of every verb fails with every disk error, once and from then on. Nothing missing is
// acknowledged, nothing stored is lost or reported as damaged or missing, and once the disk works again no files,
// reservations or descriptors are left.
func TestS13FailingDiskNeverLies(t *testing.T) {
	names := append([]string{"start"}, slices.Sorted(maps.Keys(verbs))...)
	cases, place := 0, scratch(t)
	var wrong, lies []string
	for i, name := range names {
		first, step := 1, 1
		if !promise.Full() && !verbs[name].lasts && name != "prune" { // those are tried whole at any size
			first, step = 1+i%2, 2
		}
		if testing.Short() {
			step = 6
		}
		for nth, more := first, true; more; nth += step {
			more = false
			for f, fault := range failures {
				for _, sticky := range []bool{false, true} {
					// In the small form, one fault per operation, each kind in turn.
					if !promise.Full() && (f != nth%len(failures) || sticky != (nth/len(failures)%2 == 1)) {
						continue
					}
					for _, fsync := range []bool{false, true} {
						k, failed := sicken(t, place, name, nth, fault, sticky, fsync)
						more = more || failed
						cases++
						wrong = append(wrong, k.wrong...)
					}
				}
			}
		}
	}
	for i, w := range wrong {
		if i < 20 {
			t.Error(w)
		}
	}
	unsure := 0
	for nth, more := 1, true; more; nth++ {
		var k *sick
		k, more = sicken(t, place, "record large", nth, nil, false, true)
		lies = append(lies, k.wrong...)
		if k.unsure && len(k.wrong) > 0 {
			unsure++
		}
	}
	if unsure == 0 || unsure == len(lies) {
		t.Errorf("the control saw %d lies, %d of them of a sync or a close: both kinds must be seen", len(lies), unsure)
	}
	promise.Kept(t, promise.Proof{Promise: "S13", Cases: cases, Failures: len(wrong), Control: len(lies),
		Figures: fmt.Sprintf("%d verbs of the store; control: an error of a write, a sync or a close is ignored (%d of the last two)", len(names), unsure)})
}
