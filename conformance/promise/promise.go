// Package promise holds the safety promises by name, and collects from the tests how each was proved.
//
// It proves nothing itself: the proofs stand in the packages they are about, as tests called
// TestS12…, each with a control. It is imported from tests only, and by the command that writes
// docs/SAFETY.md (page/).
package promise

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// All are the promises by number.
var All = map[string]string{
	"S1":  "tools never read, list, stat or change anything outside the roots",
	"S2":  "… even if the tree changes meanwhile",
	"S3":  "… on any released build",
	"S4":  "special files never hang or flood",
	"S5":  "no call takes the server process 256 MiB over idle; a worker has its own cap",
	"S6":  "no input kills the server",
	"S7":  "every call ends by its deadline + 0.5 s",
	"S8":  "cancel stops the work",
	"S9":  "no process outlives its call",
	"S10": "the server ends when the client goes, and never from idling",
	"S11": "stdout carries only JSON-RPC",
	"S12": "a receipt means the whole observation is readable and intact",
	"S13": "a failing disk never yields a false receipt",
	"S14": "the store never exceeds its quota or the free-space floor",
	"S15": "clean-up never removes what is in use, fresh, pinned, or not ours",
	"S16": "observations are private",
	"S18": "no web page can drive it",
	"S19": "sessions cannot be guessed or exhausted",
	"S20": "malformed protocol never stops service",
	"S21": "text shown has no hidden or terminal-active characters; stored bytes are exact",
	"S22": "content cannot imitate a receipt or a server message",
	"S23": "known secret formats are masked in what is shown (best effort)",
	"S24": "every answer fits its budget, errors included",
	"S25": "an answer is right or says that it is not complete",
	"S26": "the agent cannot widen its own rights",
	"S31": "it runs for days",
	"S32": "known holes are absent",
}

// Proof is what one test saw of one promise.
type Proof struct {
	Promise  string `json:"promise"`
	Test     string `json:"test"`
	Cases    int    `json:"cases"`
	Failures int    `json:"failures"`
	// Control is how many failures the same test body found with the guarding part taken out. A proof
	// whose control finds none proves nothing.
	Control int    `json:"control"`
	Figures string `json:"figures,omitempty"` // what else was measured: "p99 31 ms"
	// Unchecked is what no run could look at here, and why, as what only a network has: the promise is held but for it,
	// which is said wherever it is said that it is held. What a run left out by itself is skipped, and holds the promise
	// in part only.
	Unchecked string `json:"unchecked,omitempty"`
}

// Full says that promises are to be proved at full size (make safety), not at the modest one of every run.
func Full() bool { return os.Getenv("SAFETY") == "full" }

// OrdinaryRun skips a test under -short, which is how the tests run with the race detector: it would make minutes of
// what has no goroutine of its own, or none that other tests do not have.
func OrdinaryRun(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("tried by the run without -short")
	}
}

// WithoutRace skips a test under the race detector, for what has no goroutine and takes it long.
func WithoutRace(t testing.TB) {
	t.Helper()
	if UnderRace {
		t.Skip("it has no goroutine: tried by the run without the race detector")
	}
}

// Size is modest in every run, full under make safety.
func Size[T any](modest, full T) T {
	if Full() {
		return full
	}
	return modest
}

// Kept records a proof, and fails the test where it is none: nothing was tried, something failed, or
// the control found nothing. Where SAFETY_PROOFS names a file, the proof is appended to it, a line of JSON.
func Kept(t testing.TB, p Proof) {
	t.Helper()
	p.Test = t.Name()
	if All[p.Promise] == "" {
		t.Fatalf("there is no promise %q", p.Promise)
	}
	t.Logf("%s: %d cases, %d failures, control %d; %s", p.Promise, p.Cases, p.Failures, p.Control, p.Figures)
	switch {
	case p.Cases == 0:
		t.Errorf("%s: no case was tried", p.Promise)
	case p.Failures > 0:
		t.Errorf("%s: %d of %d cases failed", p.Promise, p.Failures, p.Cases)
	case p.Control == 0:
		t.Errorf("%s: the control did not fail", p.Promise)
	}
	if name := os.Getenv("SAFETY_PROOFS"); name != "" {
		if err := write(name, p); err != nil {
			t.Error(err)
		}
	}
}

func write(name string, p Proof) error {
	line, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode proof: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // one write: several test processes append
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
