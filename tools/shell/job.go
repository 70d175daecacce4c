package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// ending is why a command was ended.
type ending int32

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
//	        ├─► readStreams ─► chunks ─► pump ─► Output of the call, or spool
//	stderr ─┘
type job struct {
	shell   *Shell
	owner   string
	key     lastKey
	script  script
	handle  string // "": no call gave it out
	began   time.Time
	timeout time.Duration
	scratch *scratch
	roots   []string
	named   []rootDir // the same
	cache   *observations.Cache
	limited []string // roots that were searched in part for what to guard and hide
	guarded []string // roots below which it may write

	process *sandbox.Process
	chunks  chan chunk
	expiry  *time.Timer
	idle    *time.Timer // ends a job that no call continues
	taken   bool        // a call follows it; guarded by Shell.mu
	slot    *slot       // guarded by Shell.mu
	why     atomic.Int32

	mu       sync.Mutex
	prefix   string      // the observation with the output of the calls before; "": none
	unstored bool        // the last answer's output is not stored
	missing  bool        // output of an earlier answer was not stored
	spool    *spool      // output since the last call; nil: none
	stop     chan func() // ends spooling

	seen  summary
	tests testsOf // when it has ended
	cut   int64   // bytes beyond the limit of the command's output, which were dropped
}

func newJob(s *Shell, owner string, key lastKey) *job {
	return &job{shell: s, owner: owner, key: key, taken: true, chunks: make(chan chunk, chunkQueue), seen: newSummary()}
}

// start starts the command and the goroutines that read its output.
func (j *job) start(spec sandbox.Spec, timeout time.Duration) error {
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
	j.process, j.began, j.timeout = p, time.Now(), timeout
	j.expiry = time.AfterFunc(timeout, func() { j.kill(endedTimeout) })
	go func() {
		j.readStreams(readers)
		closeAll(readers)
		<-p.Done()
		j.expiry.Stop()
		close(j.chunks)
	}()
	return nil
}

// kill ends the command for a reason.
func (j *job) kill(why ending) {
	j.why.CompareAndSwap(int32(endedItself), int32(why))
	j.process.Kill()
}

func (j *job) ended() ending { return ending(j.why.Load()) }

// wait waits for the end of the command, at most for d, and drops output that nobody follows.
func (j *job) wait(d time.Duration) {
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
func (j *job) pump(ctx context.Context, out tools.Output, slice time.Duration) pumped {
	end := time.NewTimer(max(slice, 0))
	defer end.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	stderr := out.Stderr()
	for {
		select {
		case c, ok := <-j.chunks:
			if !ok {
				return pumpEnded
			}
			if err := j.pass(c, out, stderr); err != nil {
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

// pass writes a chunk to an output, up to the limit of the command's output.
func (j *job) pass(c chunk, out, stderr io.Writer) error {
	if cap(c.data) == chunkSize {
		defer idleChunks.Put((*[chunkSize]byte)(c.data[:chunkSize]))
	}
	if room := j.shell.options.Output - j.seen.bytes; int64(len(c.data)) > room {
		j.cut += int64(len(c.data)) - max(room, 0)
		c.data = c.data[:max(room, 0)]
		j.kill(endedOutput)
	}
	j.seen.add(c)
	if c.stderr {
		out = stderr
	}
	_, err := out.Write(c.data)
	return err
}

// discard deletes the spool of a job that has ended.
func (j *job) discard() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spool != nil {
		j.spool.close()
		j.spool = nil
	}
}

// setPrefix says where the output of the calls so far is stored. The part of it that an earlier call stored is removed.
func (j *job) setPrefix(id string) {
	j.mu.Lock()
	part := j.prefix
	j.prefix, j.unstored = observations.Prefix+id, false
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

// detach spools the output from now on, until [job.attach].
func (j *job) detach() error {
	sp, err := newSpool(j.shell.options.Dir)
	if err != nil {
		return err
	}
	stop := make(chan func())
	j.mu.Lock()
	j.spool, j.stop = sp, stop
	j.mu.Unlock()
	go func() {
		for {
			select {
			case c, ok := <-j.chunks:
				if !ok { // keep answering attach
					j.mu.Lock()
					j.chunks = closedChunks
					j.mu.Unlock()
					(<-stop)()
					return
				}
				if err := j.pass(c, sp.stream(false), sp.stream(true)); err != nil {
					j.kill(endedOutput)
				}
			case done := <-stop:
				done()
				return
			}
		}
	}()
	return nil
}

var closedChunks = func() chan chunk {
	c := make(chan chunk)
	close(c)
	return c
}()

// attach ends spooling.
func (j *job) attach() {
	j.mu.Lock()
	stop := j.stop
	j.stop = nil
	j.mu.Unlock()
	if stop != nil {
		done := make(chan struct{})
		stop <- func() { close(done) }
		<-done
	}
}

// replay writes what earlier calls have answered, and what came since, to the output of this call.
func (j *job) replay(ctx context.Context, in tools.Input, out tools.Output) error {
	j.attach()
	stderr := out.Stderr()
	j.mu.Lock()
	prefix, sp := j.prefix, j.spool
	j.missing = j.missing || j.unstored
	missing := j.missing
	j.spool = nil
	j.mu.Unlock()
	if prefix != "" {
		pinned, err := copyObservation(ctx, prefix, in, out, stderr)
		switch {
		case err != nil:
			out.Note(fmt.Sprintf("the output before is missing here (%s)", content.ClipBytes(err.Error(), 200)))
		case pinned:
			out.Answered("")
		default:
			out.Answered(prefix)
		}
	}
	if missing {
		out.Note("output of an earlier answer could not be stored, and is missing here")
	}
	if sp == nil {
		return nil
	}
	defer sp.close()
	return sp.replay(out, stderr)
}

// copyObservation writes a stored output of run to an output.
func copyObservation(
	ctx context.Context, name string, in tools.Input, stdout, stderr io.Writer,
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
		w := stdout
		if toStderr {
			w = stderr
		}
		_, err := io.Copy(w, r)
		return err
	})
}
