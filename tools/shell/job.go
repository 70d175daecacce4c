package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// ending is why a command was ended.
type ending int

// The reasons, of which the first one counts.
const (
	endedItself ending = iota
	endedTimeout
	endedOutput
	endedCancelled
	endedServer
	endedIdle
	endedStopped
)

// A job is one command. Its output goes to the call that follows it; between calls, to a spool file.
//
//	stdout ─┐
//	        ├─► readStreams ─► chunks ─► forward ─► Output of the call, or spool
//	stderr ─┘
//
// A job is held by the call that follows it, or by what ends it. Otherwise it waits, and ends when idleTimeout has
// passed.
type job struct {
	shell   *Shell
	lastKey // the owner, the directory and the command
	script  script
	view    *view
	calls   *calls // of tools, by the command; nil: there are none
	timeout time.Duration

	handle string    // "": it was never detached; guarded by Shell.mu
	free   time.Time // when its place among the owner's commands is free at the latest; guarded by Shell.mu

	// set by start
	began   time.Time
	process *sandbox.Process
	chunks  chan chunk    // closed when the command has ended
	passed  chan struct{} // closed when all output was passed on

	output sync.Mutex // held while a chunk is passed on; guards the fields below
	seen   summary    // of all output so far; needs no lock once passed is closed
	spool  *spool     // output of the time between two calls that no call has replayed yet; nil: none
	to     streams    // of the call, or of the spool; nil: the output is dropped
	defect error      // the panic of what reads the output, if any

	mu      sync.Mutex // guards the fields below; nothing is called while it is locked that takes another lock
	waits   bool       // nothing holds it
	idle    *time.Timer
	why     ending
	earlier earlier
}

// streams returns the writer of standard output or of standard error.
type streams func(stderr bool) io.Writer

// earlier says where the output of earlier answers is.
type earlier struct {
	stored   string // the observation that has it; "": none
	unstored bool   // that of the last answer is not stored
	missing  bool   // some of it was not stored when the next call came
}

// start starts the command and the goroutines that read its output.
func (j *job) start(spec sandbox.Spec) error {
	var readers, writers [2]*os.File
	closeAll := func(files [2]*os.File) {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	for i := range readers {
		var err error
		if readers[i], writers[i], err = os.Pipe(); err != nil {
			closeAll(readers)
			closeAll(writers)
			return err
		}
		growPipe(readers[i], pipeSize)
	}
	p, err := sandbox.Start(spec, writers[0], writers[1])
	closeAll(writers)
	if err != nil {
		closeAll(readers)
		return err
	}
	j.process, j.began = p, time.Now()
	j.chunks, j.passed = make(chan chunk, chunkQueue), make(chan struct{})
	expiry := time.AfterFunc(j.timeout, func() { j.kill(endedTimeout) })
	go func() {
		j.readStreams(readers)
		closeAll(readers)
		<-p.Done()
		expiry.Stop()
		close(j.chunks)
	}()
	return nil
}

// kill ends the command for a reason.
func (j *job) kill(why ending) {
	j.mu.Lock()
	if j.why == endedItself {
		j.why = why
	}
	j.mu.Unlock()
	j.process.Kill()
}

func (j *job) ended() ending {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.why
}

// hold takes a job that waits. It returns false if something else holds the job.
func (j *job) hold() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.waits {
		return false
	}
	j.waits = false
	j.idle.Stop()
	return true
}

func (j *job) isWaiting() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.waits
}

// release makes a job wait for the next call, and has it expire if none comes.
func (j *job) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waits = true
	j.idle = time.AfterFunc(idleTimeout, j.expire)
}

// name returns what the output is called in lists: the programs of the command.
func (j *job) name() string { return strings.Join(j.script.programs, " ") }

