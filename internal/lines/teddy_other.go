//go:build !amd64

package lines

const haveTeddy = false

// teddyNext leaves all to [nibbles.next]: without vectors each needle by itself is faster, so that nobody asks.
func teddyNext(_ *byte, _ int, _ *nibbles) (i, lines int) { return -1, 0 }

// pairNext leaves all to [pair.plain], like teddyNext.
func pairNext(_ *byte, _, _, _ int, _, _, _, _ byte) (i, lines int) { return -1, 0 }
