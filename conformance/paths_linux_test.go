package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// What lies outside the roots, and must not show in any answer, whatever is asked.
const (
	canaryText = "canary-text-8c1f"
	canaryName = "canary-name-51ad"
	canarySize = 48613
	canaryYear = "1999-08-07"
)

// canarySized finds the size as a number of its own: its digits may stand in an ID, or in the name of a directory for
// tests.
var canarySized = regexp.MustCompile(`\b` + strconv.Itoa(canarySize) + `\b`)

var canaryTime = time.Date(1999, 8, 7, 6, 5, 4, 0, time.UTC)

// surroundings are two roots and what lies around them. Of what is outside there are names that exist and their twins
// that do not: "secret" and "secrex", "known" and "knowx", "vault" and "vaulx", links called e-… and f-….
type surroundings struct{ parent, root, second, store string }

func surround(t testing.TB) surroundings {
	t.Helper()
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	s := surroundings{parent, parent + "/root", parent + "/second", parent + "/state"}
	for _, path := range []string{
		"secret.txt", "vault/known.txt", "vault/" + canaryName, "vault/inner/" + canaryName, "root-evil/known.txt",
		"root-evil/" + canaryName,
	} {
		path = filepath.Join(parent, path)
		write(t, path, canaryText+strings.Repeat(" ", canarySize-len(canaryText)-1)+"\n")
	}
	write(t, s.root+"/ok.txt", "an inside word\n")
	write(t, s.root+"/sub/in.txt", "an inside word\n")
	write(t, s.root+"/sub/sub/in.txt", "an inside word\n")
	write(t, s.second+"/ok.txt", "an inside word\n")
	links := map[string]string{
		"out":    "../secret.txt",
		"abs":    parent + "/secret.txt",
		"dir":    "../vault",
		"dirabs": parent + "/vault",
		"deep":   "sub/sub/../../../secret.txt",
		"evil":   s.root + "-evil/known.txt",
		"dots":   s.root + "/../secret.txt", "far": "../root/../secret.txt", "dotted": "./.././/secret.txt",
	}
	for name, target := range links {
		for prefix, target := range map[string]string{"e-": target, "f-": s.twin(target)} {
			symlink(t, target, filepath.Join(s.root, prefix+name))
			symlink(t, prefix+name, filepath.Join(s.root, prefix+"chain-"+name))
			symlink(t, "../"+prefix+name, filepath.Join(s.root, "sub", prefix+name))
		}
	}
	for name, target := range map[string]string{
		"up":       "..",
		"top":      "/",
		"proc":     "/proc/self/root",
		"cwd":      "/proc/self/cwd",
		"ok-link":  "ok.txt",
		"ok-abs":   s.root + "/ok.txt",
		"sub-link": "sub",
		"self":     ".",
	} {
		symlink(t, target, filepath.Join(s.root, name))
	}
	expect.Must(t, os.Link(s.root+"/ok.txt", s.root+"/ok-hard"))
	expect.Must(t, filepath.WalkDir(parent, func(path string, _ os.DirEntry, err error) error {
		if err == nil && !strings.HasPrefix(path, s.root+"/") && path != parent {
			err = os.Chtimes(path, canaryTime, canaryTime)
		}
		return err
	}))
	return s
}

func symlink(t testing.TB, target, path string) {
	t.Helper()
	expect.Must(t, os.Symlink(target, path))
	same := unix.Timeval{Sec: 1_700_000_000} // answers show it, and are compared
	expect.Must(t, unix.Lutimes(path, []unix.Timeval{same, same}))
}

// outside are names that lead out of the root, or would to somebody, written for what exists there.
func (s surroundings) outside(t testing.TB) []string { return s.named(t, "outside.ndjson") }

// globs are names that may be patterns.
func (s surroundings) globs(t testing.TB) []string { return s.named(t, "outside_globs.ndjson") }

func (s surroundings) named(t testing.TB, file string) (names []string) {
	t.Helper()
	fill := strings.NewReplacer("$PARENT", s.parent, "$ROOT", s.root, "$STORE", s.store)
	for _, name := range corpus.Rows[parts](t, file) {
		names = append(names, fill.Replace(name.String()))
	}
	return names
}

// places are the tools and arguments that take a path.
var places = []struct {
	tool string
	glob bool
	args func(name string) map[string]any
}{
	{"search", false, func(n string) map[string]any { return map[string]any{"pattern": "a", "path": n, "all": true} }},
	{"search", true, func(n string) map[string]any { return map[string]any{"pattern": "a", "glob": n, "all": true} }},
	{"find", false, func(n string) map[string]any { return map[string]any{"path": n, "all": true} }},
	{"find", false, func(n string) map[string]any { return map[string]any{"path": n, "all": true, "show": "stat"} }},
	{"find", true, func(n string) map[string]any { return map[string]any{"glob": n, "all": true, "show": "stat"} }},
	{"read", true, func(n string) map[string]any { return map[string]any{"path": n} }},
	{"grep", false, func(n string) map[string]any { return map[string]any{"source": n, "pattern": "a"} }},
	{"jq", false, func(n string) map[string]any { return map[string]any{"source": n, "filter": ".", "text": true} }},
	{"slice", false, func(n string) map[string]any { return map[string]any{"source": n, "lines": "1-3"} }},
	{"slice", false, func(n string) map[string]any { return map[string]any{"source": n, "bytes": "0-99"} }},
}

