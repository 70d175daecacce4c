package worker

import "time"

// Waiting returns the pid of the spare worker, 0 if there is none and none is being started; ok is false while one is
// being started.
func Waiting() (pid int, ok bool) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if spare.p != nil {
		pid = spare.p.cmd.Process.Pid
	}
	return pid, !spare.starting
}

// WaitLess ends the spare worker after this time from now.
func WaitLess(idle time.Duration) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if spare.p != nil {
		spare.end.Reset(idle)
	}
}

// Slots returns how many jobs run at once, without the slot for small jobs.
func Slots() int { return cap(workerSlots) }
