package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"

	"golang.org/x/sys/unix"
)

// terminal is the two ends of a pseudo terminal: what a program writes to it, a person sees at screen.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	screen = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { _ = screen.Close() })
	expect.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n := expect.Value(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	program = expect.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = program.Close() })
	return screen, program
}

// see reads the screen until it shows what matches, and returns all it showed.
func see(t *testing.T, screen *os.File, what *regexp.Regexp) string {
	t.Helper()
	var all []byte
	b := make([]byte, 4096)
	_ = screen.SetReadDeadline(time.Now().Add(20 * time.Second))
	for !what.Match(all) {
		n, err := screen.Read(b)
		all = append(all, b[:n]...)
		expect.Must(t, err, "the screen shows %q", all)
	}
	return string(all)
}

// start runs a command line, and returns a channel that gets its exit code.
func start(ctx context.Context, in io.Reader, out, screen io.Writer, words ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- run(ctx, words, in, out, screen) }()
	return code
}

// settled makes run's settings those of the test alone.
func settled(t *testing.T) []string {
	return []string{"--store", filepath.Join(t.TempDir(), "store"), "--min-free", "0", "--root", t.TempDir()}
}

var keepBar = regexp.MustCompile(`\r\x1b\[Kkeep: \d+\.\d KiB  \d+(\.\d KiB| bytes)/s  \d+(\.\d)?s`)

// At a terminal a person sees how far a long keep is, and no trace of it at its end.
func TestKeepShowsABarAtATerminal(t *testing.T) {
	screen, program := terminal(t)
	in, pipe, err := os.Pipe()
	expect.Must(t, err)
	defer func() { _ = in.Close() }()
	var out bytes.Buffer
	code := start(context.Background(), in, &out, program, append(settled(t), "keep")...)
	seen := make(chan struct{})
	go func() {
		defer func() { _ = pipe.Close() }()
		for line := strings.Repeat("x", 99) + "\n"; ; time.Sleep(20 * time.Millisecond) {
			if _, err := io.WriteString(pipe, strings.Repeat(line, 20)); err != nil {
				return
			}
			select {
			case <-seen:
				return
			default:
			}
		}
	}()
	see(t, screen, keepBar)
	close(seen)
	if c := <-code; c != done || !strings.HasPrefix(out.String(), "SAVED as obs:") {
		t.Errorf("code %d, answer %q", c, out.String())
	}
	_, _ = program.WriteString("$ ")
	rest := see(t, screen, regexp.MustCompile(`\$ $`))
	if !strings.HasSuffix(rest, "\r\x1b[K$ ") {
		t.Errorf("behind the end the screen shows %q", rest)
	}
}

// A call that takes long shows its tool's progress; one that is stopped leaves a clean line too.
func TestCallShowsABarAtATerminal(t *testing.T) {
	screen, program := terminal(t)
	settings := settled(t)
	big, err := os.Create(filepath.Join(settings[len(settings)-1], "big.txt"))
	expect.Must(t, err)
	_, err = big.WriteString(strings.Repeat("many words\n", 20_000))
	if err == nil {
		err = big.Truncate(64 << 30) // a hole: it takes no room, and longer than a second to be read
	}
	if err != nil {
		t.Skipf("no file with a hole here: %v", err)
	}
	_ = big.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	code := start(ctx, strings.NewReader(""), io.Discard, program,
		append(settings, "call", "grep", "source=big.txt", "pattern=not there")...)
	see(t, screen, regexp.MustCompile(
		`\r\x1b\[Kgrep: \[#* *\] +\d+ %  \d+\.\d [KMG]iB of 64\.0 GiB read  \d+\.\d [KMG]iB/s  \d+(\.\d)?s`,
	))
	stop()
	if c := <-code; c == done {
		t.Error("a call that was stopped is done")
	}
	_, _ = program.WriteString("$ ")
	if rest := see(t, screen, regexp.MustCompile(`\$ $`)); !strings.Contains(rest, "\r\x1b[K") ||
		strings.Contains(rest[strings.LastIndex(rest, "\x1b[K"):], "grep: [") {
		t.Errorf("behind the end the screen shows %q", rest)
	}
}

