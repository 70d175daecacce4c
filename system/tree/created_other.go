//go:build !linux

package tree

import (
	"errors"
	"os"
	"time"
)

// Created returns [errors.ErrUnsupported]: the time is not read on this system.
func Created(*os.File) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
