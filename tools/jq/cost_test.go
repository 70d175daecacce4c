package jq

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// What a filter may take that runs in this process, on any source that is small enough for it.
const (
	heapMost = 64 << 20          // bytes over what was there
	timeMost = promise.HangAfter // on an idle machine all end within a second
)

// smallTexts are sources of smallText bytes, each expensive in its own way.
func smallTexts() map[string]string {
	fill := func(begin, part, end string) string {
		return begin + strings.Repeat(part, (smallText-len(begin)-len(end))/len(part)) + end
	}
	return map[string]string{
		"numbers": fill("[0", ",1", "]"), "empty arrays": fill("[0", ",[]", "]"), "objects": fill("[0", `,{"a":1}`, "]"), "one string": fill(`"`, "a,", `"`), "quotes": fill(`"`, `\"`, `"`),
		"control characters": fill(`"`, `\u0001`, `"`), "strings": fill(`["x"`, `,"a"`, "]"), "records": fill("0", " 1", ""), "deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"not UTF-8": fill(`"`, "\xff", `"`), "digits": fill("[0", ",123456789012345678901234567890", "]"),
	}
}

// used runs a filter in this process, safe or not, and says what it took.
func used(t *testing.T, filter, text string) (heap uint64, took time.Duration) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	ctx, cancel := context.WithTimeout(t.Context(), timeMost+time.Second)
	defer cancel()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapAlloc-min(m.HeapAlloc, before))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	begun := time.Now()
	_, _ = (&engine.Job{Filter: filter}).Run(ctx, strings.NewReader(text), &dropped{})
	took = time.Since(begun)
	close(stop)
	<-done
	return heap, took
}

// dropped is rows that nobody holds.
type dropped struct{}

func (dropped) Part([]byte, bool) error { return nil }
func (dropped) Wanted() bool            { return true }
func (dropped) Progress(int64)          {}

// No filter that runs in this process takes much memory or time on any small source, however both were chosen.
func TestSafeFiltersTakeLittle(t *testing.T) {
	promise.OrdinaryRun(t)
	tried, taken := 0, 0
	var most uint64
	var longest time.Duration
	texts := smallTexts()
	every := promise.Size(5, 1)
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		for k, filter := range plantest.Expensive() {
			if (i+k)%every != 0 {
				continue
			}
			tried++
			p, err := plan.New(filter, nil, "", false, false)
			if err != nil || !p.Safe {
				continue
			}
			taken++
			heap, took := used(t, filter, texts[name])
			most, longest = max(most, heap), max(longest, took)
			if heap > heapMost || took > timeMost {
				t.Errorf("%.80s on %s took %d MiB and %s", filter, name, heap>>20, took)
			}
		}
	}
	t.Logf(
		"%d of %d ran; the most memory was %d MiB, the longest time %s", taken, tried, most>>20,
		longest.Round(time.Millisecond),
	)
	if taken < 100 || taken > tried*9/10 {
		t.Errorf("%d of %d filters ran: the test proves little", taken, tried)
	}

	// The control: a filter that is not safe does take more.
	over := plantest.Doubled(10)
	if p, err := plan.New(over, nil, "", false, false); err != nil || p.Safe {
		t.Errorf("%s runs in this process (%v)", over, err)
	}
	if heap, _ := used(t, over, texts["one string"]); heap <= heapMost {
		t.Errorf("the control took only %d MiB: nothing is measured", heap>>20)
	}
}
