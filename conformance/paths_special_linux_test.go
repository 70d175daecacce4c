package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// special is a thing that is no ordinary file, and what a tool may say of it.
type special struct {
	name string
	// Either of: one clear error; text that holds this ("" where there is nothing to hold).
	fails bool
	holds string
	lists bool // it may be walked: search and find answer
}

// specials makes them below dir. What this machine does not let be made is told.
func specials(t testing.TB, dir string) (all []special, missing []string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("ok.txt"), "a plain word\n")
	expect.Must(t, unix.Mkfifo(at("fifo"), 0o644))
	// Nobody listens: the path of a root is often too long for that.
	expect.Must(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0))
	expect.Must(t, os.MkdirAll(at("directory/below"), 0o755))
	write(t, at("directory/below/x"), "a plain word\n")
	for link, target := range map[string]string{
		"to-fifo":    "fifo",
		"to-socket":  "socket",
		"to-zero":    "/dev/zero",
		"to-tty":     "/dev/tty",
		"to-environ": "/proc/self/environ",
		"loop":       "loop",
		"loop-a":     "loop-b",
		"loop-b":     "loop-a",
		"dangling":   "nothing",
		"to-self":    "to-self/x",
		"chain-0":    "ok.txt",
	} {
		symlink(t, target, at(link))
	}
	for i := range 45 {
		symlink(t, fmt.Sprintf("chain-%d", i), at(fmt.Sprintf("chain-%d", i+1)))
	}
	for _, name := range []string{
		"fifo", "socket", "to-fifo", "to-socket", "to-zero", "to-tty", "to-environ", "loop", "loop-a", "dangling", "to-self",
		"chain-45", "ok.txt/", "missing",
	} {
		all = append(all, special{name: name, fails: true})
	}
	all = append(
		all, special{name: "directory", fails: true, lists: true}, special{name: "chain-9", holds: "a plain word"},
	)

	for _, d := range []struct {
		name         string
		mode         uint32
		major, minor uint32
	}{
		{"null", unix.S_IFCHR, 1, 3},
		{"zero", unix.S_IFCHR, 1, 5},
		{"random", unix.S_IFCHR, 1, 8},
		{"tty", unix.S_IFCHR, 5, 0},
		{"console", unix.S_IFCHR, 5, 1},
		{"disk", unix.S_IFBLK, 7, 0},
	} {
		if err := unix.Mknod(at(d.name), d.mode|0o600, int(unix.Mkdev(d.major, d.minor))); err != nil {
			missing = append(missing, d.name)
			continue
		}
		all = append(all, special{name: d.name, fails: true})
	}

	secret := "a word behind a closed door\n"
	write(t, at("closed"), secret)
	expect.Must(t, os.Chmod(at("closed"), 0))
	write(t, at("closed-dir/x"), secret)
	expect.Must(t, os.Chmod(at("closed-dir"), 0))
	t.Cleanup(func() { _ = os.Chmod(at("closed-dir"), 0o700) })
	if os.Geteuid() == 0 { // to whom no door is closed
		all = append(
			all, special{name: "closed", holds: "a word behind"}, special{name: "closed-dir/x", holds: "a word behind"},
		)
	} else {
		all = append(all, special{name: "closed", fails: true}, special{name: "closed-dir/x", fails: true})
	}

	sparse := expect.Value(os.Create(at("sparse")))(t)
	if err := sparse.Truncate(1 << 40); err != nil { // the file system has no files of 1 TiB
		expect.Must(t, sparse.Truncate(1<<32))
		missing = append(missing, "a sparse file of 1 TiB (4 GiB instead)")
	}
	expect.Must(t, sparse.Close())
	all = append(all, special{name: "sparse"})
	return all, missing
}

