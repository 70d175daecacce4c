//go:build !amd64

package lines

const haveTeddy = false

// teddyNext is not called where there are no vectors: each needle by itself is faster.
func teddyNext(_ *byte, _ int, _ *nibbles) (i, lines int) { return -1, 0 }

// pairNext is not called where there are no vectors.
func pairNext(_ *byte, _, _, _ int, _, _, _, _ byte) (i, lines int) { return -1, 0 }
