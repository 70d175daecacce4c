package jq

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
)

// bombs are filters that take all memory, all time or the whole process where nothing holds them.
var bombs = []struct{ name, filter string }{
	{"stack", `reduce range(3000000) as $i (null;[.])|tojson`},
	{"stack, compared", `[reduce range(3000000) as $i (null;[.])] | . == [reduce range(3000000) as $i (null;[.])]`},
	{"one index", `.[536870911]=1`},
	{"one index by setpath", `setpath([536870911]; 1)`},
	{"one index by pick", `pick(.[536870911])`},
	{"repeated string", `"a"*1e9`},
	{"repeated string, again and again", `("a"*1e6)*1e6`},
	{"range", `[range(1e12)]`},
	{"combinations", `[[range(30)] | combinations(30)]`},
	{"doubling array", `reduce range(100) as $i ([1]; . + .)`},
	{"doubling string", `reduce range(100) as $i ("x"; . + .)`},
	{"doubling by pipes", `[.,.]` + strings.Repeat(`|[.,.]`, 60)},
	{"recursion without end", `def f: [f]; f`},
	{"deaf gsub", `("a"*20000000) | gsub(""; "b")`},
	{"deaf scan", `[("a"*3000000) | scan("a.*b|a")]`},
	{"deaf match", `[("ab"*3000000) | match("a|b"; "g")]`},
	{"deaf splits", `[("a,"*10000000) | splits(",")] | length`},
	{"dear regular expression", `("a"*2000000) | test("` + `\\pL{1000}x")`},
	{"silent loop", `until(false; .)`},
	{"silent repeat", `repeat(.) | empty`},
	{"last of endless", `last(repeat(1))`},
	{"flatten", `reduce range(1000000) as $i ([]; [.]) | flatten`},
	{"implode", `[range(50000000)] | implode`},
	{"transpose", `[[range(30000)], (range(30000)|[])] | transpose`},
	{"big integers", `reduce range(60) as $i (10; . * .)`},
	{"sort", `[range(20000000)] | sort_by(-.)`},
	{"group", `[range(20000000)] | group_by(. % 2)`},
	{"walk", `reduce range(3000000) as $i (null;[.]) | walk(.)`},
	{"tostream", `[range(1e8)] | [tostream] | length`},
	{"paths", `reduce range(2000000) as $i (null;[.]) | [paths] | length`},
	{"ltrimstr", `def f: ltrimstr("x") | f; f`},
	{"input", `[limit(1e12; repeat(input_filename))]`},
	{"strftime", `[range(1e9) | strftime("%Y")]`},
	{"limit", `[limit(1e12; repeat("x"))]`},
	{"env", `[repeat($ENV)]`},
	{"nested path", `path(repeat(.[0]))`},
	{"long program", strings.Repeat("1+", 8000) + "1"},
	{"deep program", strings.Repeat("[", 8000) + strings.Repeat("]", 8000)},
	{"many pipes", "." + strings.Repeat("|.", 8000)},
	{"nested strings", strings.Repeat(`"\(`, 4000) + "1" + strings.Repeat(`)"`, 4000)},
	{"nested definitions", strings.Repeat("def f: ", 1000) + "1" + strings.Repeat("; f", 1000)},
	{"nested ifs", strings.Repeat("if . then ", 1000) + "1" + strings.Repeat(" else 2 end", 1000)},
}

// Each of them ends by its deadline, with an answer or with one error that
// says why, and this process stays small.
func TestBombs(t *testing.T) {
	tool := JQ(Options{Memory: 256 << 20})
	from := folder(t, map[string]string{"in": "null"})
	before := peak(t)
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			// Without a deadline most would take hours.
			r, err := call(ctx, tool, from, m{"source": "in", "filter": b.filter}, 10)
			switch {
			case err == nil && len(r.rows) == 0 && len(r.notes) == 0:
				t.Error("no answer and no error")
			case errors.Is(err, context.DeadlineExceeded) && len(r.rows) == 0: // before the program ran at all, on a busy machine: not the filter's doing
			case err != nil && !strings.HasPrefix(err.Error(), "jq: "):
				t.Errorf("an error without a source: %v", err)
			case err != nil && len(err.Error()) > 700:
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			t.Logf("%d rows, %v", len(r.rows), err)
		})
	}
	t.Cleanup(func() {
		room := 128
		if workertest.Race {
			room *= 2 // the race detector takes several times the memory
		}
		after := peak(t)
		t.Logf("grew from %d to %d MiB", before, after)
		if after > before+room {
			t.Errorf("this process grew from %d to %d MiB", before, after)
		}
	})
}

// A filter without an end is stopped with what the caller can do, and whose the time is.
func TestDeadlineSaysWhatHelps(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := call(
		ctx, JQ(Options{}), folder(t, map[string]string{"in": "null"}), m{"source": "in", "filter": "last(repeat(1))"}, 10,
	)
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Fatalf("%v", err)
	}
	if notes := strings.Join(r.notes, "\n"); !strings.Contains(
		notes, "narrow the filter, or take a part of the source by slice first",
	) || !strings.Contains(notes, "--call-timeout") {
		t.Errorf("notes %q", r.notes)
	}
}

// The control: the same bombs without a worker take this process with them. The mildest of them is tried.
func TestBombsControl(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	from := folder(t, map[string]string{"in": "null"})
	start := time.Now()
	_, _ = call(ctx, inProcess, from, m{"source": "in", "filter": `("ab"*10000) | [match("a|b"; "g")] | length`}, 10)
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("gojq looked at the context inside match after %v: the bombs prove nothing any more", took)
	}
}

// peak is the most memory this process ever held, in MiB.
func peak(t *testing.T) int {
	if runtime.GOOS != "linux" {
		t.Skip("the peak of memory is read from /proc: skipped")
	}
	b, err := os.ReadFile("/proc/self/status")
	expect.Must(t, err)
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	expect.Must(t, err)
	return kb >> 10
}