// changing makes a file that grows and one that is cut and written again, until stop is called.
func changing(t testing.TB, dir string) (stop func()) {
	t.Helper()
	line := strings.Repeat("a plain word\n", 512)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, name := range []string{"growing", "cut"} {
		f := expect.Value(os.Create(filepath.Join(dir, name)))(t)
		expect.Value(f.WriteString(line))(t)
		wg.Go(func() {
			defer func() { _ = f.Close() }()
			for size := 0; ; size += len(line) {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
				if name == "cut" || size > 64<<20 {
					if err := f.Truncate(0); err != nil {
						return
					}
					if _, err := f.Seek(0, 0); err != nil {
						return
					}
					size = 0
				}
				if _, err := f.WriteString(line); err != nil {
					return
				}
			}
		})
	}
	return func() { close(done); wg.Wait() }
}

// perTool are calls that look into one thing.
var perTool = map[string]func(name string) map[string]any{
	"search":        func(n string) map[string]any { return map[string]any{"pattern": "word", "path": n, "all": true} },
	"search (glob)": func(n string) map[string]any { return map[string]any{"pattern": "word", "glob": n, "all": true} },
	"find":          func(n string) map[string]any { return map[string]any{"path": n, "show": "stat"} },
	"find (glob)":   func(n string) map[string]any { return map[string]any{"glob": n, "show": "stat"} },
	"read":          func(n string) map[string]any { return map[string]any{"path": n} },
	"grep":          func(n string) map[string]any { return map[string]any{"source": n, "pattern": "word", "limit": 5} },
	"jq": func(n string) map[string]any {
		return map[string]any{"source": n, "filter": ".", "text": true, "limit": 3}
	},
	"slice":         func(n string) map[string]any { return map[string]any{"source": n, "lines": "1-3"} },
	"slice (bytes)": func(n string) map[string]any { return map[string]any{"source": n, "bytes": "0-99"} },
}

// meets says what is wrong with an answer to a call on a special file.
func meets(tool string, s special, a answer) string {
	text := a.text()
	short := len(text) <= 700 && strings.Count(text, "\n") <= 1
	switch {
	case strings.Contains(tool, "glob") || strings.HasPrefix(tool, "find") && (s.lists || !s.fails || s.name == "fifo" ||
		s.name == "socket"):
		// These name what stands there, and pass over what is no file; what they say is no error.
		if len(text) > 20_000 {
			return "too much is said"
		}
	case s.lists && strings.HasPrefix(tool, "search"):
		if !strings.Contains(text, "a plain word") {
			return "the directory was not searched"
		}
	case s.fails && strings.HasPrefix(tool, "find"): // links and devices are entries: named, or refused
		if !short {
			return "too much is said"
		}
	case s.fails && !a.failed:
		return "it should be refused"
	case s.fails && !short:
		return "the error is not one short line"
	case a.failed && !short:
		return "the error is not one short line"
	case s.holds != "" && !a.failed && !strings.Contains(text, s.holds):
		return "the content is not right"
	case s.holds != "" && a.failed:
		return "it should be shown"
	}
	if strings.Contains(text, "PATH=") || strings.Contains(text, "GOCACHE") {
		return "an environment is shown"
	}
	return ""
}

// slow is what no answer about a special file may take: one that is slower is asked for again, and counts where it
// stays so.
const slow = 100 * time.Millisecond

// trySpecials makes every call on every special file, and counts what hangs or is answered wrongly.
func trySpecials(t testing.TB, c *stdioClient, all []special, fail func(string)) (took []time.Duration) {
	for _, s := range all {
		for tool, args := range perTool {
			name, _, _ := strings.Cut(tool, " ")
			start := time.Now()
			a, err := c.call(name, args(s.name))
			once := time.Since(start)
			for range 3 { // it may have been the machine that was busy
				if err != nil || once <= slow {
					break
				}
				start = time.Now()
				a, err = c.call(name, args(s.name))
				once = min(once, time.Since(start))
			}
			took = append(took, once)
			if err != nil {
				fail(fmt.Sprintf("%s %s: %v", tool, s.name, err))
				if !errors.Is(err, errNoAnswer) {
					return took
				}
			} else if wrong := meets(tool, s, a); wrong != "" {
				fail(fmt.Sprintf("%s %s: %s: %.200q", tool, s.name, wrong, a.text()))
			}
		}
	}
	return took
}

