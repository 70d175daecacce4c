//go:build !(linux || darwin || windows)

package storefs

import (
	"math"
	"os"
)

// freeBytes is unknown on this system: only the quota limits the store.
func freeBytes(*os.File, string) (int64, error) { return math.MaxInt64, nil }
