package funnel

// Spent is how many tokens the context of a session holds, as far as is known.
func (f *Funnel) Spent(who Session) int { return f.accounts.spent(who).Tokens }
