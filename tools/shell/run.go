package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type runArgs struct {
	Command string `json:"command,omitempty" jsonschema:"$OBS/ID: obs:ID" help:"Command for the shell. Its standard input is empty. It may name stored observations, as $OBS/ID, to work on what was kept."`
	Cwd     string `json:"cwd,omitempty" help:"Directory inside a root. Default: the first root."`
	Timeout int    `json:"timeout_s,omitempty" help:"Seconds after which the command is ended, counted from its start; 0 or left out: 600, or what the operator allows."`
	After   string `json:"after,omitempty" jsonschema:"run:ID" help:"Handle of a command that was still running when an earlier call answered: run:ID. The call continues with it, and shows what is new."`
	Stop    string `json:"stop,omitempty" help:"Handle of a command that is still running: run:ID. The command is ended, and the call shows what it wrote."`
}

// Run returns the tool run. That of a nil Shell can be listed, but not called.
func (s *Shell) Run() tools.Tool {
	if s == nil {
		s = New(Options{})
	}
	contained := "contained: roots read-only"
	if len(s.options.AllowWrite) > 0 {
		contained = "contained: writable where allowed"
	}
	if s.options.Mode == sandbox.Off {
		contained = "not contained: it may do all that the user may"
	}
	effect := tools.Writes
	if len(s.options.AllowWrite) > 0 || s.options.Mode == sandbox.Off {
		effect = tools.Destructive
	}
	about := "Run " + s.options.shellName() + ", " + contained
	if found := s.options.interpreters(); found != "" {
		about += "; " + found
	}
	if s.options.Mode == sandbox.Required { // where it is best-effort, commands may have no funnel
		about += "; " + programName + " TOOL KEY=VALUE calls tools"
	}
	return tools.New(tools.Tool{
		Name:        "run",
		Title:       "Run",
		Description: about + ".",
		Rules:       []string{"Give exactly one of command, after and stop."},
		Effect:      effect,
		OpenWorld:   s.options.AllowNet || s.options.Mode == sandbox.Off,
		Toolset:     Toolset,
		Calls:       s.options.Mode != sandbox.Off,
		Terminal:    true,
		Whole:       tools.Whole{Lines: 200, Tokens: 2500}, // what a script condensed is read, and not worth a second call
	}, s.run)
}

// maxCommand is the longest command, in bytes: the kernel takes 128 KiB for one argument.
const maxCommand = 128<<10 - 1

// maxSeconds is the longest timeout_s: a day.
const maxSeconds = 86_400

// Check implements [tools.Checker].
func (a runArgs) Check() error {
	switch {
	case a.Stop != "" && (a.Command != "" || a.Cwd != "" || a.Timeout != 0 || a.After != ""):
		return errors.New("stop ends a command: leave out command, cwd, timeout_s and after")
	case a.Stop != "":
		return nil
	case a.After != "" && (a.Command != "" || a.Cwd != "" || a.Timeout != 0):
		return errors.New("after continues a command: leave out command, cwd and timeout_s")
	case a.After != "":
		return nil
	case a.Timeout < 0 || a.Timeout > maxSeconds:
		return fmt.Errorf("timeout_s is %d, and must be from 0 to %d", a.Timeout, maxSeconds)
	case strings.TrimSpace(a.Command) == "":
		return errors.New("command is empty: give a command for the shell, or after to continue one")
	case strings.ContainsRune(a.Command, 0):
		return errors.New("command holds a NUL character, which no shell can take: remove it")
	case len(a.Command) > maxCommand:
		return fmt.Errorf("command has %d bytes, and the system takes %d: write it to a file below a root and run that",
			len(a.Command), maxCommand)
	}
	return nil
}

func (s *Shell) run(ctx context.Context, a runArgs, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	if handle := cmp.Or(a.After, a.Stop); handle != "" {
		j, err := s.claim(in.Owner, handle)
		if err != nil {
			return err
		}
		if a.Stop != "" {
			j.kill(endedStopped)
		}
		defer j.calls.follow(ctx, in.Caller)()
		if err := j.replay(ctx, in, out, out.Streams(j.name())); err != nil {
			s.detach(j)
			return err
		}
		return s.follow(ctx, j, in, out)
	}
	j, err := s.start(a, in)
	if err != nil {
		return err
	}
	defer j.calls.follow(ctx, in.Caller)()
	j.to = out.Streams(j.name())
	go j.forward()
	return s.follow(ctx, j, in, out)
}

