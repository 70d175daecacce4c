//go:build !amd64

package secrets

const haveVectors = false

// gramsMask is not called where there are no vectors.
func gramsMask(_ *byte, _ int, _ *nibbles, _ *uint64) {}
