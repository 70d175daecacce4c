package files_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// The test binary is also the other process: with this variable it plays a role.
const roleVar = "OBSERVATIONS_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string, args []string) error {
	o := Options{Dir: args[0], MinFree: -1}
	switch role {
	case "read": // one observation, and hold it open until standard input ends
		s, err := OpenStore(o)
		if err != nil {
			return err
		}
		id, err := backend.ParseID(args[1])
		if err != nil {
			return err
		}
		r, err := s.Open(Local, id)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		fmt.Println(sum(b))
		_, _ = io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, r.Close(), s.Close())
	case "work":
		return playWork(args[0], args[1], args[2])
	case "die":
		return playDeath(args[0], args[1], args[2], int(atoi(args[3])), time.Unix(0, atoi(args[4])))
	case "flood":
		return playFlood(args[0], atoi(args[1]), atoi(args[2]), int(atoi(args[3])), atoi(args[4]), args[5])
	}
	return playHere(role, args)
}

func noise(n int) []byte {
	b := make([]byte, n)
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

func atoi(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// another is a process in a role; its lines come in a channel that is closed when it ends.
type another struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan string
	said  strings.Builder
}

func start(t testing.TB, role string, args ...string) *another {
	t.Helper()
	exe := value(os.Executable())
	a := &another{Cmd: exec.CommandContext(t.Context(), exe, args...), lines: make(chan string, 100_000)}
	a.Env = append(os.Environ(), roleVar+"="+role)
	a.Stderr = &a.said
	out := value(a.StdoutPipe())
	a.in = value(a.StdinPipe())
	must(t, a.Start())
	t.Cleanup(func() { _ = a.Process.Kill() })
	go func() {
		defer close(a.lines)
		b := bufio.NewReader(out)
		for {
			line, err := b.ReadString('\n')
			if err != nil { // a line without its end was not said
				return
			}
			a.lines <- strings.TrimSpace(line)
		}
	}()
	return a
}

// rest waits for the end and returns what was said until then.
func (a *another) rest() (lines []string, err error) {
	for l := range a.lines {
		lines = append(lines, l)
	}
	return lines, a.Wait()
}
