//go:build !portable

package tree

import "syscall"

func changedOf(s *syscall.Stat_t) int64 { return s.Ctim.Nano() }
