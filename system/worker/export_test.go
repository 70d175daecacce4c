package worker

// Waiting returns the pid of the spare worker, 0 if there is none and none is being started; ok is false while one is
// being started.
func Waiting() (pid int, ok bool) {
	p, waits, starting := spares.Peek()
	if waits {
		pid = p.cmd.Process.Pid
	}
	return pid, !starting
}

// Slots returns how many jobs run at once, without the slot for small jobs.
func Slots() int { return cap(workerSlots) }
