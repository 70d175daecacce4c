package sandbox

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
)

// initProcess is the first process of a sandbox: it prepares the command's view, starts it and reaps its tree.
type initProcess struct {
	header
	control *os.File
	in      *bufio.Reader
	pid     int   // of the command
	mounts  []int // descriptors of detached mounts
	stdin   int   // of the command, with header.Input
	connect int   // the socket for the listener, with header.Connects
	scratch scratchUse

	childEnded int // descriptor of an event: a child of init has ended

	sharedByKey bool // System V shared memory has a bounded size
}

func (i *initProcess) report(r reply) {
	line, err := json.Marshal(r)
	if err == nil {
		_, _ = i.control.Write(append(line, '\n'))
	}
}

// Process is a running command.
type Process struct {
	cmd     *exec.Cmd
	control *os.File // the server's end; init ends when it is closed
	replies *bufio.Reader

	done chan struct{}
	end  struct {
		status Status
		err    error
	}
}

// header is what the server sends to init over the control socket.
type header struct {
	Spec
	Namespaces bool
	Input      bool       // a standard input is among the files
	Connects   bool       // a socket is among the files, behind it: for the listener of the filter
	Sources    []sourceID // one for each of Spec.Mounts
}

// sourceID says how init finds the source of a mount.
type sourceID struct {
	Detached int    // a detached mount: its number among those that are sent, from 1; 0: by path
	Device   uint64 // identity of the file at the path; 0: it does not exist
	Inode    uint64
	File     bool
	NotThere bool
}

// reply is what init reports: first that the command runs, then how it ended.
type reply struct {
	Started bool    `json:"started,omitempty"`
	Layer   string  `json:"layer,omitempty"` // the layer that failed
	Error   string  `json:"error,omitempty"`
	Missing bool    `json:"missing,omitempty"` // the program cannot be run
	End     *Status `json:"end,omitempty"`
}

// kind is what init must know before it starts.
type kind struct{ namespaces, net bool }
