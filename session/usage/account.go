package usage

import (
	"cmp"
	"slices"
	"time"
)

// Account holds what is known of the context of one session: numbers only, the trace has the history. The zero value
// has no report and nothing shown.
type Account struct {
	Report  *Usage    `json:"report,omitempty"` // the last one; nil: unknown
	Shown   int       `json:"shown"`            // tokens shown since the report
	Notices int       `json:"notices"`          // notices shown since the last reset
	Resets  int       `json:"resets"`           // compactions and clears seen
	Updated time.Time `json:"updated,omitzero"`

	// Pointers is how many outputs were replaced by a receipt in this session, for the status line.
	Pointers int `json:"pointers,omitempty"`

	// Recent are the last outputs that Shown counts. A report can arrive after an output that its prompt did not have yet:
	// they say how much of Shown stays.
	Recent  []Output  `json:"recent,omitempty"`
	Peak    *Peak     `json:"peak,omitempty"`    // kept over compactions: it says how large the window is at least
	ResetAt time.Time `json:"reset_at,omitzero"` // reports made before are ignored
}

// Peak is the largest prompt that was reported of a model.
type Peak struct {
	Model  string `json:"model,omitempty"` // "" if unknown
	Tokens int    `json:"tokens"`
}

// Output is the size of one shown output.
type Output struct {
	At     time.Time `json:"at"`
	Tokens int       `json:"tokens"`
}

// maxRecent bounds Recent. If there are more, the oldest two become one with the later time.
const maxRecent = 64

// Show adds an output that is shown at a time.
func (a *Account) Show(tokens int, at time.Time) {
	if tokens <= 0 {
		return
	}
	a.Shown += tokens
	a.Recent = append(a.Recent, Output{at.UTC(), tokens})
	if len(a.Recent) > maxRecent {
		a.Recent[1].Tokens += a.Recent[0].Tokens
		a.Recent = slices.Delete(a.Recent, 0, 1)
	}
}

// Enter enters a report by these rules: a report older than the last one, or than the last reset, is ignored; the same
// figures in the same turn, or in an unknown turn, are a repetition, which resets nothing; figures of another turn are
// taken as they are, also when they are smaller. Tokens shown after the report was made still count. A report without a
// time counts as made now; so does one that is ahead, because all later reports would look old.
func (a *Account) Enter(u Usage, now time.Time) {
	a.distrust(now)
	if u.At.IsZero() || u.At.After(now) {
		u.At = now
	}
	u.At = u.At.UTC()
	if u.At.Before(a.ResetAt) {
		return
	}
	if last := a.Report; last != nil {
		if u.At.Before(last.At) {
			return
		}
		if repeats(*last, u) {
			learn(last, u)
			return
		}
		learn(&u, *last)
	}
	a.Report = &u
	if a.Peak == nil || a.Peak.Model != u.Model && a.Peak.Model != "" && u.Model != "" {
		a.Peak = &Peak{Model: u.Model}
	}
	a.Peak.Tokens = max(a.Peak.Tokens, u.PromptTokens)
	a.Recent = slices.DeleteFunc(a.Recent, func(o Output) bool { return !o.At.After(u.At) })
	a.Shown = 0
	for _, o := range a.Recent {
		a.Shown += o.Tokens
	}
}

// distrust removes times in the future. The clock was set back: until it reaches them again, every report would look
// old.
func (a *Account) distrust(now time.Time) {
	if a.ResetAt.After(now) {
		a.ResetAt = time.Time{}
	}
	if a.Report != nil && a.Report.At.After(now) {
		a.Report.At = time.Time{}
	}
	for i := range a.Recent {
		if a.Recent[i].At.After(now) {
			a.Recent[i].At = now
		}
	}
}

// repeats reports whether two reports are of the same request to the model. A figure or turn that one source does not
// know does not make a difference: a status line knows no turn, and a session file no window.
func repeats(last, u Usage) bool {
	same := func(a, b int) bool { return a == b || a == 0 || b == 0 }
	return last.PromptTokens == u.PromptTokens &&
		same(last.ResponseTokensReserved, u.ResponseTokensReserved) && same(last.Window, u.Window) &&
		(last.Turn == u.Turn || last.Turn == "" || u.Turn == "")
}

// learn fills what u does not know from another report of the same session.
func learn(u *Usage, other Usage) {
	u.Window, u.Model = cmp.Or(u.Window, other.Window), cmp.Or(u.Model, other.Model)
	u.ResponseTokensReserved = cmp.Or(u.ResponseTokensReserved, other.ResponseTokensReserved)
	if u.Turn == "" && u.PromptTokens == other.PromptTokens {
		u.Turn = other.Turn
	}
}

// reset forgets what was reported and shown. A client may announce one compaction by several hooks: within a minute,
// and without a report in between, they count as one.
func (a *Account) reset(at time.Time) {
	again := a.Report == nil && !a.ResetAt.IsZero() && at.Sub(a.ResetAt).Abs() < time.Minute
	resets := a.Resets
	if !again {
		resets++
	}
	*a = Account{Resets: resets, Pointers: a.Pointers, Updated: a.Updated, ResetAt: at.UTC(), Peak: a.Peak}
}
