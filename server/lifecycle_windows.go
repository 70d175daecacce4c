package server

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

func surviveBrokenPipes() {}

// parentGone says whether the process that was the parent has ended. Windows gives an orphan no new
// parent, and ids are used again: the process is held by a handle from the start.
func parentGone() func() bool {
	parent, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil {
		return func() bool { return false }
	}
	return func() bool {
		event, err := windows.WaitForSingleObject(parent, 0)
		return err == nil && event == windows.WAIT_OBJECT_0
	}
}

// outGone cannot be told without writing.
func outGone(*os.File) bool { return false }

// inputGone cannot be told without reading.
func inputGone(io.Reader) bool { return false }

// hasRoom cannot be told without writing.
func hasRoom(io.Writer) bool { return false }

// TakeStdio takes the process's input and output for the protocol, and for it alone: from here on
// whatever reads standard input finds its end, and whatever prints to standard output prints to
// standard error.
func TakeStdio() (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	in, out = os.Stdin, os.Stdout
	os.Stdin, os.Stdout = null, os.Stderr
	if err := windows.SetStdHandle(windows.STD_INPUT_HANDLE, windows.Handle(null.Fd())); err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(os.Stderr.Fd())); err != nil {
		return nil, nil, fmt.Errorf("take stdout: %w", err)
	}
	return in, out, nil
}
