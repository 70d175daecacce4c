// Package shell has the tool run: a shell command in a sandbox, whose output goes through the funnel.
//
// What a command may touch is what [sandbox] mounts; no rule reads the command. A command that takes longer than one
// call continues, and a later call continues with it.
package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/delta"
)

// Toolset is the name of this package's toolset.
const Toolset = "shell"

// Options configure the tool run. The zero value of a limit is its default.
type Options struct {
	Mode       sandbox.Mode  // [sandbox.Required] by default
	Shell      string        // runs a command with -c; by default bash where it is installed, else /bin/sh
	Slice      time.Duration // a call answers within this time; 45 s by default
	MaxTimeout time.Duration // the longest time of one command, and its default up to [defaultTimeout]
	Output     int64         // bytes of output after which a command is ended; 256 MiB
	Memory     int64         // bytes of one process, and of all; 4 GiB
	Processes  int           // processes and threads of one command; 1024
	ScratchMax int64         // bytes below the scratch directory; 2 GiB
	MinFree    int64         // bytes that stay free on the disks that a command may write to; 0: none
	NoDeltas   bool          // do not compare with the last output of the same command

	AllowWrite   []string // absolute directories, below the roots or above them, that commands may write to
	AllowRead    []string // further directories
	AllowCache   []string // further directories, which commands may also write to
	AllowNet     bool
	AllowProgram []string // the only programs that a command may name; none: any. It is no boundary
	KeepEnv      []string // variables of the server that commands get
	Tools        []string // tools that commands may call by funnel although they are not read-only

	Store  *observations.Store // nil: commands cannot name observations
	Hidden []string            // paths that no command sees, even below a root
	// Replica is the name of this process among several that clients reach by one address; handles then name it. "": there
	// are no others.
	Replica string
	Dir     string // where scratch directories are made; "": the system's directory for temporary files
}

// Defaults of Options.
const (
	defaultSlice     = 45 * time.Second
	defaultTimeout   = 10 * time.Minute
	defaultOutput    = 256 << 20
	defaultMemory    = 4 << 30
	defaultProcesses = 1024
	defaultScratch   = 2 << 30
)

func (o Options) withDefaults() Options {
	o.Mode = cmp.Or(o.Mode, sandbox.Required)
	o.Shell = cmp.Or(o.Shell, defaultShell())
	o.Slice = cmp.Or(o.Slice, defaultSlice)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, defaultTimeout)
	o.Output = cmp.Or(o.Output, defaultOutput)
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	o.Processes = cmp.Or(o.Processes, defaultProcesses)
	o.ScratchMax = cmp.Or(o.ScratchMax, defaultScratch)
	return o
}

// defaultShell returns bash if it is among the system's programs, which every command sees: models write for bash, and
// other shells take a redirection such as &> for something else without an error.
func defaultShell() string {
	return firstProgram("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
}

// firstProgram returns the first of these paths that is a program, else /bin/sh.
func firstProgram(paths ...string) string {
	for _, path := range paths {
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path
		}
	}
	return "/bin/sh"
}

// shellName returns the name of the program that runs commands. If it is a link named sh, that is the name of its
// target, unless the target is a program of many names such as busybox.
func (o Options) shellName() string {
	name := filepath.Base(o.Shell)
	if real, err := filepath.EvalSymlinks(o.Shell); err == nil && name == "sh" && strings.HasSuffix(real, "sh") {
		return filepath.Base(real)
	}
	return name
}

// Shell runs commands. It is safe for concurrent use. Close it to end the commands that still run.
type Shell struct {
	options Options

	mu       sync.Mutex
	closed   bool
	running  map[string][]*job   // commands of each owner
	ended    map[string]endedRun // by handle: those that outlived their call and have ended since
	last     delta.Outputs[lastKey, testsOf]
	scratch  map[string]*scratch            // by owner
	guards   map[string]*guards             // by root, while commands may write below it
	caches   map[string]*observations.Cache // by their name in the store
	leftover sync.Once

	measuring  map[*observations.Cache]bool
	background sync.WaitGroup // of measuring

	noSpare func()   // ends the process that is kept ready
	noted   sync.Map // roots of which it was noted that they were searched in part
}

