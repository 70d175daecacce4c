package conformance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

const (
	badSecret = "planted-outside-4711" // only in files outside the root
	badWord   = "an ordinary word"     // in every readable ok.txt

	mostShown = 42_000 // characters of an answer: a page and its header
	mostError = 1_000  // bytes of the first line of an error; a caret or earlier results may follow
	// bytes of an argument in an answer that is an error: 200, cut at a character, and some made visible
	mostEcho = 260
)

// badRoot makes a root with all files of the corpus, and the files outside that links of the corpus lead to.
func badRoot(t testing.TB) (root string, fill *strings.Replacer) {
	t.Helper()
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	link := func(target, name string) { t.Helper(); symlink(t, target, filepath.Join(root, name)) }
	write(t, filepath.Join(root, "ok.txt"), badWord+"\nand another\n")
	write(t, filepath.Join(root, "ok.json"), `{"a":{"a":[1,2]},"":0}`)
	write(t, filepath.Join(root, "null.json"), "null")
	write(t, filepath.Join(root, "dir", "inner.txt"), badWord+"\n")
	write(t, filepath.Join(outside, "secret.txt"), badSecret+"\n")
	write(t, filepath.Join(outside, "linked.txt"), "whoever made the link could read it\n")
	write(t, filepath.Join(dir, "root-evil", "secret.txt"), badSecret+"\n")
	link("../outside/secret.txt", "out-relative")
	link(filepath.Join(outside, "secret.txt"), "out-absolute")
	link(outside, "out-dir")
	link("loop", "loop")
	link("loop-b", "loop-a")
	link("loop-a", "loop-b")
	link("/dev/zero", "to-zero")
	link("/proc/self/environ", "to-environ")
	link("nowhere", "dangling")
	link("ok.txt", "inside-link")
	for _, n := range []int{9, 50} {
		for i := range n {
			target := fmt.Sprintf("chain-%d", i)
			if i == 0 {
				target = "ok.txt"
			}
			name := fmt.Sprintf("chain-%d", i+1)
			if n == 50 {
				target, name = strings.Replace(target, "chain", "long", 1), strings.Replace(name, "chain", "long", 1)
			}
			link(target, name)
		}
	}
	expect.Must(t, os.Rename(filepath.Join(root, "long-50"), filepath.Join(root, "chain-50")))
	for _, c := range badCases(t, "files") {
		badFile(t, root, outside, c)
	}
	return root, strings.NewReplacer(
		"$ROOT", root, "$BASE", filepath.Base(root), "$OUTSIDE", outside, "$STORE", filepath.Join(dir, "store"),
	)
}

// badFile makes one file of the corpus.
func badFile(t testing.TB, root, outside string, c badCase) {
	t.Helper()
	path := filepath.Join(root, c.File)
	expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	text, err := c.bytes()
	expect.Must(t, err)
	switch c.Make {
	case "":
		err = os.WriteFile(path, text, 0o600)
	case "fifo":
		err = syscall.Mkfifo(path, 0o600)
	case "socket":
		err = syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) // nobody listens: the path of a root is often too long for that
	case "dir":
		err = os.MkdirAll(path, 0o700)
	case "denied":
		err = os.WriteFile(path, text, 0)
	case "locked":
		err = os.Mkdir(path, 0)
	case "hardlink":
		err = os.Link(filepath.Join(outside, "linked.txt"), path)
	case "sparse":
		sparse(t, path, c.Size, string(text))
	case "deep":
		for range c.Size {
			path = filepath.Join(path, "level upon level")
		}
		err = os.MkdirAll(path, 0o700)
	case "many":
		err = os.Mkdir(path, 0o700)
		for i := range c.Size {
			if err == nil {
				err = os.WriteFile(filepath.Join(path, fmt.Sprint(i)), nil, 0o600)
			}
		}
	default:
		t.Fatalf("%s: nobody knows how to make %q", c.Name, c.Make)
	}
	expect.Must(t, err, c.Name)
}

// badInput is one use of a case: a call, or a line sent unchanged.
type badInput struct {
	name  string
	tool  string
	args  map[string]any
	bad   string // the argument that must not be echoed at length
	frame parts  // nil: a call
	badCase
}

