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

var (
	errUnfollowed = errors.New("the call of run has answered meanwhile")
	errDisconnect = errors.New("the process has ended")
	errTooLong    = errors.New("too long")
)

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
		return nil, context.Cause(ctx)
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
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		end(errDisconnect)
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
	switch {
	case at < 0:
		return codeUsage, fmt.Errorf("no tool %.60q; funnel --help lists them", name)
	case all[at].Calls:
		return codeUsage, fmt.Errorf("%s is the call that this command is a part of: write the command itself", name)
	case help:
		_, err := io.WriteString(records{conn, toStdout}, content.Visible(words.Help(all[at]), false))
		return 0, err
	case !c.allows(all[at]):
		return 1, fmt.Errorf("%s may change something, and commands may not call it: the operator can allow it (--run-tools %[1]s)",
			name)
	}
	raw, err := words.Parse(all[at], args[1:])
	if err != nil {
		return codeUsage, err
	}
	r, err := c.call(ctx, all[at], raw, shown)
	if err != nil {
		return 1, err
	}
	defer r.close()
	reply, err := r.rewind()
	if err == nil {
		err = readRecords(reply, func(kind byte) io.Writer {
			if r.failed && all[at].Listing != nil { // the output of an upstream server is its error
				kind = toStderr
			}
			return records{conn, kind}
		})
	}
	switch check := all[at].Check; {
	case err != nil || r.failed && (check == nil || check(raw) == nil):
		return 1, err
	case r.failed:
		return codeUsage, nil
	}
	return 0, nil
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
		return nil, context.Cause(ctx)
	}
	for {
		now, err := c.follower(ctx)
		if err != nil {
			return nil, err
		}
		r := &result{calls: c}
		if r.spool, err = newSpool(c.options.Dir); err != nil {
			return nil, err
		}
		within, end := context.WithCancelCause(now.ctx)
		r.end = end
		detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
		says, failed, err := now.Call(within, t, args, shown, r)
		detach()
		why := context.Cause(within)
		end(nil)
		switch {
		case errors.Is(why, errTooLong):
			err = fmt.Errorf("the result of %s is over %s, the limit of a command (--max-observation): ask for less",
				t.Name, sizeText(c.options.Output))
		case why == nil && err == nil:
			if r.failed = failed; t.Listing != nil && r.size > 0 && r.last != '\n' { // servers seldom end the last line
				_, _ = r.Write([]byte{'\n'})
			}
			if says != "" {
				_, _ = fmt.Fprintln(r.stream(true), "funnel:", says)
			}
			return r, nil
		case errors.Is(why, errUnfollowed) && t.Effect == tools.ReadOnly:
			r.close()
			continue
		}
		r.close()
		return nil, cmp.Or(err, why)
	}
}

// result is what the program prints, until it has read it: a call does not wait for a slow reader.
type result struct {
	*spool
	calls  *calls
	end    context.CancelCauseFunc
	size   int64
	last   byte
	failed bool
}

// Write implements [io.Writer]. A result that is too long ends its call.
func (r *result) Write(b []byte) (int, error) {
	r.size += int64(len(b))
	err := errTooLong
	if r.calls.held.Add(int64(len(b))) <= r.calls.options.Output {
		_, err = r.stream(false).Write(b)
	}
	if err != nil {
		r.end(err)
	} else if len(b) > 0 {
		r.last = b[len(b)-1]
	}
	return len(b), err
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
