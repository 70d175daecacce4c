//go:build !amd64

package runes

const haveVectors = false

// newlines is never called without vectors.
func newlines(_ *byte, _ int, _ *uint64) {}

// continuedBlock is never called without vectors.
func continuedBlock(_ *byte) int { return 0 }
