package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Every file operation of a whole call fails: the answer is complete, with all counts, and says `kept` only if the
// output is stored; else it says why it is not.
func TestS13AnswerOnFailingDisk(t *testing.T) {
	place := scratch(t)
	counter := tokens.New(tokens.O200k)
	call := func(size, nth int, fault error, sticky bool) (wrong []string, failed bool) {
		note := func(format string, args ...any) {
			wrong = append(
				wrong,
				fmt.Sprintf("%d bytes, operation %d, %v, sticky %v: ", size, nth, fault, sticky)+fmt.Sprintf(format, args...),
			)
		}
		dir := filepath.Join(place, "store")
		defer func() { _ = os.RemoveAll(dir) }()
		s := expect.Value(observations.OpenStore(observations.Options{Dir: dir, MinFree: -1}))(t)
		defer func() { _ = s.Close() }()
		f := expect.Value(funnel.New(funnel.Options{Store: s, Counter: counter}))(t)
		text := bytes.Repeat([]byte("a line of the log\n"), size/18)
		speech := text
		speak := tools.New(
			tools.Tool{Name: "speak", Title: "Speak", Description: "Writes."},
			func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
				_, err := out.Write(speech)
				return err
			},
		)
		done := failing(s, nth, fault, sticky)
		a, err := f.Call(t.Context(), funnel.Request{Tool: speak, Args: []byte("{}")})
		s.Disk().Fault = nil
		if err != nil || a.Failed || len(a.Blocks) == 0 || len(a.Receipts) != 1 {
			note("no answer: %+v, %v", a, err)
			return wrong, *done >= nth
		}
		r := a.Receipts[0]
		first, _, _ := strings.Cut(a.Blocks[0].Text, "\n")
		if r.Bytes != int64(len(text)) || r.Lines != int64(size/18) {
			note("%d bytes and %d lines are told", r.Bytes, r.Lines)
		}
		if r.Kept != strings.Contains(first, "kept whole as obs:"+r.ObservationID) ||
			r.Kept == strings.Contains(first, "not kept (") || (r.ObservationID != "") != r.Kept {
			note("kept %v as %q: %s", r.Kept, r.ObservationID, first)
		}
		if r.Kept {
			if err := s.Verify(observations.Local, observations.ID(r.ObservationID)); err != nil {
				note("kept, and: %v", err)
			}
		} else if fault != nil && !strings.Contains(first, fault.Error()) && !strings.Contains(first, "no room") ||
			strings.Contains(first, dir) {
			note("it does not say why it is not kept: %s", first)
		}
		speech = text[:3600]
		// The disk works again: the next call is stored, and nothing is left of the last one.
		if a, err := f.Call(t.Context(), funnel.Request{Tool: speak, Args: []byte("{}")}); err != nil || !a.Receipts[0].Kept {
			note("the next call: %+v, %v", a.Receipts, err)
		}
		_ = s.Close()
		again, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
		if err == nil {
			_, err = again.Prune(false)
			wrong = append(wrong, untidy(dir)...)
			err = errors.Join(err, again.Close())
		}
		if err != nil {
			note("the next process: %v", err)
		}
		return wrong, *done >= nth
	}
	faults := []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT, syscall.EACCES}
	step := 1
	if testing.Short() {
		step = 4
	}
	cases := 0
	var wrong, lies []string
	for _, size := range []int{4000, 80_000} {
		for nth, more := 1, true; more; nth += step {
			more = false
			for i, fault := range faults {
				for _, sticky := range []bool{false, true} {
					if !promise.Full() && (i != nth%len(faults) || sticky != (nth/len(faults)%2 == 1)) {
						continue
					}
					w, failed := call(size, nth, fault, sticky)
					cases++
					more = more || failed
					wrong = append(wrong, w...)
				}
			}
		}
		for nth, more := 1, size < 5000; more; nth++ {
			var w []string
			w, more = call(size, nth, nil, false)
			lies = append(lies, w...)
		}
	}
	report(t, wrong)
	promise.Kept(t, promise.Proof{Promise: "S13", Cases: cases, Failures: len(wrong), Control: len(lies),
		Figures: "whole calls; control: an error of a write is ignored"})
}

// scratch returns an empty directory, in memory if possible, for tests with many file operations.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "mcp-funnel-store-") //nolint:usetesting // TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// failing makes the nth file operation of a store fail, and with sticky all after it. Without a fault the operation
// reports success, and a write has written half: a layer that ignores an error. done counts operations.
func failing(s *observations.Store, nth int, fault error, sticky bool) (done *int) {
	n, torn := 0, ""
	s.Disk().Fault = func(op, name string) error {
		if torn != "" {
			path := filepath.Join(s.Dir(), torn)
			if info, err := os.Stat(path); err == nil {
				_ = os.Truncate(path, info.Size()/2)
			}
			torn = ""
		}
		n++
		if fault != nil && (n == nth || sticky && n > nth) {
			return fault
		}
		if fault == nil && n == nth && op == "write" {
			torn = name
		}
		return nil
	}
	return &n
}

// untidy returns what is wrong with the quota file and tmp/ of a store that nobody writes to.
func untidy(dir string) (wrong []string) {
	var quota struct {
		Kept int64
		Held map[string]any
	}
	b, err := os.ReadFile(filepath.Join(dir, storefs.StateDir, "quota.json"))
	if err != nil || json.Unmarshal(b, &quota) != nil {
		return []string{fmt.Sprintf("quota file %q, %v", b, err)}
	}
	var stored int64
	names, err := filepath.Glob(filepath.Join(dir, storefs.ObservationsDir, "*"))
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			stored += info.Size()
		}
	}
	if quota.Kept != stored || len(quota.Held) > 0 {
		wrong = append(wrong, fmt.Sprintf("quota file: %d kept, %v held; %d are stored", quota.Kept, quota.Held, stored))
	}
	left, err := filepath.Glob(filepath.Join(dir, storefs.TmpDir, "*"))
	for _, name := range left {
		if filepath.Ext(name) != ".live" {
			wrong = append(wrong, "left in tmp/: "+name)
		}
	}
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}
