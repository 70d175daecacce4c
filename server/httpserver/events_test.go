package httpserver

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// TestEvents checks that /metrics has the events of the trace, also those that another process wrote.
func TestEvents(t *testing.T) {
	s, store := newHouse(t, func(who funnel.Session) string { return who.Owner })
	w := serveWeb(t, s)
	defer w.close()
	other := expect.Value(trace.Open(trace.Dir(store.Dir())))(t)
	defer other.Close() //nolint:errcheck // a test's log
	w.open()            // from here on it counts
	at := time.Now()
	for _, c := range []trace.Call{
		{At: at, Tool: "search", Session: "a", Status: "success", Verdict: "needs_summary", Limited: true, Kept: true,
			Observation: "k3v9q2m7x4ab", SeenTokens: 9000, ShownTokens: 300},
		{At: at, Tool: "read", Session: "a", Status: "success", Verdict: "ok", Limited: true, Source: "obs:k3v9q2m7x4ab",
			SeenTokens: 9000, ShownTokens: 9000},
		{At: at, Tool: "compact", Session: "b", Via: trace.ViaCompaction, SeenTokens: 90_000, ShownTokens: 20_000},
	} {
		expect.Must(t, other.Append(c, nil))
	}
	body := w.do(http.MethodGet, "/metrics", "").body
	for _, want := range []string{
		`mcp_funnel_context_budget_decision{verdict="ok"} 1`, `mcp_funnel_context_budget_decision{verdict="needs_summary"} 1`,
		`mcp_funnel_context_budget_decision{verdict="reject"} 0`, "mcp_funnel_context_budget_violation 0",
		"mcp_funnel_pointer_created 1", "mcp_funnel_pointer_refetches 1", "mcp_funnel_compactions 1",
		"mcp_funnel_sessions 2", "mcp_funnel_tokens_saved 70000", "mcp_funnel_budget_receipts 1",
		"mcp_funnel_guidance_ignored 1", "mcp_funnel_context_budget_decision_dry_run 0",
	} {
		expect.Contains(t, body, "\n"+want+"\n")
	}
}

// TestMetricNames checks the names of all metrics by the rules of promtool check metrics.
func TestMetricNames(t *testing.T) {
	s, _ := newHouse(t, func(who funnel.Session) string { return who.Owner })
	w := serveWeb(t, s)
	defer w.close()
	w.open()
	body := w.do(http.MethodGet, "/metrics", "").body
	types := regexp.MustCompile(`(?m)^# TYPE (\S+) (\w+)$`).FindAllStringSubmatch(body, -1)
	seen := map[string]bool{}
	for _, m := range types {
		name, kind := m[1], m[2]
		bad := seen[name] || (kind == "counter") != strings.HasSuffix(name, "_total") ||
			kind == "gauge" && regexp.MustCompile(`_(count|sum|bucket|gauge|counter|summary|histogram)(_|$)`).MatchString(name)
		if bad || !regexp.MustCompile(`(?m)^# HELP `+name+` \S`).MatchString(body) {
			t.Errorf("%s %s", kind, name)
		}
		seen[name] = true
	}
	if len(types) < 15 {
		t.Errorf("%d metrics: %s", len(types), body)
	}
}

// TestDashboard checks that docs/grafana.json names metrics that exist, and every event.
func TestDashboard(t *testing.T) {
	text := expect.Value(os.ReadFile("../../docs/grafana.json"))(t)
	named := regexp.MustCompile(`mcp_funnel_[a-z_]+`).FindAllString(string(text), -1)
	for _, name := range named {
		if help[strings.TrimSuffix(name, "_bucket")] == "" {
			t.Errorf("the dashboard names %s, which is no metric", name)
		}
	}
	for name := range help {
		event := !strings.HasSuffix(name, "_total") && !strings.Contains(name, "_store_") &&
			!strings.Contains(name, "_http_")
		if event && name != "mcp_funnel_call_seconds" && !slices.Contains(named, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
