//go:build amd64 || arm64

package sandbox

import "os"

// StartWithoutNamespaces is [Start] on a machine that refuses namespaces.
func StartWithoutNamespaces(s Spec, stdout, stderr *os.File) (*Process, error) {
	return start(s, stdout, stderr, false)
}

// SparePID returns the process that is kept ready; 0 if there is none.
func SparePID() int {
	p, ok, _ := spares.Peek()
	if !ok {
		return 0
	}
	return p.cmd.Process.Pid
}
