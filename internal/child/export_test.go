package child

import "time"

// Waiting is the process that waits for the next job, 0 where there is none and none is being started; ok is false
// while one is.
func Waiting() (pid int, ok bool) {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	if waiting.p != nil {
		pid = waiting.p.cmd.Process.Pid
	}
	return pid, !waiting.starting
}

// WaitLess has the process that waits for the next job be let go after so long from now.
func WaitLess(idle time.Duration) {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	if waiting.p != nil {
		waiting.end.Reset(idle)
	}
}
