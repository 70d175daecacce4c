package viewer

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	patience  = 120 * time.Millisecond // how long a page waits for what is read in the background
	maxStarts = 1 << 16                // of a list: 512 KiB
	maxLists  = 32
	maxSeen   = 10_000
	atOnce    = 2 // texts that are read in the background
)

// lists are the lists that were read last.
type lists struct {
	mu    sync.Mutex
	known *lru.Values[string, *list]
	turn  chan struct{}
	// seen are the offsets of containers that pages have shown: a text need not be read from its start to find one again.
	seen *lru.Values[string, int64]
}

func newLists() lists {
	return lists{
		known: lru.New[string, *list](maxLists), turn: make(chan struct{}, atOnce), seen: lru.New[string, int64](maxSeen),
	}
}

// list knows where the parts of a text begin: records, elements of an array, files of a diff. It is made by one pass in
// the background, while its first pages are shown. Of very many parts it knows every second, fourth … one, and a page
// finds the others from there.
type list struct {
	mu     sync.Mutex
	starts []int64 // of the parts 0, stride, 2·stride …
	stride int64
	n      int64 // parts found so far
	done   bool
	err    error
	beside any           // what else the pass finds
	grew   chan struct{} // closed when parts or the end were found, and replaced

	version string
	stop    context.CancelFunc
}

// walk calls visit with the number of each part of a text, from 0, and the offset at which it begins, until visit
// returns false.
type walk func(ctx context.Context, visit func(index, start int64) bool) error

// parts makes a walk of a text from the start of a part on, or of the whole with 0. Its numbers begin with 0 there; its
// offsets are those in the text.
type parts func(o *opened, start int64) walk

// recordsBy makes parts by a reader of records.
func recordsBy(records func(context.Context, io.Reader, func(int64, content.Span) bool) error) parts {
	return func(o *opened, start int64) walk {
		return func(ctx context.Context, visit func(index, start int64) bool) error {
			r, err := o.from(start)
			if err != nil {
				return err
			}
			return records(ctx, r, func(i int64, at content.Span) bool { return visit(i, start+at.Start) })
		}
	}
}

// list returns the list of a key. If it is new, all reads the whole text in the background, and may fill beside; closed
// releases what it reads. A list of another version of the text is replaced, and no longer read.
func (v *Viewer) list(key, version string, beside any, all func() (w walk, closed func(), err error)) *list {
	v.lists.mu.Lock()
	defer v.lists.mu.Unlock()
	if l, ok := v.lists.known.Get(key); ok {
		if l.version == version {
			return l
		}
		l.stop()
	}
	ctx, stop := context.WithCancel(v.ctx)
	l := &list{stride: 1, beside: beside, grew: make(chan struct{}), version: version, stop: stop}
	v.lists.known.Put(key, l, 1)
	v.background.Go(func() {
		defer stop()
		select {
		case v.lists.turn <- struct{}{}:
		case <-ctx.Done():
			l.end(ctx.Err())
			return
		}
		defer func() { <-v.lists.turn }()
		w, closed, err := all()
		if err == nil {
			defer closed()
			err = w(ctx, l.add)
		}
		l.end(err)
	})
	return l
}

// end says that no further part will be found.
func (l *list) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.err = true, err
	close(l.grew)
	l.grew = make(chan struct{})
}

// add adds a part.
func (l *list) add(index, start int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = index + 1
	if index%l.stride == 0 {
		if len(l.starts) == maxStarts {
			l.stride *= 2
			for i := range len(l.starts) / 2 {
				l.starts[i] = l.starts[2*i]
			}
			l.starts = l.starts[:len(l.starts)/2]
		}
		if index%l.stride == 0 {
			l.starts = append(l.starts, start)
		}
	}
	if index&(index-1) == 0 || index%256 == 0 { // few wake-ups
		close(l.grew)
		l.grew = make(chan struct{})
	}
	return true
}

// wait waits until the first n parts are known, or all, for [patience] at most. It returns how many are known.
func (l *list) wait(ctx context.Context, n int64) (known int64, done bool, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		l.mu.Lock()
		known, done, err = l.n, l.done, l.err
		grew := l.grew
		l.mu.Unlock()
		if known >= n || done {
			return known, done, err
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return known, false, nil
		}
	}
}

// near returns the last known part at or before a number.
func (l *list) near(index int64) (at, start int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := min(index/l.stride, int64(len(l.starts))-1)
	if i < 0 {
		return 0, 0
	}
	return i * l.stride, l.starts[i]
}

// page returns where the parts from..from+n of a text begin: as many as are known.
func (l *list) page(ctx context.Context, o *opened, all parts, from, n int64) (starts []int64, err error) {
	known, _, _ := l.wait(ctx, from+n)
	if n = min(n, known-from); n <= 0 {
		return nil, nil
	}
	l.mu.Lock()
	if l.stride == 1 {
		defer l.mu.Unlock()
		return slices.Clone(l.starts[from : from+n]), nil
	}
	l.mu.Unlock()
	at, start := l.near(from)
	err = all(o, start)(ctx, func(i, start int64) bool {
		if at+i >= from {
			starts = append(starts, start)
		}
		return int64(len(starts)) < n
	})
	if int64(len(starts)) == n || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return slices.Clip(starts), err
}
