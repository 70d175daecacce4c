// Package promise lists the safety promises, and records the proofs that tests give of them.
//
// Each package proves its own promises, by tests named TestS12… after the promise, each with a control. It is imported
// by tests only, and by the command that writes docs/SAFETY.md (page/).
package promise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
)

// All maps the ID of each promise to its text.
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
	"S17": "faults of Postgres or S3 yield no false receipt, no wrong bytes, and lose nothing that was acknowledged",
	"S18": "no web page can drive it",
	"S19": "sessions cannot be guessed or exhausted",
	"S20": "malformed protocol never stops service",
	"S21": "text shown has no hidden or terminal-active characters; stored bytes are exact",
	"S22": "content cannot imitate a receipt or a server message",
	"S23": "known secret formats are masked in what is shown (best effort)",
	"S24": "every answer fits its budget, errors included",
	"S25": "an answer is right or says that it is not complete",
	"S26": "the agent cannot widen its own rights",
	"S27": "contained commands cannot touch what is outside, or the network",
	"S28": "upstreams get no secret and no more than granted",
	"S29": "a changed upstream tool is held back",
	"S30": "a sick upstream harms only its own calls",
	"S31": "it runs for days",
	"S32": "known holes are absent",
	"S33": "of a client's session file, only numbers and ids of the last 4 MiB are read, and only if it is the user's own file",
	"S34": "files are created, changed and removed inside the directories that may be written only",
	"S35": "a change of a file is whole or not made, no other one is lost by it, and it can be undone",
	"S36": "a command calls tools as the caller of run alone: none that may change something unasked, and nobody else calls",
}

// Proof is the result of one test of one promise.
type Proof struct {
	Promise  string `json:"promise"`
	Test     string `json:"test"`
	Cases    int    `json:"cases"`
	Failures int    `json:"failures"`
	// Control is the number of failures that the same test finds in a weakened product. A test whose control finds none
	// proves nothing.
	Control int    `json:"control"`
	Figures string `json:"figures,omitempty"` // further measurements: "p99 31 ms"
	// Unchecked names a check that was impossible on this machine, and the cause (no network): docs/SAFETY.md then says
	// that the promise is held but for that. A test that leaves out a check by its own choice is skipped instead, and the
	// promise is then held in part.
	Unchecked string `json:"unchecked,omitempty"`
}

// Full reports whether promises must be proved at full size (make safety), not at the modest size of every test run.
func Full() bool { return os.Getenv("SAFETY") == "full" }

// OrdinaryRun skips a test under -short, the mode of the run with the race detector. It is for tests that start no
// goroutines, or only those that other tests start too, and would take minutes under the detector.
func OrdinaryRun(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("tried by the run without -short")
	}
}

// WithoutRace skips a test under the race detector. It is for slow tests that start no goroutines.
func WithoutRace(t testing.TB) {
	t.Helper()
	if UnderRace {
		t.Skip("it has no goroutine: tried by the run without the race detector")
	}
}

// Size returns full under make safety, else modest.
func Size[T any](modest, full T) T {
	if Full() {
		return full
	}
	return modest
}

// Kept records a proof. It fails the test if there was no case, if a case failed, or if the control found no failure.
// If SAFETY_PROOFS names a file, the proof is appended to it as a line of JSON.
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

// Keptf is [Kept] with figures in a format.
func Keptf(t testing.TB, p Proof, format string, args ...any) {
	t.Helper()
	p.Figures = fmt.Sprintf(format, args...)
	Kept(t, p)
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
	return errors.Join(err, f.Close())
}
