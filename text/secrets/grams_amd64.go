package secrets

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// gramsMask tests n positions from p on with the tables t and sets in out the bit of each position at which a gram
// may start. n must be a multiple of 32, from 32 to candidateBytes. It reads n+4 bytes and writes n bits.
//
//go:noescape
func gramsMask(p *byte, n int, t *nibbles, out *uint64)
