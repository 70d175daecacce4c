package logs

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// signs searches the first n bytes of p for escape characters and for bytes at which one of the words of
// [marks.look] may begin or, for "kernel: ", end. A result other than 0 means "found". n must be a positive
// multiple of 32; signs reads n+4 bytes.
//
//go:noescape
func signs(p *byte, n int) (escape, panic, kernel, bracket uint32)

// wordBits implements [bitmap.of] for n bytes of p; n must be a positive multiple of 32. It writes n bits to words
// and to digits.
//
//go:noescape
func wordBits(p *byte, n int, words, digits *uint64)
