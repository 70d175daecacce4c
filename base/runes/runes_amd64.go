package runes

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// newlines is [Newlines] for n bytes from p. n must be a multiple of 64, and not 0.
//
//go:noescape
func newlines(p *byte, n int, at *uint64)

// continued returns how many bytes follow the first bytes of the valid runes that begin in the countBlock bytes from p.
// It reads three bytes more. The bytes before p do not matter.
//
//go:noescape
func continued(p *byte) int
