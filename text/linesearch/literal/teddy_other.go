//go:build !amd64

package literal

const haveTeddy = false

// teddyNext is never called without vectors: a separate search for each needle is faster.
func teddyNext(_ *byte, _ int, _ *nibbles) (i, lines int) { return -1, 0 }
