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

func (r *recorder) discard() {
	r.open = nil
	if r.recording != nil {
		_ = r.recording.Discard()
		r.recording = nil
	}
}
