package jsonrpc

// CallLimiter limits the calls that run concurrently over all connections, and the total bytes of their messages.
// After ReserveForOthers each identity may use only three quarters of both limits. It is safe for concurrent use.
type CallLimiter struct{ calls, bytes OwnerLimiter }

// SetLimits sets the largest number of calls and of bytes of their messages. It must be called before Acquire.
func (g *CallLimiter) SetLimits(calls, bytes int) {
	g.calls.Total, g.calls.PerOwner = calls, calls
	g.bytes.Total, g.bytes.PerOwner = bytes, bytes
}

// ReserveForOthers limits each identity to its share, so that no identity can block the others.
func (g *CallLimiter) ReserveForOthers() {
	g.calls.SetPerOwner(OwnerShare(g.calls.Total))
	g.bytes.SetPerOwner(g.bytes.Total / 4 * 3)
}

// Acquire counts a call with a message of size bytes, or returns a fault if a limit is reached. The caller must call
// Release with the same owner and size when the call ends.
func (g *CallLimiter) Acquire(owner string, size int) *Fault {
	full := g.calls.Acquire(owner, 1)
	if full == nil {
		if full = g.bytes.Acquire(owner, size); full == nil {
			return nil
		}
		g.calls.Release(owner, 1)
		if full.count = g.calls.Count(); full.PerOwner {
			full.count = g.calls.CountOf(owner)
		}
	}
	if full.PerOwner && g.calls.Total > g.calls.PerOwner {
		return Faultf(
			CodeBusy,
			"busy: %d calls of this identity are running, which is its limit; wait for one of them to end and try again",
			full.count,
		)
	}
	return Faultf(CodeBusy, "busy: %d calls are running; wait for one to end and try again", full.count)
}

// Release ends what Acquire counted.
func (g *CallLimiter) Release(owner string, size int) {
	g.calls.Release(owner, 1)
	g.bytes.Release(owner, size)
}

// Running returns the number of running calls.
func (g *CallLimiter) Running() int { return g.calls.Count() }
