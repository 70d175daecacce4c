//go:build !linux

package worker

// machineMemory returns 0: the memory of this machine is unknown.
func machineMemory() int64 { return 0 }
