package funnel

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// maxBlocks is how many blocks of an output are on their way at once: it bounds what a writer is ahead of those who
// read behind it, and so the memory, 64 KiB each, and 256 KiB of a long output.
const maxBlocks = 6

// block is a piece of an output that several read at once. It is used again when the last of them has let go of it.
type block struct {
	data    []byte
	readers atomic.Int32
}

var spareBlocks = sync.Pool{New: func() any { return &block{data: make([]byte, 0, chunk)} }}

// blocks hands out at most maxBlocks at a time to one writer.
type blocks struct {
	room int // bytes of a block, if more than chunk
	made int
	free chan *block
}

// take waits where all blocks are still being read. The block taken is empty and has one reader.
func (s *blocks) take() *block {
	if s.free == nil {
		s.free = make(chan *block, maxBlocks)
	}
	var b *block
	select {
	case b = <-s.free:
	default:
		if s.made < maxBlocks {
			s.made++
			b = spareBlocks.Get().(*block) // nothing else is put there
		} else {
			b = <-s.free
		}
	}
	b.data = b.data[:0]
	if cap(b.data) < s.room {
		b.data = make([]byte, 0, s.room)
	}
	b.readers.Store(1)
	return b
}

// release is called by each reader once.
func (s *blocks) release(b *block) {
	if b != nil && b.readers.Add(-1) == 0 {
		s.free <- b
	}
}

// end gives back what nobody reads any more. Nothing may be taken after it.
func (s *blocks) end() {
	for s.made > 0 {
		select {
		case b := <-s.free:
			if cap(b.data) == chunk {
				spareBlocks.Put(b)
			}
			s.made--
		default:
			return // still in somebody's hands: it is garbage soon
		}
	}
}

// job is a text to be read, and the block it came from, which is held meanwhile: also where the text, masked, stands by
// itself, so that there are no more texts than blocks.
type job struct {
	text []byte
	in   *block
}

// beside reads texts in their order on a goroutine of its own, beside who writes them. The goroutine lives
// while there is something to read: who drops a beside leaves nothing behind.
type beside struct {
	do     func(text []byte)
	blocks *blocks

	mu      sync.Mutex
	idle    sync.Cond // on mu
	jobs    []job     // at most maxBlocks
	running bool
	failed  any // what do panicked with: nothing is read after it
}

func newBeside(blocks *blocks, do func(text []byte)) *beside {
	s := &beside{do: do, blocks: blocks}
	s.idle.L = &s.mu
	return s
}

// read has a text read.
func (s *beside) read(j job) {
	j.in.readers.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, j)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// settle waits until all is read.
func (s *beside) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running {
		s.idle.Wait()
	}
}

// defect is what a text could not be read for, so far; nil for none.
func (s *beside) defect() any {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *beside) run() {
	for {
		s.mu.Lock()
		if len(s.jobs) == 0 {
			s.running = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		j := s.jobs[0]
		s.jobs = s.jobs[:copy(s.jobs, s.jobs[1:])]
		failed := s.failed
		s.mu.Unlock()
		if failed == nil {
			s.one(j.text)
		}
		s.blocks.release(j.in)
	}
}

func (s *beside) one(text []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.mu.Lock()
			s.failed = fmt.Sprintf("%v\n%s", p, debug.Stack())
			s.mu.Unlock()
		}
	}()
	s.do(text)
}
