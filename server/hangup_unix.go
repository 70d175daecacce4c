//go:build unix && !linux

package server

// halfClosed: poll has no such event everywhere.
const halfClosed = 0
