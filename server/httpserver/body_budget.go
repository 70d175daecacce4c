package httpserver

import "github.com/mcp-funnel/mcp-funnel/system/jsonrpc"

// freeBytes is how many bytes of each body do not count against the budget, so that ping and
// notifications/cancelled are never refused.
const freeBytes = 32 << 10

// bodyBudget bounds the memory of the bodies of each identity and of all together, in bytes, without the first
// freeBytes of each body.
type bodyBudget struct{ jsonrpc.OwnerLimiter }

func newBodyBudget(total int) *bodyBudget {
	return &bodyBudget{jsonrpc.OwnerLimiter{Total: total, PerOwner: total}}
}

// reserve adds n bytes to a body of have bytes; it returns false, and adds nothing, if that exceeds a limit.
func (b *bodyBudget) reserve(owner string, have, n int) bool {
	return b.Acquire(owner, max(have+n-freeBytes, 0)-max(have-freeBytes, 0)) == nil
}

// release removes a body of size bytes.
func (b *bodyBudget) release(owner string, size int) { b.Release(owner, max(size-freeBytes, 0)) }