// badInputs returns all uses of the corpus.
func badInputs(t testing.TB, fill *strings.Replacer) (all []badInput) {
	t.Helper()
	add := func(c badCase, name, tool, bad string, args map[string]any) {
		all = append(all, badInput{name: tool + ", " + name + ": " + c.Name, tool: tool, args: args, bad: bad, badCase: c})
	}
	everywhere := func(c badCase, kind, name string) {
		add(c, kind, "read", name, map[string]any{"path": name})
		add(c, kind, "find", name, map[string]any{"path": name})
		add(c, kind, "search", name, map[string]any{"path": name, "pattern": "x"})
		add(c, kind, "grep", name, map[string]any{"source": name, "pattern": "x"})
		add(c, kind, "jq", name, map[string]any{"source": name, "filter": "length"})
		add(c, kind, "slice", name, map[string]any{"source": name, "lines": "1-2"})
	}
	for _, c := range badCases(t, "paths") {
		everywhere(c, "path", fill.Replace(c.Text.String()))
	}
	for _, c := range badCases(t, "files") {
		everywhere(c, "file", c.File)
		add(c, "file", "slice", c.File, map[string]any{"source": c.File, "records": "-2"})
		add(c, "file", "slice", c.File, map[string]any{"source": c.File, "chars": "1990-2010"})
		add(c, "file", "jq", c.File, map[string]any{"source": c.File, "filter": ".", "text": true})
		add(c, "file", "grep", c.File, map[string]any{"source": c.File, "pattern": "^x$", "invert": true})
	}
	for _, c := range badCases(t, "patterns") {
		text := c.Text.String()
		add(c, "pattern", "search", text, map[string]any{"pattern": text, "path": "zwj.txt"})
		add(c, "pattern", "grep", text, map[string]any{"pattern": text, "source": "ok.txt"})
	}
	for _, c := range badCases(t, "globs") {
		text := c.Text.String()
		add(c, "glob", "find", text, map[string]any{"glob": text, "path": "many"})
		if text != "" { // an empty line has no content to check
			add(c, "glob", "search", text, map[string]any{"glob": text, "pattern": "x", "path": "dir"})
		}
	}
	for _, c := range badCases(t, "programs") {
		add(c, "program", "jq", c.Text.String(), map[string]any{"filter": c.Text.String(), "source": "null.json"})
	}
	for _, c := range badCases(t, "arguments") {
		bad := ""
		args := c.arguments()
		for _, v := range args {
			if s, ok := v.(string); ok {
				bad = s
			}
		}
		add(c, "arguments", c.Tool, bad, args)
	}
	for _, c := range badCases(t, "frames") {
		all = append(all, badInput{name: "frame: " + c.Name, frame: c.Text, badCase: c})
	}
	return all
}

// wrong returns the fault of a server's answer to a bad input, or "".
func (in badInput) wrong(s *stdioClient) string {
	if in.frame != nil {
		in.frame.pour(s.write)
		s.write([]byte("\n"))
		if err := s.ping(); err != nil {
			return "ping after it: " + err.Error()
		}
		return ""
	}
	a, err := s.call(in.tool, in.args)
	if err != nil {
		return err.Error()
	}
	text := a.text()
	said := strings.ToLower(text)
	switch {
	case text == "" && in.tool != "slice": // slice may be asked for a line end only
		return "an answer of nothing"
	case strings.Contains(text, badSecret):
		return "it shows what stands outside the root"
	case a.failed && strings.IndexByte(text+"\n", '\n') > mostError:
		return fmt.Sprintf("an error of %d bytes: %.300s", strings.IndexByte(text+"\n", '\n'), text)
	case utf8.RuneCountInString(text) > mostShown:
		return fmt.Sprintf("an answer of %d characters", utf8.RuneCountInString(text))
	case a.failed && echoes(strings.SplitN(text, "\n", 2)[0], in.bad): // results after the first line may contain it
		return fmt.Sprintf("it repeats the argument: %.400s", text)
	case in.Works && in.tool == "read" && !strings.Contains(text, badWord):
		return "it should be readable: " + text
	// before it got to what is wrong
	case a.failed && (strings.Contains(text, "timed out") || strings.Contains(text, "the call was stopped")):
		return ""
	case in.Says != "" && (!a.failed || !strings.Contains(said, strings.ToLower(in.Says))):
		return fmt.Sprintf("it should fail and say %q: %.300s", in.Says, text)
	case in.Want != "" && a.blocks[len(a.blocks)-1] != in.Want:
		return fmt.Sprintf("it should be %s: %.300s", in.Want, text)
	}
	return ""
}

