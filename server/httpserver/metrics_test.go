package httpserver

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// TestMetrics reads what is told after calls of each outcome, as Prometheus reads it.
func TestMetrics(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, store := newHouse(t, func(who funnel.Session) string { return who.Owner })
	w := serveWeb(t, s)
	defer w.close()
	session := w.open()
	id := servertest.Keep(t, store, "local", strings.Repeat("a line\n", 100), observations.Stats{})
	w.post(servertest.ToolCall("1", "grep", `{"source":"obs:`+string(id)+`","pattern":"line"}`, ""), session)
	w.post(servertest.ToolCall("2", "grep", `{"source":"obs:0123456789ab","pattern":"line"}`, ""), session)
	w.post(servertest.ToolCall("3", "nothing\"}", `{}`, ""), session)
	w.post(servertest.Ping, session, header("Origin", "https://evil.example"))
	got := w.do(http.MethodGet, "/metrics", "")
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d %v", got.status, got.header)
	}
	for _, want := range []string{
		`mcp_funnel_calls_total{tool="grep",status="success"} 1`, `mcp_funnel_calls_total{tool="grep",status="failure"} 1`,
		`mcp_funnel_call_seconds_bucket{tool="grep",le="+Inf"} 2`, `mcp_funnel_call_seconds_bucket{tool="grep",le="50"} 2`, `mcp_funnel_call_seconds_count{tool="grep"} 2`,
		`mcp_funnel_http_refused_total{status="403"} 1`, `mcp_funnel_http_sessions 1`, `mcp_funnel_calls_in_flight 0`, `mcp_funnel_store_observations 1`,
	} {
		expect.Contains(t, got.body, want+"\n")
	}
	for name, least := range map[string]string{"seen_tokens_total": `[1-9]`, "shown_tokens_total": `[1-9]`, "seen_bytes_total": `[1-9]`, "store_bytes": `[1-9]`, "store_quota_bytes": `[1-9]`, `call_seconds_sum\{tool="grep"\}`: `[0-9]`} {
		if !regexp.MustCompile(`(?m)^mcp_funnel_` + name + ` ` + least).MatchString(got.body) {
			t.Errorf("%s is missing or 0 in:\n%s", name, got.body)
		}
	}
	if rows := regexp.MustCompile(
		`_bucket\{tool="grep",le="([^"]+)"\} (\d+)`,
	).FindAllStringSubmatch(got.body, -1); len(rows) == len(callBuckets)+1 {
		for i, bound := range callBuckets {
			if le, err := strconv.ParseFloat(rows[i][1], 64); err != nil || le != bound || rows[i][2] > rows[i+1][2] {
				t.Errorf("bucket %d is %v", i, rows[i])
			}
		}
	} else {
		t.Errorf("%d buckets", len(rows))
	}
	for name, kind := range map[string]string{"call_seconds": "histogram", "calls_total": "counter", "http_sessions": "gauge"} {
		if n := strings.Count(got.body, "\n# TYPE mcp_funnel_"+name+" "+kind+"\nmcp_funnel_"+name); n != 1 {
			t.Errorf("the type of %s is told %d times", name, n)
		}
	}
	line := regexp.MustCompile(
		`^# HELP [a-z_]+ [A-Z][a-zA-Z ,]+\.$|^# TYPE [a-z_]+ [a-z]+$|^[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? [0-9.e+-]+$`,
	)
	for _, l := range strings.Split(strings.TrimSpace(got.body), "\n") {
		if !line.MatchString(l) {
			t.Errorf("not as Prometheus has it: %s", l)
		}
	}
	if strings.Contains(got.body, "nothing") {
		t.Error("what a caller sent stands among the metrics")
	}
}
