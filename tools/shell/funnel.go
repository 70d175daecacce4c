package shell

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// The program funnel, by which a command calls tools. It is the program of the server, under another name.
const (
	programName = "funnel"
	binDir      = "/run/mcp-funnel"
)

// program returns the path of the program funnel outside the sandbox; "" if commands have none.
func (s *Shell) program() string {
	if s.options.Mode == sandbox.Off {
		return ""
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	return path
}

// withPath adds a directory to the front of PATH.
func withPath(env []string, dir string) []string {
	for i, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + dir + ":" + path
		}
	}
	return env
}

// Streams of a reply: each part of it begins with one of these and the length of what follows, in 4 bytes.
const (
	toStdout = 1
	toStderr = 2
	exitCode = 3 // with length 0: the length is the code; it is the last part
)

// maxPart is the length of a part of a reply.
const maxPart = 64 << 10

// request is what the program asks the server: one line of JSON.
type request struct {
	Args []string `json:"args"`
}

// Main runs the program funnel if that is the name under which this process was started; the process must then exit
// with code at once. Call it first in main: a script may start hundreds of them.
func Main(args []string) (ran bool, code int) {
	if len(args) == 0 || filepath.Base(args[0]) != programName {
		return false, 0
	}
	code, err := ask(args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "funnel:", err)
		return true, 1
	}
	return true, code
}

// ask sends a request and writes the reply.
func ask(args []string, stdout, stderr io.Writer) (code int, err error) {
	conn, err := sandbox.Dial()
	if err != nil {
		return 0, fmt.Errorf("no server answers here (%w): it calls tools from a command of the tool run only", err)
	}
	defer conn.Close() //nolint:errcheck // all was read
	line, err := json.Marshal(request{args})
	if err != nil {
		return 0, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	in := bufio.NewReaderSize(conn, maxPart)
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return 0, fmt.Errorf("the call was ended: %w", err)
		}
		n := binary.BigEndian.Uint32(head[1:])
		to := stdout
		switch head[0] {
		case exitCode:
			return int(n), nil
		case toStderr:
			to = stderr
		}
		if _, err := io.CopyN(to, in, int64(n)); err != nil {
			return 0, err
		}
	}
}

// replyStream writes one stream of a reply.
type replyStream struct {
	to     io.Writer
	stream byte
}

// Write implements [io.Writer].
func (p replyStream) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), maxPart)]
		head := binary.BigEndian.AppendUint32([]byte{p.stream}, uint32(len(part)))
		if _, err := p.to.Write(append(head, part...)); err != nil {
			return n, err
		}
		n, b = n+len(part), b[len(part):]
	}
	return n, nil
}

// writeExit ends a reply.
func writeExit(to io.Writer, code int) {
	_, _ = to.Write(binary.BigEndian.AppendUint32([]byte{exitCode}, uint32(code)))
}
