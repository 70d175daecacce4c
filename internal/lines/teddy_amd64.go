package lines

import "golang.org/x/sys/cpu"

var haveTeddy = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT

// teddyNext is [nibbles.next] over the first n places of p, of which it leaves out the last n%32; i is -1: none. It reads n+2 bytes.
// lines are the newlines before place i, or in all it looked at.
//
//go:noescape
func teddyNext(p *byte, n int, t *nibbles) (i, lines int)

// pairNext is the first i under n with p[i+first]|foldX == x and p[i+second]|foldY == y, but leaves out the last n%64; -1: none.
// It reads n+first and n+second bytes. lines are the newlines before place i, or in all it looked at.
//
//go:noescape
func pairNext(p *byte, n, first, second int, x, y, foldX, foldY byte) (i, lines int)
