//go:build unix && !linux

package stdio

import (
	"errors"

	"golang.org/x/sys/unix"
)

// dupFD makes descriptor to a duplicate of from.
func dupFD(from, to int) error { return unix.Dup2(from, to) }

// pollRDHup is 0: not every Unix has this event.
const pollRDHup = 0

// processFD fails: these systems have no descriptor of a process.
func processFD(int) (int, error) { return -1, errors.ErrUnsupported }
