package shell

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// The program funnel, by which a command calls tools. It is the program of the server, under another name.
const (
	programName = "funnel"
	binDir      = "/run/mcp-funnel"
)

// Main runs the program funnel if that is the name under which this process was started; the process must then exit
// with code at once. Call it first in main: a script may start hundreds of them.
func Main(args []string) (ran bool, code int) {
	if len(args) == 0 || filepath.Base(args[0]) != programName {
		return false, 0
	}
	code, err := request(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "funnel:", err)
	}
	return true, code
}

// request sends arguments to the server as one line of JSON, and prints the records that it replies. The code is 1 after
// an error.
func request(args []string) (code int, err error) {
	conn, err := sandbox.Dial()
	if err != nil {
		return 1, fmt.Errorf("it calls tools from a command of the tool run, and no server answers here: %w", err)
	}
	var exit bytes.Buffer
	to := []io.Writer{toStdout: os.Stdout, toStderr: os.Stderr, isExit: &exit}
	if err = json.NewEncoder(conn).Encode(args); err == nil {
		err = readRecords(bufio.NewReader(conn), func(kind byte) io.Writer { return to[kind] })
	}
	if last, ended := exit.ReadByte(); err == nil && ended == nil {
		return int(last), nil
	}
	return 1, cmp.Or(err, errors.New("the call was ended"))
}
