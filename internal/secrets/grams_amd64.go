package secrets

import "golang.org/x/sys/cpu"

var haveVectors = cpu.X86.HasAVX2

// gramsNext is [nibbles.next] over the first n places of p, of which it leaves out the last n%16; −1: none. It reads n+3 bytes.
//
//go:noescape
func gramsNext(p *byte, n int, t *nibbles) int

// base64Next is [nextStep] over the first n bytes of p; −1: none. It reads n bytes.
//
//go:noescape
func base64Next(p *byte, n int) int
