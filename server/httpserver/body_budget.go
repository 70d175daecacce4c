package httpserver

import "sync"

// freeBytes is how many bytes of each body do not count against the budget, so that ping and
// notifications/cancelled are never refused.
const freeBytes = 32 << 10

// byteBudget bounds the memory of all bodies together, in bytes, without the first freeBytes of each.
type byteBudget struct {
	mu        sync.Mutex
	used, max int64
}

// reserve adds n bytes to a body of have bytes; it returns false, and adds nothing, if that exceeds max.
func (b *byteBudget) reserve(have, n int) bool {
	over := int64(max(have+n-freeBytes, 0) - max(have-freeBytes, 0))
	if over == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+over > b.max {
		return false
	}
	b.used += over
	return true
}

func (b *byteBudget) release(size int) {
	if over := int64(size - freeBytes); over > 0 {
		b.mu.Lock()
		b.used -= over
		b.mu.Unlock()
	}
}

// bodyBudget is the budget of all identities together and, if there are several, of each one: three quarters of it.
type bodyBudget struct {
	all     byteBudget
	byOwner map[string]*byteBudget // read-only once requests are served
}

func (b *bodyBudget) splitByOwner(of []credential) {
	b.byOwner = map[string]*byteBudget{}
	for _, c := range of {
		b.byOwner[c.owner] = &byteBudget{max: b.all.max / 4 * 3}
	}
}

// reserve adds n bytes to a body of have bytes of that identity; it returns false, and adds nothing, if that
// exceeds a budget.
func (b *bodyBudget) reserve(owner string, have, n int) bool {
	own := b.byOwner[owner]
	if own != nil && !own.reserve(have, n) {
		return false
	}
	if b.all.reserve(have, n) {
		return true
	}
	if own != nil { // only the bytes of n beyond freeBytes were reserved
		own.release(freeBytes + max(have+n-freeBytes, 0) - max(have-freeBytes, 0))
	}
	return false
}

func (b *bodyBudget) release(owner string, size int) {
	if own := b.byOwner[owner]; own != nil {
		own.release(size)
	}
	b.all.release(size)
}
