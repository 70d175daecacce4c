//go:build unix

package worker

import (
	"fmt"
	"os"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/system/child"
)

// controlSocket creates a worker's standard input: a socket, which passes open files too.
func controlSocket() (ours, theirs *os.File, err error) { return child.SocketPair() }

// sendJob sends a job's header and its files in one message.
func sendJob(to *os.File, head []byte, files []*os.File) error { return child.Send(to, head, files) }

// receiveJob receives a job in the worker. The error is io.EOF if the parent ended or has no job.
func receiveJob() (head []byte, files []*os.File, err error) {
	head = make([]byte, headSize)
	fds, err := child.Receive(0, head, maxFiles)
	if err != nil {
		return nil, nil, fmt.Errorf("no job came: %w", err)
	}
	for i, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "file "+strconv.Itoa(i)))
	}
	return head, files, nil
}
