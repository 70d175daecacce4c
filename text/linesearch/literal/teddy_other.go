//go:build !amd64

package literal

const haveTeddy = false

// teddyNext is never called without vectors: a separate search for each needle is faster.
func teddyNext(_ *byte, _ int, _ *nibbles) (i, lines int) { return -1, 0 }

// pairNext is never called without vectors.
func pairNext(_ *byte, _, _, _ int, _, _, _, _ byte) (i, lines int) { return -1, 0 }
