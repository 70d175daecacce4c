package shell

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

const (
	maxCalls       = 8                // tools that one command calls at the same time; further calls wait
	requestTimeout = 10 * time.Second // a process that connects must send its request within this time
	codeUsage      = 2                // exit code of a request that cannot be a call
)

// calls serves the program funnel to the processes of one command: each of its calls is a part of the call of run that
// follows the command at that time, has its identity and its roots, and ends with it.
type calls struct {
	options *Options
	free    chan struct{}  // a place for each of maxCalls
	held    atomic.Int64   // bytes of results that no process has read yet
	now     chan *follower // holds the call of run that follows the command, if one does
}

// follower is a call of run that follows a command.
type follower struct {
	*tools.Caller
	ctx context.Context
}

var errUnfollowed = errors.New("the call of run has answered meanwhile")

// follow has a call of run call the tools for the command until the returned function is called. It does nothing if c is
// nil.
func (c *calls) follow(ctx context.Context, caller *tools.Caller) (stop func()) {
	if c == nil || caller == nil {
		return func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	c.now <- &follower{caller, ctx}
	return func() {
		<-c.now
		end(errUnfollowed)
	}
}

// follower returns the call that follows the command, and waits for one if there is none.
func (c *calls) follower(ctx context.Context) (*follower, error) {
	select {
	case f := <-c.now:
		c.now <- f
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve answers one process. It is a [sandbox.Spec] Connect.
func (c *calls) serve(conn *os.File) {
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	in := bufio.NewReader(io.LimitReader(conn, 8*maxCommand)) // JSON may write a byte as \u0000
	line, err := in.ReadBytes('\n')
	var args []string
	if err != nil || json.Unmarshal(line, &args) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		end()
	}()
	code, err := c.answer(ctx, args, conn)
	if err != nil {
		_, _ = records{conn, toStderr}.Write([]byte("funnel: " + content.Visible(err.Error(), false) + "\n"))
	}
	_, _ = records{conn, isExit}.Write([]byte{code})
}

// answer answers the arguments of the program, and returns its exit code.
func (c *calls) answer(ctx context.Context, args []string, conn *os.File) (code byte, err error) {
	help, shown := slices.Contains(args, "--help"), slices.Contains(args, "--receipt")
	args = slices.DeleteFunc(args, func(a string) bool { return a == "--help" || a == "--receipt" })
	now, err := c.follower(ctx)
	if err != nil {
		return 1, err
	}
	all, err := now.Tools(now.ctx)
	if err != nil {
		return 1, err
	}
	if len(args) == 0 {
		_, err := io.WriteString(records{conn, toStdout}, c.overview(all))
		return 0, err
	}
	name := args[0]
	at := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == name })
	if at < 0 {
		return codeUsage, fmt.Errorf("no tool %.60q; funnel --help lists them", name)
	}
	t := all[at]
	switch {
	case t.Calls:
		return codeUsage, fmt.Errorf("%s is the call that this command is a part of: write the command itself", name)
	case help:
		_, err := io.WriteString(records{conn, toStdout}, content.Visible(words.Help(t), false))
		return 0, err
	case !c.allows(t):
		return 1, fmt.Errorf("%s may change something, and commands may not call it: the operator can allow it (--run-tools %[1]s)",
			name)
	}
	raw, err := words.Parse(t, args[1:])
	if err != nil {
		return codeUsage, err
	}
	r, err := c.call(ctx, t, raw, shown)
	if err != nil {
		return 1, err
	}
	defer r.close()
	kind, upstream := byte(toStdout), t.Listing != nil
	if upstream && r.failed { // its output is its error
		kind = toStderr
	}
	if upstream && r.size > 0 && r.last != '\n' { // servers seldom end the last line
		_ = r.w.WriteByte('\n')
	}
	reply, err := r.rewind()
	if err == nil {
		_, err = reply.WriteTo(records{conn, kind})
	}
	if err == nil && r.says != "" {
		_, err = fmt.Fprintln(records{conn, toStderr}, "funnel:", r.says)
	}
	switch {
	case err == nil && !r.failed:
		return 0, nil
	case err == nil && t.Check != nil && t.Check(raw) != nil:
		return codeUsage, nil
	}
	return 1, err
}

// allows reports whether a command may call a tool.
func (c *calls) allows(t tools.Tool) bool {
	return !t.Calls && (t.Effect == tools.ReadOnly || slices.Contains(c.options.Tools, t.Name))
}

// call calls a tool, and repeats a call that only reads if the call of run that it was a part of has answered: the next
// one continues with the command.
func (c *calls) call(ctx context.Context, t tools.Tool, args json.RawMessage, shown bool) (*result, error) {
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		now, err := c.follower(ctx)
		if err != nil {
			return nil, err
		}
		within, end := context.WithCancelCause(now.ctx)
		r := &result{calls: c, end: end, tooLong: fmt.Errorf(
			"the result of %s is over %s, the limit of a command (--max-observation): ask for less", t.Name, sizeText(c.options.Output),
		)}
		if r.spool, err = newSpool(c.options.Dir); err != nil {
			return nil, err
		}
		detach := context.AfterFunc(ctx, func() { end(ctx.Err()) })
		r.says, r.failed, err = now.Call(within, t, args, shown, r)
		detach()
		why := context.Cause(within)
		end(nil)
		if why == nil && err == nil {
			return r, nil
		}
		if r.close(); t.Effect != tools.ReadOnly || !errors.Is(why, errUnfollowed) {
			return nil, cmp.Or(why, err)
		}
	}
}

// result is what the program prints, until it has read it: a call does not wait for a slow reader.
type result struct {
	*spool  // of the output, without records
	calls   *calls
	end     context.CancelCauseFunc
	tooLong error
	size    int64
	last    byte
	says    string // what must be said besides
	failed  bool
}

// Write implements [io.Writer]. A result that is too long ends its call.
func (r *result) Write(b []byte) (n int, err error) {
	r.size += int64(len(b))
	if r.calls.held.Add(int64(len(b))) > r.calls.options.Output {
		err = r.tooLong
	} else if n, err = r.w.Write(b); n > 0 {
		r.last = b[n-1]
	}
	if err != nil {
		r.end(err)
	}
	return n, err
}

func (r *result) close() {
	r.calls.held.Add(-r.size)
	r.spool.close()
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
	return b.String() +
		"\nfunnel TOOL KEY=VALUE… prints the whole result; --receipt what a model would see; TOOL --help its arguments.\n"
}
