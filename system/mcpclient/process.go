package mcpclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Command is a program that serves MCP on its standard input and output.
type Command struct {
	Args []string // the program, and its arguments
	Dir  string   // "": the current one
	Env  []string // names of variables that it gets besides those of every server
	Set  []string // variables that it gets with these values, as NAME=VALUE
}

// interpreter matches programs that run a file: their first argument that is no option.
var interpreter = content.Pattern(`^(python[0-9.]*|node|bun|deno|ruby|perl|php|bash|sh|tsx|ts-node|Rscript)(\.exe)?$`)

// Place returns the directory of the command if the program, or the script that an interpreter runs, is a file there:
// elsewhere the same words start another server. Otherwise it returns "". Other words do not count: a server could make
// a file of such a name.
func (c Command) Place() string {
	dir, err := filepath.Abs(c.Dir)
	if err != nil || len(c.Args) == 0 {
		return ""
	}
	file := c.Args[0]
	if interpreter().MatchString(filepath.Base(file)) {
		at := slices.IndexFunc(c.Args[1:], func(word string) bool { return !strings.HasPrefix(word, "-") })
		if at < 0 {
			return ""
		}
		file = c.Args[1+at]
	} else if filepath.Base(file) == file { // it is looked up in PATH
		return ""
	}
	if fi, err := os.Stat(filepath.Join(dir, file)); filepath.IsAbs(file) || err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	return dir
}

// always are the variables that every server gets. A client puts the secrets of a server into our environment.
var always = []string{"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"}

// environ divides an environment into what a server gets and the names of the rest.
func (c Command) environ(all []string) (given, withheld []string) {
	set := func(name string) bool {
		return slices.ContainsFunc(c.Set, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if set(name) {
			continue
		}
		if slices.Contains(always, name) || strings.HasPrefix(name, "LC_") || slices.Contains(c.Env, name) {
			given = append(given, v)
		} else {
			withheld = append(withheld, name)
		}
	}
	return append(given, c.Set...), withheld
}

// Process is a running server. It ends with [Process.Close], and with this process.
type Process struct {
	*link
	stop func()
}

// grace is how long a server may take to end after its input has ended.
const grace = 2 * time.Second

// Start starts a command. What the server writes to standard error goes to the log.
func (c Command) Start(log *slog.Logger, handler Handler) (*Process, error) {
	program, err := exec.LookPath(c.Args[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	var pipes [3][2]*os.File // stdin, stdout, stderr: read and write ends
	var all []*os.File
	defer func() {
		for _, f := range all {
			_ = f.Close()
		}
	}()
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			return nil, err
		}
		all = append(all, pipes[i][0], pipes[i][1])
	}
	given, withheld := c.environ(os.Environ())
	if len(withheld) > 0 {
		log.Info("variables that a server does not get, because --env does not name them", "names", withheld)
	}
	pid, err := sandbox.Start(sandbox.Spec{
		Args: append([]string{program}, c.Args[1:]...), Dir: dir, Env: given, Mode: sandbox.Off, Stdin: pipes[0][0],
	}, pipes[1][1], pipes[2][1])
	if err != nil {
		return nil, err
	}
	in, out, errs := pipes[0][1], pipes[1][0], pipes[2][0]
	all = []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]} // of the command
	said := make(chan string, 1)
	go func() { said <- drain(errs, log) }()
	// It ends with standard output: the sandbox ends all that holds it open.
	p := &Process{link: newPipe(out, in, log, handler, func() error {
		select {
		case last := <-said:
			if last != "" {
				return fmt.Errorf("%w; the last line of its standard error: %s", ErrEnded, jsonrpc.Quoted(last))
			}
		case <-time.After(lastWords):
		}
		return ErrEnded
	})}
	p.stop = sync.OnceFunc(func() {
		_ = in.Close()
		select {
		case <-pid.Done():
		case <-time.After(grace):
		}
		pid.Kill()
		<-pid.Done()
		_ = out.Close()
		_ = errs.Close()
	})
	return p, nil
}

// Close ends the process and all that it started.
func (p *Process) Close() { p.stop() }

// drain logs the lines of standard error, cut to 400 bytes, and reads on whatever comes. It returns the last one.
func drain(r io.Reader, log *slog.Logger) (last string) {
	lines := bufio.NewReaderSize(r, 4<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if text := strings.TrimSpace(string(line)); text != "" {
			last = jsonrpc.Echo(text)
			log.Debug("server", "stderr", last)
		}
		if err != nil && err != bufio.ErrBufferFull { //nolint:errorlint // it is returned as it is
			return last
		}
	}
}

// lastWords is how long the end of standard error is waited for, once standard output has ended.
const lastWords = 100 * time.Millisecond

// newPipe returns a link over two streams; each message is a line. ended returns why the input has ended.
func newPipe(in io.Reader, out io.WriteCloser, log *slog.Logger, handler Handler, ended func() error) *link {
	l := newLink(log, handler)
	writing := make(chan struct{}, 1) // holds a token while a message is written
	l.transmit = func(_ context.Context, m message) error {
		select {
		case writing <- struct{}{}:
		case <-l.life.Done():
			return context.Cause(l.life)
		}
		defer func() { <-writing }()
		if out, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok {
			_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // a pipe has deadlines
		}
		if _, err := out.Write(append(m.text, '\n')); err != nil {
			why := ErrEnded // its pipe is broken
			if errors.Is(err, os.ErrDeadlineExceeded) {
				why = fmt.Errorf("the server has read nothing for %s", writeTime)
			}
			l.end(why)
			return context.Cause(l.life)
		}
		return nil
	}
	go l.guard(func() { l.read(jsonrpc.NewLineReader(in, maxFrame), ended) })
	return l
}

// writeTime is how long a server may take to read a message. One that reads nothing is ended.
const writeTime = 10 * time.Second

// maxSkipped is how much of a message that is too large is skipped, in bytes. Then the server is ended.
const maxSkipped = 4 << 30

// read reads messages until the stream ends.
func (l *link) read(lines *jsonrpc.LineReader, ended func() error) {
	failed := false
	lines.Long = func(prefix []byte, size int64) bool {
		if !failed {
			failed = true
			l.fail("", jsonrpc.FindID(prefix), fmt.Sprintf("the answer has over %d bytes, which are not read", maxFrame))
		}
		return size <= maxSkipped
	}
	for {
		line, err := lines.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			failed = false
		case err != nil:
			l.end(ended())
			return
		default:
			l.receive(line, "")
		}
	}
}
