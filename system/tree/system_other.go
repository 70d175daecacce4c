//go:build !linux

package tree

import (
	"errors"
	"os"
	"time"
)

// Created returns [errors.ErrUnsupported]: the time is not read on this system.
func Created(*os.File) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }

// mountedBelow would report mounts in dir. There is no cheap way to find them here, and these systems do not mount a
// directory twice.
func mountedBelow(string) bool { return false }
