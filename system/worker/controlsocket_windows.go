package worker

import (
	"errors"
	"io"
	"os"
)

// controlSocket creates a worker's standard input, a pipe.
func controlSocket() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

// sendJob sends a job's header. Open files cannot be passed on Windows.
func sendJob(to *os.File, head []byte, files []*os.File) error {
	if files != nil {
		return errors.New("files cannot be handed on on this system")
	}
	_, err := to.Write(head)
	return err
}

// receiveJob receives a job in the worker. The error is io.EOF if the parent ended or has no job.
func receiveJob() (head []byte, files []*os.File, err error) {
	head = make([]byte, headSize)
	_, err = io.ReadFull(os.Stdin, head)
	return head, nil, err
}
