package child

import (
	"errors"
	"io"
	"os"
)

// conduit is a worker's standard input.
func conduit() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

// send hands on a job's head. Open files cannot be given to a worker here.
func send(to *os.File, head []byte, files []*os.File) error {
	if files != nil {
		return errors.New("files cannot be handed on on this system")
	}
	_, err := to.Write(head)
	return err
}

// receive is the worker's end of send. io.EOF: the parent went, or has nothing to do.
func receive() (head []byte, files []*os.File, err error) {
	head = make([]byte, headSize)
	_, err = io.ReadFull(os.Stdin, head)
	return head, nil, err
}

// atHand reads what is in a pipe now. A pipe has no deadline here that could pass before.
func atHand(*os.File, []byte) int { return 0 }
