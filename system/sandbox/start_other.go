//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
)

// errNotHere is why no command is run on this system.
var errNotHere = errors.New("commands can be contained on Linux on amd64 and arm64 only")

// Layers reports that this system cannot contain commands.
func Layers() []Layer {
	return []Layer{{Name: "sandbox", Detail: errNotHere.Error(), Needs: Remedy("sandbox")}}
}

// MapsOwners says that no owners need to be mapped: no command is run on this system.
func MapsOwners(string) (needed bool, err error) { return false, nil }

// Process is a running command.
type Process struct{}

// Start refuses every command on this system.
func Start(Spec, *os.File, *os.File) (*Process, error) {
	return nil, &Unavailable{"sandbox", errNotHere}
}

// KeepSpare does nothing on this system.
func KeepSpare() (stop func()) { return func() {} }

// Done returns a channel that is never closed: there is no process on this system.
func (*Process) Done() <-chan struct{} { return nil }

// Wait returns an error: there is no process on this system.
func (*Process) Wait() (Status, error) { return Status{}, errNotHere }

// Kill does nothing.
func (*Process) Kill() {}

func runChild(string) int { return 1 }

// ExitSignal names no signal: no command is run on this system.
func ExitSignal(int) string { return "" }

// Dial fails: no command is run on this system.
func Dial() (*os.File, error) { return nil, errNotHere }
