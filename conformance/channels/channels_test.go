// Package channels starts what is published of a commit as its users get it: each channel in a directory that holds
// only what the channel may expect, up to a first receipt, and with a look at all that it installs besides the program.
//
// An ordinary run makes the small form of a release once, from a clone of HEAD: changes that are not committed are not
// in it, and what it does not make is skipped by name. With CHANNELS_DIST=DIR, a directory that make release made, it
// checks all of that; make channels does both.
package channels

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// work has what this process makes for all tests: clones and releases.
var work string

func TestMain(m *testing.M) { os.Exit(inWork(m)) }

func inWork(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "channels"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// clone is the checkout's last commit, as others get it: go finds no version in a linked work tree.
var clone = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(work, "clone")
	out, err := exec.Command("git", "clone", "-q", "--no-hardlinks", "../..", dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git clone: %w\n%s", err, out)
	}
	return dir, err
})

var small = sync.OnceValues(func() (string, error) {
	checkout, err := clone()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("scripts/release/release", "-small", "-dist", filepath.Join(work, "dist"))
	cmd.Dir = checkout
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("release: %w\n%s", err, out)
	}
	return filepath.Join(work, "dist"), nil
})

// dist returns the directory of a release: that of CHANNELS_DIST, else the small form, made once in this process.
func dist(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("CHANNELS_DIST"); dir != "" {
		if !filepath.IsAbs(dir) { // scripts name it from the top of the checkout
			dir = filepath.Join("../..", dir)
		}
		return expect.Value(filepath.Abs(dir))(t)
	}
	needsCheckout(t)
	return expect.Value(small())(t)
}

// needsCheckout skips a test where there is no commit, as in a source archive.
func needsCheckout(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("git", "rev-parse", "HEAD").CombinedOutput(); err != nil {
		t.Skipf("no git checkout: a release is made of a commit: %v, %s", err, out)
	}
}

// lineCount is the number of lines of a root's file: more than a result that is shown whole has.
const lineCount = 400

// writeLines makes the file of a root that firstReceipt searches.
func writeLines(t testing.TB, root string) {
	t.Helper()
	var b strings.Builder
	for i := range lineCount {
		fmt.Fprintf(&b, "line %d of a file\n", i+1)
	}
	expect.Must(t, os.WriteFile(filepath.Join(root, "lines.txt"), []byte(b.String()), 0o644))
}

// answerLimit bounds a whole conversation: a process that hangs is killed.
const answerLimit = time.Minute

// firstReceipt starts a server of stdio as a client does, and asks until it has looked into a receipt: initialize,
// tools/list, a search of root, jq on what it kept; then it closes stdin and expects exit code 0. All that the server
// prints must be messages of the protocol. root has the file of [writeLines], and is a path as the server sees it; if
// it is empty, all roots are searched. It returns what the server wrote to stderr.
func firstReceipt(t testing.TB, cmd *exec.Cmd, root string) string {
	t.Helper()
	var log bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &log, answerLimit
	in, out := expect.Value(cmd.StdinPipe())(t), expect.Value(cmd.StdoutPipe())(t)
	expect.Must(t, cmd.Start())
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		_ = cmd.Process.Kill()
		_ = out.Close() // which a grandchild may hold open
	})()
	stdout := bufio.NewReader(out)
	next := func() (id int, result json.RawMessage, err error) {
		line, err := stdout.ReadBytes('\n')
		if err != nil && len(line) == 0 {
			return 0, nil, err
		}
		var m struct {
			JSONRPC       string
			ID            int
			Method        string
			Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || m.JSONRPC != "2.0" || m.Method == "" && m.Result == nil || err != nil {
			t.Errorf("no message, or an error: %q", line)
		}
		return m.ID, m.Result, err
	}
	last := 0
	ask := func(method string, params any) string {
		t.Helper()
		last++
		request := map[string]any{"jsonrpc": "2.0", "id": last, "method": method, "params": params}
		_ = json.NewEncoder(in).Encode(request) // what has ended does not answer
		for {
			id, result, err := next()
			if err != nil {
				t.Fatalf("no answer to %s: %v, %v\n%s", method, err, cmd.Wait(), &log)
			}
			if id == last {
				return string(result)
			}
		}
	}
	type object map[string]any
	expect.Has(t, ask("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{},
		"clientInfo": object{"name": "channels", "version": "1"}}), `"name":"mcp-funnel"`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	expect.Contains(t, ask("tools/list", object{}), `"search"`, `"jq"`)
	search := object{"pattern": "line"}
	if root != "" {
		search["path"] = root
	}
	receipt := ask("tools/call", object{"name": "search", "arguments": search})
	id := regexp.MustCompile(`kept whole as (obs:\w{12})`).FindStringSubmatch(receipt)
	if id == nil {
		t.Fatalf("no receipt: %s\n%s", receipt, &log)
	}
	filter := object{"source": id[1], "filter": `map(.line)|"lines \(length), sum \(add)"`, "slurp": true}
	expect.Has(t, ask("tools/call", object{"name": "jq", "arguments": filter}),
		fmt.Sprintf("lines %d, sum %d", lineCount, lineCount*(lineCount+1)/2), "jq of the receipt")
	expect.Must(t, in.Close())
	for {
		if _, _, err := next(); err != nil {
			break
		}
	}
	expect.Must(t, cmd.Wait(), "%s: %s", cmd, &log)
	return log.String()
}
