package runes

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// count is [portable] over n bytes, a multiple of 32; high is not 0 where some of them are not ASCII.
//
//go:noescape
func count(p *byte, n int) (newlines, follow, high int)

// newlines is [Newlines] over the first n bytes of p, a multiple of 64 and not 0. It writes n bits.
//
//go:noescape
func newlines(p *byte, n int, at *uint64)
