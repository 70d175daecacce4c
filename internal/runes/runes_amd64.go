package runes

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// newlines is [Newlines] over the first n bytes of p, a multiple of 64 and not 0. It writes n bits.
//
//go:noescape
func newlines(p *byte, n int, at *uint64)