// start starts a command.
func (s *Shell) start(a runArgs, in tools.Input) (*job, error) {
	script := parse(a.Command)
	if err := script.allowed(s.options.AllowProgram); err != nil {
		return nil, err
	}
	if strings.HasPrefix(a.Cwd, "scratch:") {
		return nil, fmt.Errorf("cwd: %s is not inside a root: leave cwd out, and begin the command with cd /tmp "+
			"(for scratch:/tmp) or cd \"$HOME\" (for scratch:/home)", content.ClipBytes(a.Cwd, 100))
	}
	cwd, err := in.Sources.Directory(a.Cwd)
	if err != nil {
		if where := describeRoots(rootDirs(in.Sources)); where != "" {
			err = fmt.Errorf("%w; for commands, %s", err, where)
		}
		return nil, fmt.Errorf("cwd: %w", err)
	}
	timeout := min(defaultTimeout, s.options.MaxTimeout)
	if a.Timeout > 0 {
		timeout = min(time.Duration(a.Timeout)*time.Second, s.options.MaxTimeout)
	}
	j := &job{
		shell: s, lastKey: lastKey{in.Owner, cwd, a.Command}, script: script, timeout: timeout, seen: newSummary(),
	}
	if err := s.begin(j); err != nil {
		return nil, err
	}
	if err := s.launch(j, in); err != nil {
		s.end(j)
		return nil, err
	}
	return j, nil
}

// launch prepares the view of a command and starts it.
func (s *Shell) launch(j *job, in tools.Input) error {
	dir, err := s.scratchOf(j.owner)
	if err != nil {
		return fmt.Errorf("no scratch directory: %w", err)
	}
	roots := rootDirs(in.Sources)
	j.view = &view{
		options: &s.options, owner: j.owner, roots: roots, scratch: dir, cache: s.cacheOf(j.owner, roots, j.cwd),
	}
	mounts, err := j.view.mounts(j.command)
	if err != nil {
		return err
	}
	o := &s.options
	spec := sandbox.Spec{
		Args: []string{o.Shell, "-c", j.command}, Dir: j.cwd, Env: s.environment(j.view, roots), Mode: o.Mode,
		Mounts: mounts, Net: o.AllowNet,
		ScratchMax: o.ScratchMax, ScratchNow: dir.size.Load(), MinFree: o.MinFree,
		Memory: o.Memory, Processes: o.Processes,
	}
	program, _ := os.Executable()
	program, _ = filepath.EvalSymlinks(program) // "" if it was removed
	if program != "" && in.Caller != nil {
		j.calls = &calls{options: o, free: make(chan struct{}, maxCalls), now: make(chan *follower, 1)}
		spec.Connect = j.calls.serve
		spec.Mounts = append(mounts, sandbox.Mount{Source: program, Target: binDir + "/" + programName, File: true, Maybe: true})
		for i, v := range spec.Env {
			if path, ok := strings.CutPrefix(v, "PATH="); ok {
				spec.Env[i] = "PATH=" + binDir + ":" + path
			}
		}
	}
	s.guard(j.view.guarded())
	err = j.start(spec)
	if err != nil {
		s.releaseGuards(j.view.guarded())
		return s.explainStart(err)
	}
	return nil
}

// follow answers for a command when it has ended or the slice of this call has passed.
func (s *Shell) follow(ctx context.Context, j *job, in tools.Input, out tools.Output) error {
	slice := s.options.Slice
	if deadline, ok := ctx.Deadline(); ok {
		slice = min(slice, time.Until(deadline)-2*time.Second) // the answer must be stored and sent within it
	}
	ended, err := j.await(ctx, out, slice)
	switch {
	case err != nil:
		j.discard(endedCancelled)
		return err
	case !ended:
		return s.answerSoFar(j, out)
	}
	defer s.finish(j)
	return s.report(ctx, j, in, out)
}

