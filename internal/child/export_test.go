package child

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
