package lines

import "golang.org/x/sys/cpu"

var haveTeddy = cpu.X86.HasAVX2

// teddyNext is [nibbles.next] over the first n places of p, of which it leaves out the last n%32; -1: none. It reads n+2 bytes.
//
//go:noescape
func teddyNext(p *byte, n int, t *nibbles) int

// pairNext is the first i under n with p[i] == x and p[i+gap] == y, but leaves out the last n%64; -1: none. It reads n+gap bytes.
//
//go:noescape
func pairNext(p *byte, n, gap int, x, y byte) int