// twin is a name's like for what does not exist outside, of the same length.
var twin = strings.NewReplacer(
	"secret", "secrex", "known", "knowx", "vault", "vaulx", "e-", "f-", "inner", "innex",
).Replace

// twin is that of a name or an answer, in which the directory all of it stands in keeps its own, whatever it holds.
func (s surroundings) twin(text string) string {
	parts := strings.Split(text, s.parent)
	for i := range parts {
		parts[i] = twin(parts[i])
	}
	return strings.Join(parts, s.parent)
}

// leaks says what an answer to an argument shows of the outside, and whether it repeats too much of the argument.
func leaks(name string, a answer) string {
	switch {
	case strings.Contains(a.text(), canaryText):
		return "content"
	case strings.Contains(a.text(), canaryName) && !strings.Contains(name, canaryName):
		return "a name"
	case canarySized.MatchString(a.text()):
		return "a size"
	case strings.Contains(a.text(), canaryYear):
		return "a time"
	case a.failed && len(a.text()) > 900:
		return fmt.Sprintf("an error of %d bytes", len(a.text()))
	}
	return ""
}

// tryPaths makes the calls of the proof whose names are wanted, and tells of each what showed of the outside.
func (s surroundings) tryPaths(
	t testing.TB, program string, wanted func(place int, name int, text string) bool, count func(what string),
) (cases int) {
	t.Helper()
	env := append(environment(t), "HOME="+s.parent, "PWD="+s.parent, "XDG_STATE_HOME="+s.parent+"/xdg")
	ask := func(c *stdioClient, tool string, args map[string]any) answer {
		return expect.Value(c.call(tool, args))(t, "%s %.200v", tool, args)
	}
	one := launch{
		program: program,
		env:     env,
		flags:   []string{"--root", s.root, "--store", s.store, "--min-free", "0"},
	}.stdio(t)
	for at, p := range places {
		names := s.outside(t)
		if p.glob {
			names = append(names, s.globs(t)...)
		}
		for i, name := range names {
			if !wanted(at, i, name) {
				continue
			}
			cases++
			there := ask(one, p.tool, p.args(name))
			if leak := leaks(name, there); leak != "" {
				count(fmt.Sprintf("%s %.100q shows %s: %.200q", p.tool, name, leak, there.text()))
				continue
			}
			if other := s.twin(name); other != name {
				if not := ask(one, p.tool, p.args(other)); s.twin(there.text()) != s.twin(not.text()) ||
					there.failed != not.failed {
					count(fmt.Sprintf("%s %.100q tells what exists:\n%.300q\n%.300q", p.tool, name, there.text(), not.text()))
				}
			}
		}
	}
	// Two roots: names begin with that of a root, and none leads from one into the other or beside them.
	two := launch{
		program: program,
		env:     env,
		flags:   []string{"--root", s.root, "--root", s.second, "--store", s.store, "--min-free", "0"},
	}.stdio(t)
	for _, p := range places {
		for _, name := range []string{
			"root/../secret.txt", "second/../secret.txt", "root/../../secret.txt", "../secret.txt", "vault/known.txt",
			"root-evil/known.txt", "root/e-dir/known.txt", "root/e-out", s.parent + "/secret.txt", "second/../vault",
			"root/up/vault/known.txt",
		} {
			cases++
			there, not := ask(two, p.tool, p.args(name)), ask(two, p.tool, p.args(s.twin(name)))
			if leak := leaks(name, there); leak != "" || s.twin(there.text()) != s.twin(not.text()) {
				count(fmt.Sprintf("two roots: %s %.100q shows %s:\n%.300q\n%.300q", p.tool, name, leak, there.text(), not.text()))
			}
		}
	}
	// Printed once is not opened for ever: a `saved to` path and an ID open observations, and no file beside them.
	kept := ask(one, "grep", map[string]any{"source": "ok.txt", "pattern": "inside", "save": true})
	id := shownID.FindString(kept.text())
	if id == "" {
		t.Fatalf("nothing was kept: %s", kept.text())
	}
	for _, name := range []string{
		id + "/../../secret.txt", id + "\x00", id + "/", id + "/known.txt",
		"observation://" + strings.TrimPrefix(id, "obs:") + "/../secret.txt", s.store + "/observations/" + id,
	} {
		cases++
		if a := ask(one, "read", map[string]any{"path": name}); leaks(name, a) != "" || !a.failed {
			count(fmt.Sprintf("read %q: %.200q", name, a.text()))
		}
	}
	return cases
}

