//go:build !amd64

package lines

const haveTeddy = false

// teddyNext leaves all to [nibbles.next]: without vectors each needle by itself is faster, so that nobody asks.
func teddyNext(_ *byte, _ int, _ *nibbles) int { return -1 }
