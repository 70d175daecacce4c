//go:build !amd64

package summary

const haveVectors = false

// signs is not called where there are no vectors.
func signs(_ *byte, _ int) (escape, panic, kernel, bracket uint32) { return 0, 0, 0, 0 }

// wordBits is not called where there are no vectors.
func wordBits(_ *byte, _ int, _, _ *uint64) {}
