package shell

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

const (
	maxCalls       = 8                // tools that one command calls at the same time; further calls wait
	maxHeld        = 1 << 20          // bytes of a result that are held in memory; a longer one goes to a file
	requestTimeout = 10 * time.Second // a process that connects must send its request within this time
	codeUsage      = 2                // exit code of a request that cannot be a call
)

// calls serves the program funnel to the processes of one command: each of its calls is a part of the call of run that
// follows the command at that time, has its identity and its roots, and ends with it.
type calls struct {
	options *Options
	free    chan struct{} // a place for each of maxCalls
	held    atomic.Int64  // bytes of results that no process has read yet

	mu      sync.Mutex
	now     *follower     // nil: no call follows the command
	changed chan struct{} // closed when now is set
}

// follower is a call of run that follows a command.
type follower struct {
	tools.Caller
	ctx context.Context
}

var (
	errUnfollowed = errors.New("the call of run has answered meanwhile")
	errDisconnect = errors.New("the process has ended")
	errTooLong    = errors.New("too long")
)

func newCalls(o *Options) *calls {
	return &calls{options: o, free: make(chan struct{}, maxCalls), changed: make(chan struct{})}
}

// follow has a call of run call the tools for the command until the returned function is called. It does nothing if c is
// nil.
func (c *calls) follow(ctx context.Context, caller tools.Caller) (stop func()) {
	if c == nil || caller == nil {
		return func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.now = &follower{caller, ctx}
	close(c.changed)
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.now, c.changed = nil, make(chan struct{})
		c.mu.Unlock()
		end(errUnfollowed)
	}
}

// follower returns the call that follows the command, and waits for one if there is none.
func (c *calls) follower(ctx context.Context) (*follower, error) {
	for {
		c.mu.Lock()
		now, changed := c.now, c.changed
		c.mu.Unlock()
		if now != nil {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// serve answers one process. It is a [sandbox.Spec] Connect.
func (c *calls) serve(conn *os.File) {
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	in := bufio.NewReader(io.LimitReader(conn, 8*maxCommand)) // JSON may write a byte as \u0000
	line, err := in.ReadBytes('\n')
	var r request
	if err != nil || json.Unmarshal(line, &r) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		end(errDisconnect)
	}()
	writeExit(conn, c.answer(ctx, r.Args, replyStream{conn, toStdout}, replyStream{conn, toStderr}))
}

// answer answers a request, and returns the exit code.
func (c *calls) answer(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fail := func(code int, err error) int {
		_, _ = fmt.Fprintln(stderr, "funnel:", content.Visible(err.Error(), false))
		return code
	}
	takes := func(flags ...string) bool {
		before := len(args)
		args = slices.DeleteFunc(args, func(a string) bool { return slices.Contains(flags, a) })
		return len(args) < before
	}
	help, shown := takes("--help", "-h"), takes("--receipt")
	now, err := c.follower(ctx)
	if err != nil {
		return fail(1, err)
	}
	all, err := now.Tools(now.ctx)
	if err != nil {
		return fail(1, err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t tools.Tool) bool { return t.Calls })
	if len(args) == 0 {
		_, _ = io.WriteString(stdout, c.overview(all))
		return 0
	}
	at := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == args[0] })
	switch {
	case strings.HasPrefix(args[0], "-"):
		return fail(codeUsage, fmt.Errorf("unknown flag %.60s; there are --receipt and --help", args[0]))
	case at < 0 && args[0] == "run":
		return fail(codeUsage, errors.New("run is the call that this command is a part of: write the command itself"))
	case at < 0:
		return fail(codeUsage, fmt.Errorf("no tool %.60q; funnel --help lists them", args[0]))
	case help:
		_, _ = io.WriteString(stdout, describe(all[at]))
		return 0
	case !c.allows(all[at]):
		return fail(1, fmt.Errorf("%s may change something, and commands may not call it: ask the operator for --run-tools %[1]s",
			args[0]))
	}
	raw, err := words.Parse(all[at], args[1:])
	if err != nil {
		return fail(codeUsage, err)
	}
	result, called, err := c.call(ctx, all[at], raw, shown)
	defer result.close()
	if err != nil {
		return fail(1, err)
	}
	to := stdout
	if called.Failed && all[at].Listing != nil { // it is the error of an upstream server
		to = stderr
	}
	if err := result.copyTo(to); err != nil {
		return fail(1, err)
	}
	if called.Notes != "" {
		_, _ = fmt.Fprintln(stderr, "funnel:", called.Notes)
	}
	switch check := all[at].Check; {
	case !called.Failed:
		return 0
	case check != nil && check(raw) != nil:
		return codeUsage
	}
	return 1
}

