package stdio

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

func surviveBrokenPipes() {}

// awaitGone waits until the parent process has ended. It returns nil if stopped is closed. It keeps a handle from the
// start, because Windows gives an orphan no new parent and reuses process IDs. (Only writing would show that an output
// has no reader.)
func awaitGone(l Lifetime, stopped <-chan struct{}) error {
	parent, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil || !l.Parent {
		<-stopped
		return nil //nolint:nilerr // a parent that cannot be watched; the end of the input still ends this process
	}
	defer windows.CloseHandle(parent) //nolint:errcheck // nothing depends on it
	for {
		event, err := windows.WaitForSingleObject(parent, uint32(pollInterval/time.Millisecond))
		if err == nil && event == windows.WAIT_OBJECT_0 {
			return ErrParentGone
		}
		select {
		case <-stopped:
			return nil
		default:
		}
	}
}

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
