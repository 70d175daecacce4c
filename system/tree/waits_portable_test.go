//go:build portable

package tree

const waits = true
