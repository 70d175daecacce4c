//go:build linux

// Package shim is a command that runs another program and reports on file descriptor 3 its duration, peak memory and
// exit code: "NANOSECONDS BYTES EXITCODE". The kernel counts the memory of a parent at the fork as part of the child's
// peak, so the parent must be small: the shim is therefore a program of its own that allocates almost nothing.
//
// The program is given by its path.
package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

const report = 3

func main() {
	os.Exit(run())
}

func run() int {
	syscall.CloseOnExec(report)
	words := os.Args[1:]
	if len(words) == 0 {
		return 2
	}
	began := time.Now()
	pid, err := syscall.ForkExec(words[0], words, &syscall.ProcAttr{Env: syscall.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		_, _ = syscall.Write(2, []byte("shim: "+words[0]+": "+err.Error()+"\n"))
		return 2
	}
	var status syscall.WaitStatus
	var used syscall.Rusage
	for {
		if _, err = syscall.Wait4(pid, &status, 0, &used); err != syscall.EINTR {
			break
		}
	}
	took := time.Since(began)
	line := strconv.FormatInt(int64(took), 10) + " " + strconv.Itoa(int(used.Maxrss)<<10) + " " +
		strconv.Itoa(status.ExitStatus())
	if _, err := syscall.Write(report, []byte(line)); err != nil {
		return 2
	}
	return 0
}