// New returns a Shell. It starts nothing.
func New(o Options) *Shell {
	return &Shell{
		options: o.withDefaults(), noSpare: func() {},
		running: map[string][]*job{}, scratch: map[string]*scratch{},
		guards: map[string]*guards{}, ended: map[string]endedRun{},
		caches: map[string]*observations.Cache{}, measuring: map[*observations.Cache]bool{},
	}
}

// KeepSpare makes a command leave a process behind that is ready for the next one, until Close: for servers. Call it
// before the first command.
func (s *Shell) KeepSpare() { s.noSpare = sandbox.KeepSpare() }

// Close ends the commands that wait, tells those that calls follow to end, and deletes the scratch directories.
func (s *Shell) Close() {
	s.mu.Lock()
	s.closed = true
	var jobs []*job
	for _, list := range s.running {
		jobs = append(jobs, slices.DeleteFunc(slices.Clone(list), func(j *job) bool { return j.handle == "" })...)
	}
	dirs := s.scratch
	s.scratch = map[string]*scratch{}
	s.mu.Unlock()
	for _, j := range jobs {
		j.kill(endedServer) // all of them, before the first is waited for
	}
	for _, j := range jobs {
		if j.hold() { // else the call that follows it finishes it
			j.discard(endedServer)
		}
	}
	for _, d := range dirs {
		d.remove()
	}
	s.closeCaches()
	s.noSpare()
}

// maxRunning is how many commands of one owner run at the same time.
const maxRunning = 16

// begin takes a place for a command of an owner. The caller must call end unless begin fails.
func (s *Shell) begin(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("the server is ending")
	case len(s.running[j.owner]) >= maxRunning:
		return busy(s.running[j.owner])
	}
	j.free = time.Now().Add(j.timeout)
	s.running[j.owner] = append(s.running[j.owner], j)
	return nil
}

// busy returns the error of a command for which there is no place: it says when to try again.
func busy(running []*job) error {
	free, waiting := running[0].free, ""
	for _, j := range running {
		if j.free.Before(free) {
			free = j.free
		}
		if j.isWaiting() {
			waiting = "; sooner if you continue one that waits: run after=" + j.handle
		}
	}
	seconds := max(1, int64(time.Until(free).Seconds()+1))
	return fmt.Errorf("%d commands are running already, the most at a time: wait for one and try again, "+
		"in %s at the latest%s", len(running), content.Plural(seconds, "second", "seconds"), waiting)
}

func (s *Shell) end(done *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.running[done.owner], func(other *job) bool { return other == done })
	if s.running[done.owner] = left; len(left) == 0 {
		delete(s.running, done.owner)
	}
}

// environment returns the variables of a command. Of the server's, it passes on only harmless ones and those that the
// operator named.
func (s *Shell) environment(v *view, roots []rootDir) []string {
	home, cache := "/", "/.cache"
	if v != nil {
		home, cache = v.home(), v.cachePath()
	}
	env := append(rootVariables(roots),
		"HOME="+home, "TMPDIR=/tmp", "OBS="+obsDir, "SHELL="+s.options.Shell, "TERM=dumb", "NO_COLOR=1", "PAGER=cat",
		"GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "XDG_CACHE_HOME="+cache,
	)
	given := map[string]bool{}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
	}
	add := func(name string) {
		if value, ok := os.LookupEnv(name); ok && (!given[name] || name == "TMPDIR") {
			env = append(env, name+"="+value)
			given[name] = true
		}
	}
	for _, name := range []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME"} {
		add(name)
	}
	if !given["PATH"] {
		env = append(env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	for _, name := range s.options.KeepEnv {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value) // the last one of a name counts
		}
	}
	return env
}