// Tools never read, list, stat or change anything outside the roots.
func TestS1NothingOutsideTheRoots(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	s := surround(t)
	before := s.snapshot(t)
	watched := s.watch(t)
	var faults []string
	fail := func(what string) { faults = append(faults, what) }
	every := promise.Size(2, 1)
	if testing.Short() {
		every = 8
	}
	cases := s.tryPaths(t, binary(t), func(place, name int, _ string) bool { return (place+name)%every == 0 }, fail)
	cases += s.tryInside(t, fail)
	cases += s.tryCommandLine(t, fail)
	for _, event := range watched() {
		fail("outside: " + event)
	}
	if after := s.snapshot(t); after != before {
		fail(fmt.Sprintf("what is outside has changed:\n%s\n%s", before, after))
	}
	cases += 2

	report(t, faults)
	// The control: paths are checked by their beginning.
	control, w := 0, surround(t)
	watched = w.watch(t)
	w.tryPaths(t, weak.binary(t), func(_, name int, text string) bool { // nothing that leads it to all of this machine
		return name%10 == 0 && (strings.Contains(text, "known") || strings.Contains(text, "secret")) &&
			!strings.Contains(text, "*")
	}, func(string) { control++ })
	if len(watched()) == 0 {
		t.Error("nobody saw the control open what is outside")
	}
	promise.Keptf(t, promise.Proof{Promise: "S1", Cases: cases, Failures: len(faults), Control: control},
		"%d tools and arguments, each answer compared with that for what does not exist", len(places))
}

// tryInside holds that names that stay inside work: a refusal of everything would keep the promise too.
func (s surroundings) tryInside(t testing.TB, fail func(string)) (cases int) {
	c := serveStdio(t, s.root)
	for _, name := range []string{
		"ok.txt", "./ok.txt", "sub/../ok.txt", "sub//in.txt", s.root + "/ok.txt", s.root + "//sub/./in.txt", "ok-link",
		"ok-abs", "ok-hard", "sub-link/in.txt", "self/self/ok.txt", "sub-link/sub/in.txt",
		strings.Repeat("sub/../", 500) + "ok.txt",
	} {
		for _, p := range places {
			if p.tool == "find" || strings.HasPrefix(fmt.Sprint(p.args("")), "map[all:true glob:") {
				continue // these name entries, and open nothing
			}
			cases++
			if a, err := c.call(p.tool, p.args(name)); err != nil || a.failed || !strings.Contains(a.text(), "inside") {
				fail(fmt.Sprintf("%s %.100q: %.200q %v", p.tool, name, a.text(), err))
			}
		}
	}
	return cases
}

// tryCommandLine makes some of the calls as `mcp-funnel call` does, whose names are relative to the root too.
func (s surroundings) tryCommandLine(t testing.TB, fail func(string)) (cases int) {
	env := append(environment(t), "HOME="+s.parent)
	for i, name := range s.outside(t) {
		if i%9 != 0 || strings.Contains(name, "\x00") || len(name) > 100_000 { // an argument ends at a NUL
			continue
		}
		p := places[i/9%len(places)]
		args := expect.Value(json.Marshal(p.args(name)))(t)
		cases++
		out, errs, code := launch{dir: s.parent, env: env, flags: []string{
			"--root", s.root, "--store", s.store, "--min-free", "0", "call", p.tool, string(args),
		}}.output(t)
		if leak := leaks(name, answer{blocks: []string{out + errs}, failed: code != 0}); leak != "" {
			fail(fmt.Sprintf("call %s %.100q shows %s: %.200q", p.tool, name, leak, out+errs))
		}
	}
	return cases
}

// snapshot is what can be seen of the outside from without.
func (s surroundings) snapshot(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, top := range []string{"secret.txt", "vault", "root-evil"} {
		expect.Must(t, filepath.WalkDir(filepath.Join(s.parent, top), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var at unix.Stat_t
			err = unix.Lstat(path, &at)
			fmt.Fprintf(&b, "%s %o %d %v %v\n", path, at.Mode, at.Size, at.Mtim, at.Ctim)
			return err
		}))
	}
	return b.String()
}

// watch counts what is opened, listed, read or changed outside from here on.
func (s surroundings) watch(t testing.TB) (events func() []string) {
	t.Helper()
	fd := expect.Value(unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC))(t)
	for _, path := range []string{"secret.txt", "vault", "vault/inner", "root-evil"} {
		expect.Value(unix.InotifyAddWatch(fd, filepath.Join(s.parent, path), unix.IN_ALL_EVENTS))(t)
	}
	return func() (seen []string) {
		defer func() { _ = unix.Close(fd) }()
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n <= 0 {
				return seen
			}
			for at := 0; at+unix.SizeofInotifyEvent <= n; {
				mask := uint32(buf[at+4]) | uint32(buf[at+5])<<8 | uint32(buf[at+6])<<16 | uint32(buf[at+7])<<24
				size := int(buf[at+12]) | int(buf[at+13])<<8
				seen = append(seen, fmt.Sprintf("event %#x %s", mask, strings.TrimRight(string(buf[at+16:at+16+size]), "\x00")))
				at += unix.SizeofInotifyEvent + size
			}
		}
	}
}
