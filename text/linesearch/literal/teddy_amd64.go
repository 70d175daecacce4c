package literal

import "golang.org/x/sys/cpu"

var haveTeddy = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT

// teddyNext is [nibbles.next] over the first n - n%32 positions of p; i is -1 if no position matches. It reads n+2
// bytes. lines is the number of newlines before position i, or in all positions read if i is -1.
//
//go:noescape
func teddyNext(p *byte, n int, t *nibbles) (i, lines int)
