package logs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// TestLevelsAgainstGrep: levels as grep counts them, where they stand in one place.
func TestLevelsAgainstGrep(t *testing.T) {
	text := corpus.PanicLog()
	logs := New("")
	logs.Add(text)
	for lv, word := range map[level]string{info: " INFO ", debug: " DEBUG ", warn: " WARN "} {
		if want := strings.TrimSpace(digesttest.Output(t, text, "grep", "-c", word)); digest.Number(logs.levels[lv]) != want {
			t.Errorf("%s: %d, grep has %s", levelNames[lv], logs.levels[lv], want)
		}
	}
	var s digest.Summary
	logs.Finish(&s)
	if want := fmt.Sprintf("lines %d-", corpus.PanicLine); !strings.HasPrefix(s.Says[0], want) ||
		!strings.Contains(s.Says[0], "panic: runtime error: index out of range [7] with length 3") {
		t.Errorf("the panic of line %d is not said first: %q", corpus.PanicLine, s.Says)
	}
	if got, want := digest.Number(logs.rows.Number), strings.Fields(
		digesttest.Output(t, text, "wc", "-l"),
	)[0]; got != want {
		t.Errorf("%s lines, wc has %s", got, want)
	}
	var sum int64
	for _, c := range logs.patterns.all {
		sum += c.n
	}
	expect.Equal(t, sum, logs.patterns.lines, "templates, lines")
}

func TestLevels(t *testing.T) {
	for line, want := range map[string]level{
		"2026-11-20T14:30:22Z ERROR disk full":                     failure,
		"2026-11-20 14:30:22,123 - app - WARNING - slow":           warn,
		"2026/11/20 14:30:22 [error] 12#0: open() failed":          failure,
		"Nov 20 14:30:22 host app[1]: Error: no such file":         failure,
		"Error: no such file":                                      failure,
		"main.c:12:3: error: expected ';'":                         failure,
		"main.c:12:3: warning: unused":                             warn,
		"error[E0308]: mismatched types":                           failure,
		`time=2026-11-20T14:30:22Z level=error msg=x`:              failure,
		`{"ts":1,"level":"warn"}`:                                  warn,
		"[INFO] started":                                           info,
		"INFO retry after ERROR":                                   info,
		"no ERROR-42 here":                                         noLevel,
		"errors were not found":                                    noLevel,
		"the error is mine":                                        noLevel,
		"2026-11-20 14:30:22 info  all is well":                    info,
		"E1120 14:30:22.123456 1 server.go:12] boom":               failure,
		"[    1.234567] usb 1-1: new device":                       noLevel,
		"14:30:22.123 FATAL out":                                   fatal,
		"--- FAIL: TestX (0.00s)":                                  failure,
		"not ok 3 - adds":                                          failure,
		"npm ERR! code 1":                                          failure,
		"FAILURES are not counted by FAIL":                         noLevel,
		"1732112233.123 DEBUG x":                                   debug,
		"[2026-11-20 14:30:22.000] [CRITICAL] meltdown":            fatal,
		"2026-11-20T14:30:22.123456789+01:00\tTRACE\tenter":        trace,
		"20-Nov-2026 14:30:22.123 SEVERE [main] org.apache.X":      fatal,
		"[20/Nov/2026:14:30:22 +0000] NOTICE listening":            notice,
		"2026-11-20T14:30:22Z \"GET /ERROR HTTP/1.1\" 200":         noLevel,
		"(2026-11-20 14:30:22) ALERT: x":                           fatal,
		"<3>a priority, then a message":                            failure,
		"<6>Error: the priority counts":                            info,
		"[Wed Oct 11 14:32:52.123456 2026] [core:error] [pid 1] x": failure,
		"[Wed Oct 11 14:32:52 2026] [ssl:trace4] x":                trace,
		"I/O: nothing":                                             noLevel,
	} {
		l := New("")
		l.Add([]byte(line + "\n"))
		got := noLevel
		for lv := levels - 1; lv > noLevel; lv-- {
			if l.levels[lv] > 0 {
				got = lv
			}
		}
		expect.Equal(t, got, want, "%q: %s, want %s", line, levelNames[got], levelNames[want])
	}
}

// TestTemplates: lines printed with known patterns are counted by them.
func TestTemplates(t *testing.T) {
	l := New("")
	r := rand.New(rand.NewPCG(1, 1))
	users := []string{"alice", "bob", "carol", "dave", "erin"}
	var logins, jobs int64
	for i := range 20_000 {
		at := fmt.Sprintf("2026-11-20T10:%02d:%02d.%03dZ", i/600%60, i/10%60, i%1000)
		line := fmt.Sprintf("%s INFO job %d of queue-%d done in %dms", at, i, r.IntN(9), r.IntN(999))
		if r.IntN(3) == 0 {
			line = fmt.Sprintf(
				"%s INFO user %s logged in from 10.0.%d.%d via web", at, users[r.IntN(len(users))], r.IntN(255), r.IntN(255),
			)
			logins++
		} else {
			jobs++
		}
		if i == 12_345 {
			line = at + " WARN clock went backwards by 3s"
			jobs--
		}
		l.Add([]byte(line + "\n"))
	}
	var s digest.Summary
	l.Finish(&s)
	want := []string{
		digest.Number(jobs) + "× INFO job <*> of queue-<*> done in <*>",
		digest.Number(logins) + "× INFO user <*> logged in from <*> via web",
	}
	for i, w := range want {
		if i >= len(s.Body) || !strings.HasPrefix(s.Body[i], w) {
			t.Errorf("want %q in\n%s", w, strings.Join(s.Body, "\n"))
		}
	}
	if !slices.ContainsFunc(
		s.Says, func(l string) bool { return strings.HasPrefix(l, "stands out, line 12346: WARN clock went") },
	) {
		t.Errorf("the odd line is not told: %q", s.Says)
	}
}
