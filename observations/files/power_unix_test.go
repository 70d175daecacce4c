//go:build linux || darwin

package files_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// power is a model of what a disk holds after a loss of power: of a file what it
// was when it was last synced, of a directory the names of its last sync, and of
// later changes to the names any part.
type power struct {
	t     *testing.T
	s     *Store
	tried map[string]bool
	place string
	brief bool // one loss is enough
	sane  map[uint64][]byte
	names map[string]map[string]uint64 // by directory
	made  bool                         // the directories themselves are synced

	last      [2]string // the operation before: done by now
	want      map[ID]fate
	images    int
	losses    int
	lossNotes []string
}

// fate is what was acknowledged of an observation.
type fate struct {
	sha256         string
	pinned         bool
	removing, gone bool
}

func inode(path string) (uint64, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return uint64(info.Sys().(*syscall.Stat_t).Ino), true //nolint:unconvert // not everywhere 64 bits
}

func listed(dir string) map[string]uint64 {
	all := map[string]uint64{}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if n, ok := inode(filepath.Join(dir, e.Name())); ok {
			all[e.Name()] = n
		}
	}
	return all
}

// before is the store's file layer about to do an operation: the one before is done.
func (p *power) before(op, name string) error {
	p.applyLast()
	p.last = [2]string{op, name}
	if p.s != nil {
		p.lose()
	}
	return nil
}

func (p *power) applyLast() {
	if p.s == nil {
		if p.last == [2]string{"sync", "."} {
			p.made = true
		}
		return
	}
	op, name := p.last[0], p.last[1]
	path := filepath.Join(p.s.Dir(), name)
	switch {
	case op == "create": // an inode may be used again
		if n, ok := inode(path); ok {
			delete(p.sane, n)
		}
	case op == "sync" && name == storefs.ObservationsDir:
		p.names[name] = listed(path)
	case op == "sync":
		if n, ok := inode(path); ok {
			b, err := os.ReadFile(path)
			must(p.t, err)
			p.sane[n] = b
		}
	}
}

// lose tries what may be left of this moment.
func (p *power) lose() {
	now := map[string]map[string]uint64{}
	for _, d := range []string{storefs.ObservationsDir, storefs.TmpDir} {
		now[d] = listed(filepath.Join(p.s.Dir(), d))
	}
	p.image("what is synced", p.names)
	p.image("all names", now)
	for seed := range uint64(promise.Size(1, 8)) {
		draw := rand.New(rand.NewPCG(uint64(len(p.tried)), seed))
		some := map[string]map[string]uint64{}
		for d := range now {
			some[d] = map[string]uint64{}
			for _, name := range slices.Sorted(maps.Keys(union(p.names[d], now[d]))) {
				from := []map[string]uint64{p.names[d], now[d]}[draw.IntN(2)]
				if n, ok := from[name]; ok {
					some[d][name] = n
				}
			}
		}
		p.image("some names", some)
	}
}

