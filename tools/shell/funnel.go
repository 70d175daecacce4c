package shell

import (
	"bufio"
	"bytes"
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

// programPath returns the path of the program outside the sandbox; "" if commands have none.
func (s *Shell) programPath() string {
	path, err := os.Executable()
	if err != nil || s.options.Mode == sandbox.Off {
		return ""
	}
	path, _ = filepath.EvalSymlinks(path) // "" if it was removed
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

// Main runs the program funnel if that is the name under which this process was started; the process must then exit
// with code at once. Call it first in main: a script may start hundreds of them.
func Main(args []string) (ran bool, code int) {
	if len(args) == 0 || filepath.Base(args[0]) != programName {
		return false, 0
	}
	code, err := request(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "funnel:", err)
		return true, 1
	}
	return true, code
}

// request sends arguments to the server as one line of JSON, and prints the records that it replies.
func request(args []string) (code int, err error) {
	conn, err := sandbox.Dial()
	if err != nil {
		return 0, fmt.Errorf("it calls tools from a command of the tool run, and no server answers here: %w", err)
	}
	defer conn.Close() //nolint:errcheck // all was read
	if err := json.NewEncoder(conn).Encode(args); err != nil {
		return 0, err
	}
	var exit bytes.Buffer
	to := []io.Writer{toStdout: os.Stdout, toStderr: os.Stderr, isExit: &exit}
	err = readRecords(bufio.NewReader(conn), func(kind byte) io.Writer { return to[kind] })
	if err == nil && exit.Len() == 0 {
		err = fmt.Errorf("the call was ended")
	}
	if err != nil {
		return 0, err
	}
	return int(exit.Bytes()[0]), nil
}
