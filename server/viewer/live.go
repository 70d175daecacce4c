package viewer

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// state is a text that differs once any process has added calls or observations. All open pages share what one of them
// finds out.
type state struct {
	sync.Mutex
	at   time.Time
	text string
}

// stateNow returns the state, which is at most a second old.
func (v *Viewer) stateNow() string {
	s := &v.state
	s.Lock()
	defer s.Unlock()
	if now := time.Now(); now.Sub(s.at) > 900*time.Millisecond {
		s.at = now
		added, err := v.o.Store.ModTime()
		if calls, wrong := v.o.Trace.Changed(); err == nil && wrong == nil { // else it is tried again
			s.text = added.String() + calls
		}
	}
	return s.text
}

// live sends an event at once, and when calls or observations were added.
func (q *request) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for first, last := true, ""; ; {
		if now := q.stateNow(); first || now != last {
			first, last = false, now
			_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(w, "data: changed\n\n"); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-q.Viewer.ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
