//go:build !portable

package tree

// waits reports whether opening a directory that was swapped for a FIFO blocks. The portable implementation uses
// os.Root, which blocks, but its systems have no FIFOs.
const waits = false
