//go:build !amd64

package runes

const haveVectors = false

// count is not called where there are no vectors.
func count(_ *byte, _ int) (newlines, follow, high int) { return 0, 0, 0 }

// newlines is not called where there are no vectors.
func newlines(_ *byte, _ int, _ *uint64) {}
