//go:build unix

package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// canary stands for the text of a conversation.
const canary = "CANARY"

// record is a line of Claude Code with a canary wherever a conversation has text.
func record(tokens string) string {
	return `{"type":"assistant","cwd":"/` + canary + `","gitBranch":"` + canary + `","message":{"id":"msg_1","content":
		[{"type":"text","text":"` + canary + `"},
		{"type":"thinking","thinking":"` + canary + `","signature":"` + canary + `"}],
		"usage":{"input_tokens":` + tokens + `,"service_tier":"` + canary + `"}}}`
}

// oneLine makes a line of a record.
func oneLine(record string) []byte {
	return append(bytes.ReplaceAll([]byte(record), []byte("\n"), nil), '\n')
}

// TestS33SessionFilesGiveNumbersOnly tries files that must be refused, and files whose text must not be passed on. The
// control reads the whole of any file and passes lines on.
func TestS33SessionFilesGiveNumbersOnly(t *testing.T) {
	failures, cases := tryFiles(t, Clients["claude"].Last)
	control, _ := tryFiles(t, func(path string) (Usage, error) {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return Usage{}, err
		}
		defer func() { _ = f.Close() }()
		b := make([]byte, 2*maxTail)
		n, _ := f.Read(b) // to the end of a FIFO it would wait
		u, err := Clients["claude"].lastIn(b[:n])
		if err != nil && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w: %s", err, b[:n])
		}
		return u, err
	})
	for _, f := range failures {
		t.Error(f)
	}
	promise.Keptf(t, promise.Proof{Promise: "S33", Cases: cases, Failures: len(failures), Control: len(control)},
		"a link, a FIFO, a socket, a device, another user's file, a record before the last 4 MiB, text in 5 fields")
}

// tryFiles returns what a reader of session files does wrong.
func tryFiles(t *testing.T, from func(string) (Usage, error)) (failures []string, cases int) {
	dir := t.TempDir()
	whole := written(t, "whole.jsonl", oneLine(record("77")))
	early := append(oneLine(record("77")), bytes.Repeat([]byte("{}\n"), maxTail/3+1)...)
	refused := map[string]string{
		"link": filepath.Join(
			dir,
			"link",
		), "FIFO": filepath.Join(dir, "fifo"), "socket": filepath.Join(dir, "socket"),
		"device": "/dev/null", "directory": dir, "another user's": foreign(t),
		"an early record": written(t, "e.jsonl", early),
	}
	expect.Must(t, os.Symlink(whole, refused["link"]))
	expect.Must(t, syscall.Mkfifo(refused["FIFO"], 0o600))
	fifo := expect.Value(os.OpenFile(refused["FIFO"], os.O_RDWR|syscall.O_NONBLOCK, 0))(t)
	defer func() { _ = fifo.Close() }()
	expect.Value(fifo.Write(oneLine(record("77"))))(t)
	listener := expect.Value(net.Listen("unix", refused["socket"]))(t)
	defer func() { _ = listener.Close() }()
	for kind, path := range refused {
		cases++
		if u, err := from(path); err == nil {
			failures = append(failures, fmt.Sprintf("%s: %+v", kind, u))
		}
	}
	for _, tokens := range []string{"77", `"` + canary + `"`, `{"a":"` + canary + `"}`, "-7", "null"} {
		cases++
		u, err := from(written(t, "s.jsonl", oneLine(record(tokens))))
		b, _ := json.Marshal(u)
		if text := string(b) + fmt.Sprint(err); strings.Contains(text, canary) {
			failures = append(failures, fmt.Sprintf("input_tokens %s: %s", tokens, text))
		}
	}
	return failures, cases
}

// foreign returns a file of another user with a record, or one without if this user cannot make one.
func foreign(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/etc/passwd"
	}
	path := written(t, "foreign.jsonl", oneLine(record("77")))
	expect.Must(t, os.Chown(path, 65534, 65534))
	return path
}
