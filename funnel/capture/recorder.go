package capture

import (
	"errors"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// ErrDefect is what a model sees of a panic. The log has its value and stack.
var ErrDefect = errors.New("broke off: a defect in the tool, not in the call; the server's log says more")

var errLate = errors.New("the tool asked for it too late")

// recorder starts the recording of an output, at most once.
type recorder struct {
	open      func() (*observations.Recording, error) // nil: nothing is recorded
	tried     bool                                    // open was called
	recording *observations.Recording                 // nil: none
	err       error                                   // why opening it failed
	cut       int64                                   // bytes of the output that never reached the writer
}

// start opens the recording. If the output has begun, start writes held, its beginning; tooLate reports that held is
// not all of it.
func (r *recorder) start(begun, tooLate bool, held []byte) {
	if r.tried || r.open == nil {
		return
	}
	r.tried = true
	if r.recording, r.err = r.open(); r.recording == nil || !begun {
		return
	}
	if tooLate {
		_ = r.recording.Discard()
		r.recording, r.err = nil, errLate
		return
	}
	r.write(held)
}

// write never fails: the recording counts what it cannot store.
func (r *recorder) write(b []byte) {
	if r.recording != nil {
		_, _ = r.recording.Write(b)
	}
}

// dropCut tells the recording how much of the output was cut. It is called when nothing more is written.
func (r *recorder) dropCut() {
	if r.recording != nil {
		r.recording.Drop(r.cut)
		r.cut = 0
	}
}

func (r *recorder) discard() {
	r.open = nil
	if r.recording != nil {
		_ = r.recording.Discard()
		r.recording = nil
	}
}
