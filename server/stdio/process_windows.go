package stdio

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

func surviveBrokenPipes() {}

// parentGone returns a function that reports whether the parent process has ended. It keeps a handle from the start,
// because Windows gives an orphan no new parent and reuses process IDs.
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

// outGone returns false: on Windows only writing would show it.
func outGone(*os.File) bool { return false }

// inputGone returns false: on Windows only reading would show it.
func inputGone(io.Reader) bool { return false }

// hasRoom returns false: on Windows only writing would show it.
func hasRoom(io.Writer) bool { return false }

// Take returns standard input and output, which from then on only the protocol uses: os.Stdin is at its end, and
// os.Stdout is standard error.
func Take() (in, out *os.File, err error) {
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
