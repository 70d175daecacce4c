package account

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/session/usage"
)

// Enter enters a report into an account that is not stored, by the rules of [Accounts.Report].
func (a *Account) Enter(u usage.Usage) {
	now := time.Now()
	if u.At.IsZero() || u.At.After(now) {
		u.At = now
	}
	a.report(u)
}
