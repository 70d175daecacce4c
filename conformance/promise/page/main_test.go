package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func TestTheTableHidesNothing(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events")
	expect.Must(t, os.WriteFile(events, []byte(strings.Join([]string{
		`{"Action":"output","Package":"p","Test":"TestS6Dies","Output":"panic: gone\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestS6Dies"}`,
		`{"Action":"fail","Package":"p","Test":"TestS1Whole/part"}`,
		`{"Action":"pass","Package":"p","Test":"TestS1Whole"}`,
		`{"Action":"skip","Package":"p","Test":"TestS18NoBrowser"}`,
		`{"Action":"skip","Package":"p","Test":"TestS4Skipped"}`,
		`{"Action":"pass","Package":"p","Test":"TestS5Silent"}`,
		`{"Action":"pass","Package":"p","Test":"TestS20Silent"}`,
		`{"Action":"pass","Package":"p","Test":"TestSomething"}`,
		`{"Action":"fail","Package":"p"}`,
	}, "\n")), 0o600))
	var printed strings.Builder
	tests, err := outcomes(events, &printed)
	if err != nil || !strings.Contains(printed.String(), "panic: gone") {
		t.Errorf("%v, printed %q", err, printed.String())
	}
	proofs := []promise.Proof{
		{Promise: "S1", Test: "TestS1Whole", Cases: 5, Control: 2, Figures: "a | b"},
		{Promise: "S1", Test: "TestS1More", Cases: 7, Control: 1},
		{Promise: "S2", Test: "TestS2Fails", Cases: 3, Failures: 1, Control: 1},
		{Promise: "S3", Test: "TestS3Tame", Cases: 3},
		{Promise: "S4", Test: "TestS4Some", Cases: 1, Control: 1}, {Promise: "S5", Test: "TestS5Some", Cases: 1, Control: 1},
		{Promise: "S32", Test: "TestS32Some", Cases: 1, Control: 1, Unchecked: "x | y"},
	}
	rows, held := table(proofs, tests, nil)
	if held {
		t.Error("it is said that everything was held")
	}
	for id, want := range map[string]string{
		"S1": "| yes | 12 | 0 | 3 | a \\| b | `TestS1Whole`, `TestS1More` |", "S2": "| **no** | 3 | 1 | 1 |  | `TestS2Fails` (failed) |", "S3": "| **no** | 3 | 0 | 0 |  | `TestS3Tame` (its control did not fail) |",
		"S6": "| **no** | – | – | – |  | `TestS6Dies` (the test failed) |", "S18": "| not proved | – | – | – |  | `TestS18NoBrowser` (skipped) |", "S20": "| not proved | – | – | – |  | `TestS20Silent` (recorded no proof) |",
		"S4": "| in part | 1 | 0 | 1 |  | `TestS4Some`, `TestS4Skipped` (skipped) |", "S5": "| in part | 1 | 0 | 1 |  | `TestS5Some`, `TestS5Silent` (recorded no proof) |",
		"S32": "| but for | 1 | 0 | 1 |  | `TestS32Some` (but for: x \\| y) |",
		"S7":  "| not proved | – | – | – |  |  |",
	} {
		if line := "| " + id + " | " + promise.All[id] + " " + want + "\n"; !strings.Contains(rows, line) {
			t.Errorf("no row %q", line)
		}
	}
	expect.Contains(t, rows, "**Not held: S2, S3, S6.**", "Not proved by this run: S7, S8,",
		"In part: S4, S5. S32 held but for: x \\| y.")
	for size, lenient := range map[string]bool{"modest": true, "full": false} {
		t.Setenv("SAFETY", size)
		if _, held := table(proofs[:2], nil, nil); held != lenient {
			t.Errorf("with promises that are not proved, size %s: held %t", size, held)
		}
		var all []promise.Proof
		for id := range promise.All {
			all = append(all, promise.Proof{Promise: id, Test: "Test" + id + "All", Cases: 1, Control: 1})
		}
		if _, held := table(all, nil, nil); !held {
			t.Errorf("what was proved is not held, size %s", size)
		}
		for what, tests := range map[string]map[string][]outcome{
			"skipped": {"S1": {{"TestS1Other", "skip"}}}, "silent": {"S1": {{"TestS1Other", "pass"}}},
		} {
			if _, held := table(all, tests, nil); held != lenient {
				t.Errorf("one proof %s, size %s: held %t", what, size, held)
			}
		}
		all[0].Unchecked = "something"
		rows, held := table(all, nil, nil)
		if told := fmt.Sprintf("%d of %[1]d promises held. %s held but for: something.\n", len(all), all[0].Promise); !held ||
			!strings.HasSuffix(rows, told) {
			t.Errorf("something unchecked, size %s: held %t, %.200s", size, held, rows[len(rows)-200:])
		}
		all[0].Failures = 1
		if _, held := table(all, nil, nil); held {
			t.Errorf("something unchecked hides a failure, size %s", size)
		}
	}
}

// TestSomePromises checks that a run of some promises is judged by these only, and that an unknown one is refused.
func TestSomePromises(t *testing.T) {
	t.Setenv("SAFETY", "full")
	proofs := []promise.Proof{{Promise: "S7", Test: "TestS7Some", Cases: 1, Control: 1}}
	rows, held := table(proofs, nil, []string{"S7"})
	if !held || !strings.Contains(rows, "| S7 |") || strings.Contains(rows, "| S8 |") {
		t.Errorf("held %v:\n%s", held, rows)
	}
	if _, held := table(proofs, nil, []string{"S8", "S7"}); held {
		t.Error("S8 has no proof and is held")
	}
	file := filepath.Join(t.TempDir(), "empty")
	expect.Must(t, os.WriteFile(file, nil, 0o600))
	expect.Fails(t, run(file, file, []string{"S700"}), "S700", "an unknown promise")
}