// echoes reports whether a text repeats more of an argument than is allowed.
func echoes(text, argument string) bool {
	if len(argument) <= mostEcho {
		return false
	}
	for _, at := range []int{0, 1, len(argument) / 2, len(argument) - mostEcho} {
		if strings.Contains(text, argument[at:min(len(argument), at+mostEcho)]) {
			return true
		}
	}
	return false
}

// endure sends all inputs to one server in rounds, each round in another order.
//
// A round sends only one in share inputs, a different one each time.
func endure(
	s *stdioClient, inputs []badInput, rounds, share int, seed uint64, each func(round int),
) (cases int, failures []string) {
	random := rand.New(rand.NewPCG(seed, seed))
	for round := range rounds {
		for _, i := range random.Perm(len(inputs)) {
			if i%share != round%share {
				continue
			}
			cases++
			if wrong := inputs[i].wrong(s); wrong != "" {
				failures = append(failures, fmt.Sprintf("%.200s: %s", inputs[i].name, wrong))
			}
			if !s.running() {
				return cases, append(failures, fmt.Sprintf("%.200s: the server has ended: %.16000s", inputs[i].name, &s.log))
			}
		}
		each(round)
	}
	return cases, failures
}

// badSeed is the fixed seed of the ordinary run, so that failures repeat; at full size each run has its own seed.
const badSeed = 20261121

func TestS6NoInputKillsTheServer(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	deadline := promise.Size(40*time.Millisecond, 100*time.Millisecond)
	seed := promise.Size(uint64(badSeed), rand.Uint64())
	root, fill := badRoot(t)
	s := serveStdio(
		t, root, "--store", filepath.Join(filepath.Dir(root), "store"), "--call-timeout", deadline.String(), "--jq-memory",
		"64MiB", "--jq-idle", "1s", "--quota", "64MiB",
	)
	inputs := badInputs(t, fill)
	rounds, share := promise.Size(2, 20), promise.Size(3, 1)
	if testing.Short() && !promise.Full() {
		share = 8
	}
	descriptors := 0
	cases, failures := endure(s, inputs, rounds, share, seed, func(round int) {
		if !waitFor(5*time.Minute, func() bool { return len(s.children()) == 0 }) {
			t.Errorf("round %d left processes: %v", round, s.children())
		}
		if round == 0 {
			descriptors = s.descriptors()
		} else if !waitFor(5*time.Minute, func() bool {
			return s.descriptors() <= descriptors+
				4
		}) { // the runtime may keep one or two of its own, and what a call read is closed behind its answer
			t.Errorf("round %d: %d descriptors are open, %d after the first", round, s.descriptors(), descriptors)
		}
	})
	report(t, failures)
	expect.OK(t, s.ping())
	if a, err := s.call("read", map[string]any{"path": "ok.txt"}); err != nil || !strings.Contains(a.text(), badWord) {
		t.Errorf("after all of it: %v %s", err, a.text())
	}
	for _, line := range s.broken {
		t.Errorf("a line that is no JSON-RPC: %s", line)
	}
	for _, m := range s.unasked {
		if m.size > 10_000 && m.Error != nil {
			t.Errorf("an error of %d bytes: %.200s", m.size, m.Error.Message)
		}
	}

	// The control: a naive server without checks.
	exe := expect.Value(os.Executable())(t)
	cmd := exec.Command(exe) //nolint:noctx // killed at the test's end
	cmd.Env = append(os.Environ(), roleKey+"=fragile", "GOMEMLIMIT=1GiB")
	cmd.Dir = root
	var mild []badInput // inputs that harm only the process itself
	for _, in := range inputs {
		if in.frame != nil && !in.Large || in.Says != "" {
			mild = append(mild, in)
		}
	}
	fragile := connect(t, cmd, launch{})
	fragile.limit = 2 * time.Second
	_, control := endure(fragile, mild, 1, 1, seed, func(int) {})
	promise.Keptf(t, promise.Proof{Promise: "S6", Cases: cases, Failures: len(failures), Control: len(control)},
		"%d inputs, %d rounds in random order (seed %d), one process, answers ping, %d descriptors, peak %d MiB; %d answers to raw lines",
		len(inputs), rounds, seed, s.descriptors(), s.peak()>>20, len(s.unasked))
}