// allows reports whether a command may call a tool.
func (c *calls) allows(t tools.Tool) bool {
	return !t.Calls && (t.Effect == tools.ReadOnly || slices.Contains(c.options.Tools, t.Name))
}

// call calls a tool, and repeats a call that only reads if the call of run that it was a part of has answered: the next
// one continues with the command.
func (c *calls) call(
	ctx context.Context, t tools.Tool, args json.RawMessage, shown bool,
) (*result, tools.Called, error) {
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return nil, tools.Called{}, context.Cause(ctx)
	}
	for {
		now, err := c.follower(ctx)
		if err != nil {
			return nil, tools.Called{}, err
		}
		within, end := context.WithCancelCause(now.ctx)
		detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
		r := &result{calls: c, end: end}
		called, err := now.Call(within, t, args, shown, r)
		detach()
		why := context.Cause(within)
		end(nil)
		switch {
		case errors.Is(why, errTooLong):
			err = fmt.Errorf("the result of %s is over %s, the limit of a command (--max-observation): ask for less",
				t.Name, sizeText(c.options.Output))
		case why == nil && err == nil:
			if t.Listing != nil {
				r.endLine()
			}
			return r, called, nil
		case errors.Is(why, errUnfollowed) && t.Effect == tools.ReadOnly:
			r.close()
			continue
		}
		r.close()
		return nil, called, cmp.Or(err, why)
	}
}

// result is the output of one call, until the process has read it: a call must not wait for a slow reader.
type result struct {
	calls *calls
	end   context.CancelCauseFunc
	mem   bytes.Buffer
	file  *os.File // what is over maxHeld; nil: nothing is
	size  int64
	last  byte
	err   error
}

// Write implements [io.Writer]. A result that is too long ends its call.
func (r *result) Write(b []byte) (int, error) {
	if r.err != nil || len(b) == 0 {
		return len(b), r.err
	}
	r.size += int64(len(b))
	if r.calls.held.Add(int64(len(b))) > r.calls.options.Output {
		r.err = errTooLong
	} else if r.last = b[len(b)-1]; r.file == nil && r.mem.Len()+len(b) <= maxHeld {
		r.mem.Write(b)
	} else if r.err = r.open(); r.err == nil {
		_, r.err = r.file.Write(b)
	}
	if r.err != nil {
		r.end(r.err)
	}
	return len(b), r.err
}

// open makes the file, unless there is one; it has no name and ends with the server.
func (r *result) open() (err error) {
	if r.file != nil {
		return nil
	}
	if r.file, err = os.CreateTemp(r.calls.options.Dir, "funnel-*.spool"); err == nil {
		_ = os.Remove(r.file.Name())
	}
	return err
}

// endLine ends the last line.
func (r *result) endLine() {
	if r.size > 0 && r.last != '\n' {
		_, _ = r.Write([]byte{'\n'})
	}
}

func (r *result) copyTo(w io.Writer) error {
	if _, err := w.Write(r.mem.Bytes()); err != nil || r.file == nil {
		return err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyBuffer(w, struct{ io.Reader }{r.file}, make([]byte, maxPart))
	return err
}

// close deletes the result. It does nothing if r is nil.
func (r *result) close() {
	if r == nil {
		return
	}
	r.calls.held.Add(-r.size)
	if r.file != nil {
		_ = r.file.Close()
	}
}

// overview lists the tools that a command may call, one a line.
func (c *calls) overview(all []tools.Tool) string {
	var b strings.Builder
	for _, t := range all {
		if c.allows(t) {
			about, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
			fmt.Fprintf(&b, "%-10s %s\n", t.Name, content.Visible(content.ClipBytes(about, 160), false))
		}
	}
	b.WriteString("\nfunnel TOOL KEY=VALUE… prints the whole result; --receipt what a model would see; TOOL --help its arguments.\n")
	return b.String()
}

// describe describes a tool and its arguments.
func describe(t tools.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Name, t.Description)
	schema := words.SchemaOf(t)
	for _, name := range schema.Names {
		p, required := schema.Properties[name], ""
		if slices.Contains(schema.Required, name) {
			required = " (required)"
		}
		fmt.Fprintf(&b, "  %s%s: %s%s\n", name, required, cmp.Or(t.Help[name], p.Description, p.Type), p.Values())
	}
	return content.Visible(b.String(), false)
}