// Ctrl-C during the first question keeps what is indexed, and says so.
func TestAskKeepsTheIndexWhenItIsStopped(t *testing.T) {
	screen, program := terminal(t)
	settings := settled(t)
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "The lease of house %d ends.\n", i)
	}
	for i := range 60 {
		write(t, filepath.Join(settings[len(settings)-1], fmt.Sprintf("%02d.txt", i)), text.String())
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	code := start(ctx, strings.NewReader(""), io.Discard, program, append(settings, "ask", "when does the lease end")...)
	see(t, screen, regexp.MustCompile(`\r\x1b\[Kask: \[#+ *\] +[3-9]\d %  \d+\.\d MiB of \d\d\.\d MiB indexed `))
	stop()
	said := see(t, screen, regexp.MustCompile(`stopped; .*\n`))
	if c := <-code; c != failed {
		t.Errorf("code %d", c)
	}
	kept := regexp.MustCompile(`stopped; ([1-9]\d*) of 60 files are indexed, and the next question goes on`).FindStringSubmatch(said)
	if kept == nil {
		t.Fatalf("the screen shows %q", said)
	}
	_, out, _ := runs(t, append(settings, "index", "status")...)
	expect.Contains(t, out, ": "+kept[1]+" of 60 files indexed")
}

// Where standard error is a file or a pipe there is no bar, however long it takes.
func TestNoBarWhereThereIsNoTerminal(t *testing.T) {
	file := expect.Value(os.Create(filepath.Join(t.TempDir(), "stderr")))(t)
	defer func() { _ = file.Close() }()
	r, w, err := os.Pipe()
	expect.Must(t, err)
	for _, to := range []io.Writer{file, w, &bytes.Buffer{}} {
		b := cli.NewBar(to, "keep", time.Now().Add(-time.Hour))
		b.Progress(1000, 0, "bytes")
		b.End()
	}
	_ = w.Close()
	piped, err := io.ReadAll(r)
	if at, e := file.Seek(0, io.SeekCurrent); e != nil || err != nil || at > 0 || len(piped) > 0 {
		t.Errorf("%d bytes in the file, %q in the pipe", at, piped)
	}
	// The same at a terminal draws: the control.
	screen, program := terminal(t)
	b := cli.NewBar(program, "keep", time.Now().Add(-time.Hour))
	b.Progress(1000, 0, "bytes")
	b.End()
	see(t, screen, regexp.MustCompile(`\r\x1b\[Kkeep: 1000 bytes  0 bytes/s  1h0m0s\r\x1b\[K`))
}

// A person who starts the server at a terminal is told what it waits for, and how to end it.
func TestServeSaysAtATerminalThatItWaits(t *testing.T) {
	_, program := terminal(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, complaints strings.Builder
	_ = run(ctx, append(settled(t), "serve"), program, &out, &complaints)
	expect.Contains(t, complaints.String(), "waiting for its messages", "Ctrl-D ends it")
	newCommandLine(t).expect(done, "", "", "serve") // to a program it says nothing
}

// A server that may look into nothing says so once.
func TestServeSaysThatThereIsNoRoot(t *testing.T) {
	t.Chdir("/")
	code, _, said := runs(t, "--store", filepath.Join(t.TempDir(), "store"), "serve")
	if code != done || strings.Count(said, "no root: ") != 1 {
		t.Errorf("code %d: %s", code, said)
	}
}

// At a terminal install asks, and writes only after a yes.
func TestInstallAsksAtATerminal(t *testing.T) {
	for answer, written := range map[string]bool{"y\n": true, "\n": false, "no\n": false} {
		screen, program := terminal(t)
		file := filepath.Join(t.TempDir(), "mcp.json")
		code := start(context.Background(), program, program, program,
			append(settled(t), "install", "cursor", "--file", file)...)
		see(t, screen, regexp.MustCompile(`\+ .*funnel(?s:.*)Write this\? \(y/N\) `))
		expect.Value(io.WriteString(screen, answer))(t)
		want := regexp.MustCompile(map[bool]string{true: "written: ", false: "nothing is written"}[written])
		see(t, screen, want)
		if c := <-code; c != failed { // this test is no server, so that its start fails
			t.Errorf("%q: code %d", answer, c)
		}
		if _, err := os.Stat(file); (err == nil) != written {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
