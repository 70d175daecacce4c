//go:build !amd64

package runes

const haveVectors = false

// newlines is not called where there are no vectors.
func newlines(_ *byte, _ int, _ *uint64) {}
