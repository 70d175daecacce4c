package secrets

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// gramsMask is [nibbles.mask] over n places from p on, a multiple of 32, not 0 and at most aheadBytes. It reads n+4 bytes and writes n bits.
//
//go:noescape
func gramsMask(p *byte, n int, t *nibbles, out *uint64)

// knownMask leaves in may, of so many words of 64 places each from p on, the bits of the places at which a gram may stand. left is not 0
// where one is left. It reads 4 bytes at each place.
//
//go:noescape
func knownMask(p *byte, words int, t *known, may *uint64) (left uint64)

// base64Next is [nextStep] over the first n bytes of p; −1: none. It reads n bytes.
//
//go:noescape
func base64Next(p *byte, n int) int
