//go:build !amd64

package secrets

const haveVectors = false

// gramsNext is not called where there are no vectors.
func gramsNext(_ *byte, _ int, _ *nibbles) int { return -1 }

// base64Next is not called where there are no vectors.
func base64Next(_ *byte, _ int) int { return -1 }
