//go:build !amd64

package logs

const haveVectors = false

// signs is never called without vector instructions.
func signs(_ *byte, _ int) (escape, panic, kernel, bracket uint32) { return 0, 0, 0, 0 }

// wordBits is never called without vector instructions.
func wordBits(_ *byte, _ int, _, _ *uint64) {}
