//go:build !amd64

package runes

const haveVectors = false

// newlines is never called without vectors.
func newlines(_ *byte, _ int, _ *uint64) {}

// continued is never called without vectors.
func continued(_ *byte) int { return 0 }
