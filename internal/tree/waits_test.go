//go:build !portable

package tree

// waits says that a directory swapped for a FIFO while it is opened would be waited for: os.Root opens directories
// so on systems whose way is the portable one, which have no FIFOs.
const waits = false