func (j *job) age() string {
	d := time.Since(j.began)
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// progressEvery is the time between two reports of progress, which also tell a client that the command is alive.
const progressEvery = time.Second

// await reports progress until all output was passed on, the slice has passed, or ctx has ended, which is the error.
func (j *job) await(ctx context.Context, out tools.Output, slice time.Duration) (ended bool, err error) {
	end := time.NewTimer(max(slice, 0))
	defer end.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.passed:
			_ = panics.Again(j.defect)
			return true, context.Cause(ctx)
		case <-end.C:
			return false, context.Cause(ctx)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-tick.C:
			j.output.Lock()
			done, text := j.seen.bytes, j.seen.progress()
			j.output.Unlock()
			out.Progress(done, 0, text)
		}
	}
}

// forward passes the output on until the command has ended.
func (j *job) forward() {
	defer close(j.passed)
	for c := range j.chunks {
		j.output.Lock()
		if panics.Into(&j.defect, func() { j.pass(c) }); j.defect != nil {
			j.to = nil
			j.kill(endedOutput)
		}
		j.output.Unlock()
	}
}

// pass writes a chunk to its stream, up to the limit of the command's output. The caller holds j.output.
func (j *job) pass(c chunk) {
	defer idleChunks.Put((*[chunkSize]byte)(c.data[:chunkSize]))
	if j.to == nil {
		return
	}
	if room := j.shell.options.Output - j.seen.bytes; int64(len(c.data)) > room {
		j.seen.cut += int64(len(c.data)) - max(room, 0)
		c.data = c.data[:max(room, 0)]
		j.kill(endedOutput)
	}
	j.seen.add(c)
	if _, err := j.to(c.stderr).Write(c.data); err != nil {
		j.to = nil
		j.kill(endedOutput)
	}
}

// setStored says where the output of the calls so far is stored.
func (j *job) setStored(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.earlier.stored, j.earlier.unstored = observations.Prefix+id, false
}

// spoolOutput ends what goes to the output of a call that answers so far: the next output goes to the spool.
func (j *job) spoolOutput() {
	j.output.Lock()
	defer j.output.Unlock()
	j.mu.Lock()
	j.earlier.unstored = j.earlier.unstored || j.seen.bytes > 0 // until it is stored
	j.mu.Unlock()
	var err error
	if j.spool, err = newSpool(j.shell.options.Dir); err != nil {
		j.to = nil
		j.kill(endedOutput)
		return
	}
	j.to = j.spool.stream
}

// discard ends a job for a reason and drops its output; the caller holds it.
func (j *job) discard(why ending) {
	j.kill(why)
	j.output.Lock()
	j.to = nil
	j.spool.close()
	j.output.Unlock()
	select {
	case <-j.passed:
	case <-time.After(time.Second):
	}
	j.shell.finish(j)
}

// replay writes what earlier calls have answered, and what came since, to the output of this call, where the next
// output goes too. If it fails, the spool remains for the next call.
func (j *job) replay(ctx context.Context, in tools.Input, out tools.Output, stream streams) error {
	j.output.Lock()
	defer j.output.Unlock()
	j.mu.Lock()
	j.earlier.missing = j.earlier.missing || j.earlier.unstored
	earlier := j.earlier
	j.mu.Unlock()
	if earlier.stored != "" {
		pinned, err := copyObservation(ctx, earlier.stored, in, stream)
		switch {
		case err != nil:
			out.Note(fmt.Sprintf("the output before is missing here (%s)", content.ClipBytes(err.Error(), 200)))
		case pinned:
			out.Answered("")
		default:
			out.Answered(earlier.stored)
		}
	}
	if earlier.missing {
		out.Note("output of an earlier answer could not be stored, and is missing here")
	}
	if err := j.spool.replay(stream); err != nil {
		return err
	}
	j.spool.close()
	j.spool, j.to = nil, stream
	return nil
}

// copyObservation writes a stored output of run to an output.
func copyObservation(ctx context.Context, name string, in tools.Input, stream streams) (pinned bool, err error) {
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = src.Close() }()
	if o := src.Observation; o == nil || o.Tool != "run" {
		return false, errors.New("it is not the output of a command")
	}
	return src.Observation.Pinned, src.Streams(func(toStderr bool, r io.Reader) error {
		_, err := io.Copy(stream(toStderr), r)
		return err
	})
}
