package viewer

import (
	"io"
	"net/http"
	"sync"
	"time"
)

const liveEvery = time.Second

// watcher looks once a second whether any process has added calls or observations, for all open pages; while none is
// open it does not.
type watcher struct {
	mu      sync.Mutex
	pages   int
	running bool
	changed chan struct{} // closed when something changed, and replaced
}

// open counts a page that is open, and begins to look for it.
func (v *Viewer) openLive(by int) <-chan struct{} {
	w := &v.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pages += by; w.pages > 0 && !w.running {
		w.running, w.changed = true, make(chan struct{})
		v.background.Go(func() { v.watch(v.state()) })
	}
	return w.changed
}

// state is another text once something was added.
func (v *Viewer) state() string {
	at, err := v.o.Store.ModTime()
	calls, wrong := v.o.Trace.Changed()
	if err != nil || wrong != nil { // it is looked at again after a second
		return ""
	}
	return at.String() + calls
}

func (v *Viewer) watch(last string) {
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-time.After(liveEvery):
		}
		now, w := v.state(), &v.watcher
		w.mu.Lock()
		if w.pages == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		if now != last && now != "" {
			last = now
			close(w.changed)
			w.changed = make(chan struct{})
		}
		w.mu.Unlock()
	}
}

// live sends an event when it is opened, and one when calls or observations were added.
func (q *request) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control, changed := http.NewResponseController(w), q.openLive(1)
	defer q.openLive(-1)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(w, "data: changed\n\n"); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-q.Viewer.ctx.Done():
			return
		case <-changed:
			changed = q.openLive(0)
		}
	}
}
