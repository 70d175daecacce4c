//go:build amd64 || arm64

package sandbox

import "os"

// StartWithoutNamespaces is [Start] on a machine that refuses namespaces.
func StartWithoutNamespaces(s Spec, stdout, stderr *os.File) (*Process, error) {
	return start(s, stdout, stderr, false)
}

// SparePID returns the process that is kept ready; 0 if there is none.
func SparePID() int {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	if spares.init == nil {
		return 0
	}
	return spares.init.cmd.Process.Pid
}