// Special files never hang or flood: each tool answers of each with one clear error or what it holds.
func TestS4SpecialFiles(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	dir := t.TempDir()
	all, missing := specials(t, dir)
	var faults []string
	fail := func(what string) { faults = append(faults, what) }
	c := serveStdio(t, dir)
	took := trySpecials(
		t, c, slices.DeleteFunc(slices.Clone(all), func(s special) bool { return s.name == "sparse" }), fail,
	)

	// A sparse file is as large as it says: what goes through it to its end ends with the call.
	sparse := serveStdio(t, dir, "--call-timeout", "300ms")
	big := trySpecials(t, sparse, []special{{name: "sparse"}}, fail)

	stop := changing(t, dir)
	took = append(took, trySpecials(t, c, []special{{name: "growing", holds: "a plain word"}}, fail)...)
	moving := trySpecials(t, c, []special{{name: "cut"}}, fail) // it may hold nothing for a moment
	stop()
	took = append(took, moving...)

	// The kernel's files say that they are empty, and some have no end or wait.
	proc := serveStdio(t, "/proc", "--call-timeout", "5s")
	kernel := []special{
		{name: "version", holds: ""},
		{name: "self/status", holds: ""},
		{name: "cpuinfo"},
		{name: "self/maps"},
		{name: "self/clear_refs", fails: true},
		{name: "self/mem", fails: true},
		{name: "kmsg", fails: true},
		{name: "self/pagemap"},
		{name: "sysrq-trigger", fails: true},
	}
	kernel = slices.DeleteFunc(kernel, func(s special) bool {
		_, err := os.Stat("/proc/" + s.name)
		return err != nil || s.fails && os.Geteuid() != 0
	})
	var waiting []time.Duration // these may wait a second
	for _, s := range kernel {
		for tool, args := range perTool {
			if strings.Contains(tool, "glob") {
				continue // all of /proc is another matter
			}
			name, _, _ := strings.Cut(tool, " ")
			start := time.Now()
			a, err := proc.call(name, args(s.name))
			waiting = append(waiting, time.Since(start))
			if err != nil {
				fail(fmt.Sprintf("%s %s: %v", tool, s.name, err))
			} else if tool == "read" && s.name == "version" && !strings.Contains(a.text(), "Linux") || tool == "read" &&
				s.name == "self/status" && !strings.Contains(a.text(), "Pid:") {
				fail(fmt.Sprintf("%s %s: %.200q", tool, s.name, a.text()))
			} else if s.fails && !a.failed && tool != "find" {
				fail(fmt.Sprintf("%s %s: it should be refused: %.200q", tool, s.name, a.text()))
			} else if len(a.text()) > 60_000 {
				fail(fmt.Sprintf("%s %s: %d bytes", tool, s.name, len(a.text())))
			}
		}
	}

	// The control: opened as any file is.
	control, w := 0, launch{program: weak.binary(t), flags: []string{"--root", dir}}.stdio(t)
	w.limit = 500 * time.Millisecond
	for _, tool := range []string{"read", "grep", "slice"} {
		if _, err := w.call(tool, perTool[tool]("fifo")); err != nil {
			control++
		}
	}
	w.kill() // it waits for ever
	slices.Sort(took)
	p99 := took[len(took)*99/100].Round(time.Millisecond)
	if most := took[len(took)-1]; promise.Full() && most > slow {
		fail(fmt.Sprintf("answered within %s, four times; promised %s", most, slow))
	}
	report(t, faults)
	kinds := len(all) + 2 + len(kernel)
	figures := fmt.Sprintf("%d kinds, p50 %s, p99 %s, most %s; sparse at most %s, kernel files at most %s", kinds, took[len(took)/2].Round(time.Millisecond), p99, took[len(took)-1].Round(time.Millisecond),
		slices.Max(big).Round(time.Millisecond), slices.Max(waiting).Round(time.Millisecond))
	if len(missing) > 0 {
		figures += "; not to be made here: " + strings.Join(missing, ", ")
	}
	promise.Kept(t, promise.Proof{
		Promise:  "S4",
		Cases:    len(took) + len(big) + len(waiting),
		Failures: len(faults),
		Control:  control,
		Figures:  figures,
	})
}
