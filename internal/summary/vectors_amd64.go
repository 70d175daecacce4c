package summary

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// signs says, of the first n bytes of p, a multiple of 32 and not 0, where there is an escape, and where one of the words of [marks.look] may begin or,
// of "kernel: ", end: not 0 is "somewhere". It reads n+4 bytes.
//
//go:noescape
func signs(p *byte, n int) (escape, panic, kernel, bracket uint32)

// wordBits is [bitmap.of] over n bytes of p, a multiple of 32 and not 0. It writes n bits to each.
//
//go:noescape
func wordBits(p *byte, n int, words, digits *uint64)
