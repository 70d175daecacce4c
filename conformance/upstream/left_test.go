//go:build linux

package upstream_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// endings are the ways in which wrap ends. "" closes its standard input; the others are signals.
var endings = []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGHUP}

// runOnce starts a command, opens a session, calls a tool and ends the command. With early it is ended while the server
// may still be starting.
func runOnce(command []string, by syscall.Signal, early bool) error {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it is ended below, in one of several ways
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if !early {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"import","arguments":{}}}`+"\n")
		lines := bufio.NewReader(out)
		for line := ""; err == nil && !strings.Contains(line, `"id":2`); {
			line, err = lines.ReadString('\n')
		}
	}
	if by == 0 {
		_ = in.Close()
	} else if err := cmd.Process.Signal(by); err != nil {
		return err
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	_, _ = io.Copy(io.Discard, out) // until the process ends
	_ = cmd.Wait()                  // a signal is an error
	_ = in.Close()
	if !late.Stop() {
		return fmt.Errorf("it does not end by signal %d", by)
	}
	return err
}

// leftAfter returns the processes with a mark that are left after a time.
func leftAfter(limit time.Duration, mark string) map[int]string {
	left := processesWith(mark)
	for end := time.Now().Add(limit); len(left) > 0 && time.Now().Before(end); left = processesWith(mark) {
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

// TestS10ServersEndWithWrap starts and ends 20 servers at once, again and again: healthy ones, some that ignore
// SIGTERM, some that leave processes of their own, also in other sessions. However wrap ends, no process is left.
// The control runs the servers without wrap.
func TestS10ServersEndWithWrap(t *testing.T) {
	inParallel(t)
	promise.OrdinaryRun(t)
	const servers = 20
	times := promise.Size(3, 500)
	faults := []string{"none", "grandchildren", "ignores SIGTERM", "modern"}
	proof := promise.Proof{Promise: "S10", Cases: servers * times}
	mark := filepath.Join(t.TempDir(), "mark")
	var all sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	for i := range servers {
		store, state := t.TempDir(), fmt.Sprintf("%s-%02d", mark, i)
		all.Go(func() {
			for n := range times {
				fault, by := faults[(i+n)%len(faults)], endings[(i+n/len(faults))%len(endings)]
				err := runOnce(wrapped(store, sick(fault, state)...), by, (i+n)%7 == 6)
				began := time.Now()
				left := leftAfter(5*time.Minute, state)
				mu.Lock()
				took = append(took, time.Since(began))
				if err != nil || len(left) > 0 {
					proof.Failures++
					t.Errorf("%s, signal %d: %v: left: %v", fault, by, err, left)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i, fault := range faults {
		control := fmt.Sprint(mark, "-control", i)
		expect.OK(t, runOnce(sick(fault, control), syscall.SIGKILL, false))
		left := leftAfter(200*time.Millisecond, control)
		proof.Control += len(left)
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it was started here
		}
	}
	slices.Sort(took)
	proof.Figures = fmt.Sprintf("%d upstreams started and ended %d times, in %d ways; after wrap has ended the last process "+
		"is gone within %s; control: without wrap", servers, times, len(endings)+1, took[len(took)-1].Round(time.Millisecond))
	promise.Kept(t, proof)
}
