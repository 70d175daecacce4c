package capture

import (
	"sync"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

// chunkRef is a text to be consumed, and the block it came from. The block is held meanwhile, even if the text is a
// masked copy, so that there are no more texts than blocks.
type chunkRef struct {
	text  []byte
	block *block
}

// asyncConsumer calls consume for each text, in order, in its own goroutine, concurrently with the writer of the texts.
// The goroutine exits when it is idle; an asyncConsumer needs no Close.
type asyncConsumer struct {
	consume func(text []byte)
	pool    *blockPool

	mu      sync.Mutex
	idle    sync.Cond  // on mu
	queue   []chunkRef // at most maxBlocks
	running bool
	failed  error // the panic of consume, after which nothing is consumed
}

func newAsyncConsumer(pool *blockPool, consume func(text []byte)) *asyncConsumer {
	c := &asyncConsumer{consume: consume, pool: pool}
	c.idle.L = &c.mu
	return c
}

// enqueue adds a text to the queue; it does not wait.
func (c *asyncConsumer) enqueue(r chunkRef) {
	r.block.readers.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, r)
	if !c.running {
		c.running = true
		go c.run()
	}
}

// wait returns when the queue is empty and nothing is being consumed.
func (c *asyncConsumer) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running {
		c.idle.Wait()
	}
}

// failure returns the panic of consume, nil if there was none so far.
func (c *asyncConsumer) failure() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *asyncConsumer) run() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.running = false
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		r := c.queue[0]
		c.queue = c.queue[:copy(c.queue, c.queue[1:])]
		failed := c.failed
		c.mu.Unlock()
		if failed == nil {
			panics.Into(&failed, func() { c.consume(r.text) })
			if failed != nil {
				c.mu.Lock()
				c.failed = failed
				c.mu.Unlock()
			}
		}
		c.pool.release(r.block)
	}
}
