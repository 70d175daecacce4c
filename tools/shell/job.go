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

// state says who reads the output of a job.
type state int

// The states. A job is held until it is detached, and from each claim to the next detach; it ends while it is held.
const (
	held    state = iota // the call that follows it, or what ends it: nothing else reads its output or ends it
	waiting              // nobody: its output goes to a spool, and the job ends when idle has passed
)

// A job is one command. Its output goes to the call that follows it; between calls, to a spool file.
//
//	stdout ─┐
//	        ├─► readStreams ─► chunks ─► pump ─► Output of the call, or spooler
//	stderr ─┘
type job struct {
	shell   *Shell
	lastKey // the owner, the directory and the command
	script  script
	view    *view
	timeout time.Duration
	handle  string // "": it was never detached
	slot    *slot  // guarded by Shell.mu

	// set by start
	began   time.Time
	process *sandbox.Process
	chunks  chan chunk // closed when the command has ended

	seen  summary // of all output so far
	spool *spool  // output of the time between two calls that no call has replayed yet; nil: none

	mu      sync.Mutex // guards the fields below; nothing is called while it is locked that takes another lock
	state   state
	idle    *time.Timer // of the job that waits
	why     ending
	spooler *spooler // nil: the output goes to a call, or to nobody
	earlier earlier
}

// earlier says where the output of earlier answers is.
type earlier struct {
	stored   string // the observation that has it; "": none
	unstored bool   // that of the last answer is not stored
	missing  bool   // some of it was not stored when the next call came
}

func newJob(s *Shell, key lastKey, v *view) *job {
	return &job{shell: s, lastKey: key, view: v, chunks: make(chan chunk, chunkQueue), seen: newSummary()}
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
	if j.state == held {
		return false
	}
	j.state = held
	j.idle.Stop()
	return true
}

// release makes a job wait for the next call, and has it expire if none comes.
func (j *job) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = waiting
	j.idle = time.AfterFunc(idleTimeout, j.expire)
}

// drain drops output until the command has ended, at most for d.
func (j *job) drain(d time.Duration) {
	late := time.After(d)
	for {
		select {
		case _, ok := <-j.chunks:
			if !ok {
				return
			}
		case <-late:
			return
		}
	}
}

func (j *job) age() string {
	d := time.Since(j.began)
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// pumped is why pump returned.
type pumped int

const (
	pumpEnded pumped = iota
	pumpSlice
	pumpCancelled
)

// progressEvery is the time between two reports of progress, which also tell a client that the command is alive.
const progressEvery = time.Second

// pump passes output on until the command ends.
func (j *job) pump(
	ctx context.Context, out tools.Output, stream func(stderr bool) io.Writer, slice time.Duration,
) pumped {
	end := time.NewTimer(max(slice, 0))
	defer end.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case c, ok := <-j.chunks:
			if !ok {
				return pumpEnded
			}
			if err := j.pass(c, stream); err != nil {
				return pumpCancelled
			}
		case <-end.C:
			return pumpSlice
		case <-ctx.Done():
			return pumpCancelled
		case <-tick.C:
			out.Progress(j.seen.bytes, 0, j.seen.progress())
		}
	}
}

// pass writes a chunk to its stream of an output, up to the limit of the command's output.
func (j *job) pass(c chunk, stream func(stderr bool) io.Writer) error {
	if cap(c.data) == chunkSize {
		defer idleChunks.Put((*[chunkSize]byte)(c.data[:chunkSize]))
	}
	if room := j.shell.options.Output - j.seen.bytes; int64(len(c.data)) > room {
		j.seen.cut += int64(len(c.data)) - max(room, 0)
		c.data = c.data[:max(room, 0)]
		j.kill(endedOutput)
	}
	j.seen.add(c)
	_, err := stream(c.stderr).Write(c.data)
	return err
}

// setStored says where the output of the calls so far is stored. The part of it that an earlier call stored is removed.
func (j *job) setStored(id string) {
	j.mu.Lock()
	part := j.earlier.stored
	j.earlier.stored, j.earlier.unstored = observations.Prefix+id, false
	j.mu.Unlock()
	store := j.shell.options.Store
	if part == "" || store == nil {
		return
	}
	old, err := store.Stat(j.owner, observations.ID(strings.TrimPrefix(part, observations.Prefix)))
	if err != nil || old.Pinned {
		return
	}
	if o, err := store.Stat(j.owner, observations.ID(id)); err == nil && o.Dropped == 0 && o.Bytes >= old.Bytes {
		_ = store.Replace(j.owner, old.ID, o.ID) // else it expires like others
	}
}

// spooler passes the output of a job to its spool until it is stopped or the command ends.
type spooler struct {
	stop chan struct{} // closed to stop it
	done chan struct{} // closed when it has stopped
}

// startSpooling starts the spooler of a job that will wait.
func (j *job) startSpooling() error {
	if j.spool == nil {
		file, err := newSpool(j.shell.options.Dir)
		if err != nil {
			return err
		}
		j.spool = file
	}
	file, sp := j.spool, &spooler{make(chan struct{}), make(chan struct{})}
	j.mu.Lock()
	j.spooler = sp
	j.mu.Unlock()
	go func() {
		defer close(sp.done)
		for {
			select {
			case c, ok := <-j.chunks:
				if !ok {
					return
				}
				if err := j.pass(c, file.stream); err != nil {
					j.kill(endedOutput)
				}
			case <-sp.stop:
				return
			}
		}
	}()
	return nil
}

// stopSpooling stops the spooler, if there is one; the caller holds the job.
func (j *job) stopSpooling() {
	j.mu.Lock()
	sp := j.spooler
	j.spooler = nil
	j.mu.Unlock()
	if sp != nil {
		close(sp.stop)
		<-sp.done
	}
}

// discard ends a job for a reason and drops its output; the caller holds it.
func (j *job) discard(why ending) {
	j.kill(why)
	j.stopSpooling()
	j.spool.close()
	j.drain(time.Second)
	j.shell.finish(j)
}

// replay writes what earlier calls have answered, and what came since, to the output of this call. If it fails, the
// spool remains for the next call.
func (j *job) replay(
	ctx context.Context, in tools.Input, out tools.Output, stream func(stderr bool) io.Writer,
) error {
	j.stopSpooling()
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
	j.spool = nil
	return nil
}

// copyObservation writes a stored output of run to an output.
func copyObservation(
	ctx context.Context, name string, in tools.Input, stream func(stderr bool) io.Writer,
) (pinned bool, err error) {
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
