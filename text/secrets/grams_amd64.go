package secrets

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// gramsMask tests n positions from p on with the tables t and sets in out the bit of each position at which a gram
// may start. n must be a multiple of 32, from 32 to candidateBytes. It reads n+4 bytes and writes n bits.
//
//go:noescape
func gramsMask(p *byte, n int, t *nibbles, out *uint64)

// knownMask clears the bits in may of positions whose four bytes are not in t. The bits are for positions from p on,
// 64 in each of the given number of words. It reads 4 bytes at each position whose bit is set.
//
//go:noescape
func knownMask(p *byte, words int, t *known, may *uint64)