// answerSoFar ends a call whose command still runs.
func (s *Shell) answerSoFar(j *job, out tools.Output) error {
	j.spoolOutput()
	handle := s.detach(j)
	out.Keep()
	out.OnStored(j.setStored)
	out.Count("running", 1)
	for _, note := range s.quarantine(j.view.guarded()) {
		out.Note(note)
	}
	out.Note(fmt.Sprintf("still running after %s; next: run after=%s", j.age(), handle))
	return nil
}

// report says how a command ended.
func (s *Shell) report(ctx context.Context, j *job, in tools.Input, out tools.Output) error {
	status, err := j.process.Wait()
	if err != nil {
		return fmt.Errorf("the end of the command is unknown: %w", err)
	}
	out.Count("exit_code", float64(status.Exit))
	out.Cut(j.seen.cut)
	if status.Scratch > 0 {
		j.view.scratch.size.Store(status.Scratch)
	}
	found, outcomes := j.seen.found.close(), j.seen.found.outcomes
	tests := j.testsOf(status.Exit)
	if j.script.onlyQuotes() && len(tests.failed) == 0 {
		found, outcomes = nil, nil
		out.Quoted()
	}
	for _, note := range s.notes(j, status) {
		out.Note(note)
	}
	if !s.options.NoDeltas && j.seen.cut == 0 {
		told := func(last testsOf) string { return describeTests(last, tests) }
		says, same := s.last.Since(ctx, in.Sources, j.lastKey, &j.seen.text, in.Mask, told)
		out.Note(says)
		out.Since("", same)
	}
	switch {
	case status.Exit == 0:
		found = nil
	case len(found) == 0 && j.seen.bytes > int64(len(j.seen.tail)):
		found = j.seen.errors.close(j.seen.bytes)
	}
	if n := len(tests.failed); n > 0 && status.Exit != 0 {
		out.Count("failed_tests", float64(n))
	}
	out.Findings(append(found, outcomes...))
	if j.handle != "" {
		out.Keep()
		out.Note(fmt.Sprintf("%s has ended with exit code %d", j.handle, status.Exit))
	}
	s.noteEnded(j, status.Exit, "")
	out.OnStored(func(id string) {
		j.setStored(id)
		s.last.Remember(j.lastKey, id, &j.seen.text, tests)
		s.noteEnded(j, status.Exit, id)
	})
	if j.ended() == endedTimeout {
		advice := fmt.Sprintf("give more, up to %d, or let it do less", int(s.options.MaxTimeout.Seconds()))
		if j.timeout >= s.options.MaxTimeout {
			advice = "the operator allows no more (--run-timeout): let it do less"
		}
		return fmt.Errorf("the command was ended after %s (timeout_s): %s", j.timeout, advice)
	}
	return nil
}

// killedBy says who may have sent the signal that no program can catch.
func killedBy(signal string) string {
	if !strings.HasPrefix(signal, "SIGKILL") {
		return ""
	}
	return ", by itself, or by the kernel because this machine is short of memory: it kills commands first"
}

// notes returns what must be shown of a command's end.
func (s *Shell) notes(j *job, status sandbox.Status) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case j.ended() == endedOutput:
		add("ended: it wrote over %s of output, the limit (--max-observation); all counts are of what came before",
			sizeText(s.options.Output))
	case j.ended() == endedStopped:
		add("ended by stop after %s", j.age())
	case j.ended() != endedItself:
	case status.Limit != "":
		add("ended: it exceeded %s", status.Limit)
	case status.Signal != "":
		add("ended by a signal: %s%s", status.Signal, killedBy(status.Signal))
	default: // the shell reports so that a program of the command was ended
		if signal := sandbox.ExitSignal(status.Exit); signal != "" {
			add("%d stands for %s%s", status.Exit, signal, killedBy(signal))
		}
	}
	if status.Left > 0 {
		add("%s that it left running ended with it", content.Plural(int64(status.Left), "process", "processes"))
	}
	hint := rootHint(j.view.roots, j.seen.tail)
	if status.Exit != 0 && hint == "" {
		hint = cmp.Or(s.grantHint(j, status), j.script.fault)
	}
	if hint != "" {
		add("%s", hint)
	}
	notes = append(notes, s.quarantine(j.view.guarded())...)
	return append(notes, s.limitNotes(j)...)
}