func union(a, b map[string]uint64) map[string]uint64 {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// image makes a store of it, opens it, and looks for what was acknowledged.
func (p *power) image(what string, names map[string]map[string]uint64) {
	state := fmt.Sprint(names, p.want)
	for _, n := range slices.Sorted(maps.Keys(p.sane)) {
		state += fmt.Sprintf(" %d:%d", n, len(p.sane[n]))
	}
	if p.tried[state] || (p.brief && p.losses > 0) {
		return
	}
	p.tried[state] = true
	p.images++
	dir, err := os.MkdirTemp(p.place, "image")
	must(p.t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	if !p.made && len(p.want) > 0 {
		p.loss("%s: the directory of the store is not there", what)
		return
	}
	for d, files := range names {
		must(p.t, os.Mkdir(filepath.Join(dir, d), 0o700))
		for name, n := range files {
			must(p.t, os.WriteFile(filepath.Join(dir, d, name), p.sane[n], 0o600))
		}
	}
	s, err := OpenStore(roomy(Options{Dir: dir, Now: p.s.f.Now}))
	if err != nil {
		p.loss("%s: %v", what, err)
		return
	}
	defer func() { _ = s.Close() }()
	for id, want := range p.want {
		o, err := s.Stat(Local, id)
		switch {
		case errors.Is(err, ErrExpired) && (want.gone || want.removing):
		case want.gone:
			p.loss("%s: obs:%s was removed, and: %v", what, id, err)
		case err != nil:
			p.loss("%s: obs:%s was acknowledged: %v", what, id, err)
		case o.SHA256 != want.sha256 || (want.pinned && !o.Pinned):
			p.loss("%s: obs:%s is %+v", what, id, o)
		default:
			if err := s.Verify(Local, id); err != nil {
				p.loss("%s: obs:%s: %v", what, id, err)
			}
		}
	}
	list, err := s.List("", false)
	if err != nil {
		p.loss("%s: %v", what, err)
	}
	for _, o := range list { // what nobody was told of: all of it or nothing
		if err := s.Verify(Local, o.ID); err != nil && p.want[o.ID].sha256 == "" {
			p.loss("%s: obs:%s is shown: %v", what, o.ID, err)
		}
	}
}

func (p *power) loss(format string, args ...any) {
	p.losses++
	if len(p.lossNotes) < 5 {
		p.lossNotes = append(p.lossNotes, fmt.Sprintf("before %s %s: ", p.last[0], p.last[1])+fmt.Sprintf(format, args...))
	}
}

// story keeps, pins, removes and expires, and notes each time what was acknowledged.
func (p *power) story(fsync bool) {
	c := newClock()
	disk := &storefs.FS{Fault: p.before}
	s, err := openStore(roomy(Options{Dir: filepath.Join(p.place, "new", "store"), Fsync: fsync, Now: c.now}), disk)
	must(p.t, err)
	p.applyLast()
	p.s = s
	kept := func(n int) ID {
		o := keep(p.t, s, Provenance{}, corpus.Random(n))
		p.want[o.ID] = fate{sha256: o.SHA256}
		return o.ID
	}
	change := func(id ID, do func(*fate)) {
		f := p.want[id]
		do(&f)
		p.want[id] = f
	}
	small, large, old := kept(1000), kept(2*blockSize+1000), kept(10)
	must(p.t, s.Pin(Local, small, true))
	change(small, func(f *fate) { f.pinned = true })
	change(large, func(f *fate) { f.removing = true })
	must(p.t, s.Remove(Local, large))
	change(large, func(f *fate) { f.gone = true })
	c.pass(8 * oneDay)
	change(old, func(f *fate) { f.removing = true })
	if _, err := s.Prune(false); err != nil {
		p.t.Fatal(err)
	}
	kept(100)
	change(small, func(f *fate) { f.pinned = false })
	must(p.t, s.Pin(Local, small, false))
	p.applyLast()
	p.lose()
	must(p.t, s.Close())
}

// With --fsync, power may go before any operation of the file layer: whatever
// part of the unsynced is lost, what was acknowledged is there, and what was
// removed does not come back.
func TestS12SurvivesPowerLoss(t *testing.T) {
	try := func(fsync bool) *power {
		p := &power{t: t, place: scratch(t), made: !fsync, brief: !fsync, tried: map[string]bool{}, sane: map[uint64][]byte{}, want: map[ID]fate{},
			names: map[string]map[string]uint64{storefs.ObservationsDir: {}, storefs.TmpDir: {}}}
		p.story(fsync)
		return p
	}
	p := try(true)
	if p.losses > 0 {
		t.Errorf("%d losses, such as\n%s", p.losses, strings.Join(p.lossNotes, "\n"))
	}
	control := try(false) // its directories are spared, else all were lost with them
	promise.Kept(t, promise.Proof{Promise: "S12", Cases: p.images, Failures: p.losses, Control: control.losses,
		Figures: "power lost before every file operation, with --fsync; control: without"})
}
