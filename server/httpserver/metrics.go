package httpserver

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// metrics are the counters of /metrics, in Prometheus' text format. They contain no name of a caller and nothing that
// a caller sent. (Prometheus' own library adds over a millisecond before main to every start, also on stdio, and
// 3.7 MB.)
type metrics struct {
	all                *prom.Set // not the library's global one
	bytes, seen, shown *prom.Counter
}

// callBuckets are the upper bounds of the latency histogram, in seconds.
var callBuckets = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 50}

// usageEvery is how long the store's usage is cached: measuring it reads its whole directory.
const usageEvery = 10 * time.Second

// help is the HELP text of each metric; the library writes HELP lines without text.
var help = map[string]string{
	"mcp_funnel_seen_bytes_total":   "Bytes of tool output.",
	"mcp_funnel_seen_tokens_total":  "Tokens of tool output.",
	"mcp_funnel_shown_tokens_total": "Tokens shown to clients.",
	"mcp_funnel_calls_total":        "Tool calls that have ended, by tool and status.",
	"mcp_funnel_call_seconds":       "Duration of tool calls in seconds.",
	"mcp_funnel_calls_in_flight":    "Tool calls that are running.",
	"mcp_funnel_http_sessions":      "Open HTTP sessions.",
	"mcp_funnel_replica_info":       "1, with the name of this replica (--replica).",
	"mcp_funnel_http_refused_total": "HTTP requests that were refused, by status.",
	"mcp_funnel_over_limit_total":   "Calls not started and outputs not kept because of a limit of one identity, by reason.",
	"mcp_funnel_store_bytes":        "Bytes of all observations in the store, which processes may share.",
	"mcp_funnel_store_observations": "Observations in the store.",
	"mcp_funnel_store_quota_bytes":  "Quota of the store in bytes.",

	"mcp_funnel_context_budget_decision":         "Decisions since the start where a window or budget was known, by verdict.",
	"mcp_funnel_context_budget_decision_dry_run": "Of these, those that were only recorded.",
	"mcp_funnel_context_budget_violation":        "Answers over what the client reported as left, which must stay none.",
	"mcp_funnel_pointer_created":                 "Outputs shown as a receipt.",
	"mcp_funnel_pointer_refetches":               "Reads of such outputs.",
	"mcp_funnel_compactions":                     "Compactions of transcripts.",
	"mcp_funnel_sessions":                        "Sessions that made a call.",
	"mcp_funnel_tokens_saved":                    "Tokens saved by receipts, without the tool list and later reads, and by compaction.",
	"mcp_funnel_budget_receipts":                 "Outputs shown as a receipt because of the budget.",
	"mcp_funnel_guidance_ignored":                "Reads of over half of an output that had been shown as a receipt.",
}

// eventsEvery is how long the sums of the trace are cached: reading a day's trace may take a second.
const eventsEvery = time.Minute

// addEvents adds gauges of the events since the start. They come from the trace, because other processes of the store
// write events too, and because an event may depend on an earlier call.
func (m *metrics) addEvents(calls trace.Store) {
	began := time.Now()
	report := cached(eventsEvery, func() (stats.Report, error) {
		sum := stats.New()
		for call, err := range calls.Read(began, nil) {
			if err != nil {
				return stats.Report{}, err
			}
			sum.Add(call)
		}
		return sum.Report(0), nil
	})
	for _, verdict := range []policy.Verdict{policy.OK, policy.NeedsSummary, policy.Reject} {
		m.all.NewGauge(fmt.Sprintf("mcp_funnel_context_budget_decision{verdict=%q}", verdict),
			func() float64 { return float64(report().Events.Decisions[string(verdict)]) })
	}
	for name, of := range map[string]func(stats.Report) float64{
		"context_budget_decision_dry_run": func(r stats.Report) float64 { return float64(r.Events.DryRuns) },
		"context_budget_violation":        func(r stats.Report) float64 { return float64(r.Events.Violations) },
		"pointer_created":                 func(r stats.Report) float64 { return float64(r.Events.Pointers) },
		"pointer_refetches":               func(r stats.Report) float64 { return float64(r.Events.Refetches) },
		"compactions":                     func(r stats.Report) float64 { return float64(r.Events.Compactions) },
		"sessions":                        func(r stats.Report) float64 { return float64(r.Sessions) },
		"tokens_saved":                    func(r stats.Report) float64 { return float64(r.Events.Saved) },
		"budget_receipts":                 func(r stats.Report) float64 { return float64(r.Events.Summaries) },
		"guidance_ignored":                func(r stats.Report) float64 { return float64(r.Events.Ignored) },
	} {
		m.all.NewGauge("mcp_funnel_"+name, func() float64 { return of(report()) })
	}
}

// newMetrics returns metrics whose gauges call these functions when /metrics is read; store and log may be nil.
func newMetrics(calls, sessions func() int, store *observations.Store, log trace.Store) *metrics {
	all := prom.NewSet()
	m := &metrics{
		all:   all,
		bytes: all.NewCounter("mcp_funnel_seen_bytes_total"),
		seen:  all.NewCounter("mcp_funnel_seen_tokens_total"),
		shown: all.NewCounter("mcp_funnel_shown_tokens_total"),
	}
	prom.ExposeMetadata(true) // a setting of the whole process, which has no other user
	all.NewGauge("mcp_funnel_calls_in_flight", func() float64 { return float64(calls()) })
	all.NewGauge("mcp_funnel_http_sessions", func() float64 { return float64(sessions()) })
	if store != nil {
		if log != nil {
			m.addEvents(log)
		}
		usage := cached(usageEvery, store.Usage)
		all.NewGauge("mcp_funnel_store_bytes", func() float64 { return float64(usage().Bytes) })
		all.NewGauge("mcp_funnel_store_observations", func() float64 { return float64(usage().Observations) })
		all.NewGauge("mcp_funnel_store_quota_bytes", func() float64 { return float64(usage().Quota) })
	}
	return m
}

// cached returns a function that returns what measure does, at most that old; if measuring fails, the previous value.
func cached[T any](every time.Duration, measure func() (T, error)) func() T {
	var mu sync.Mutex
	var last T
	var at time.Time
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) > every {
			if now, err := measure(); err == nil {
				last = now
			}
			at = time.Now()
		}
		return last
	}
}

// countCall counts a call that has ended; one without receipts was cancelled. tool must be a name from the catalog,
// so that the number of series stays bounded.
func (m *metrics) countCall(tool string, answer funnel.Answer, took time.Duration) {
	status := "cancelled"
	for i, r := range answer.Receipts {
		if i == 0 {
			status = r.Status
		}
		m.bytes.AddInt64(max(r.Bytes, 0))
		m.seen.AddInt64(max(r.Tokens, 0))
		m.shown.AddInt64(max(r.ShownTokens, 0))
		if r.NotKept == observations.ErrOwnerQuota.Error() {
			m.countOverLimit("quota")
		}
	}
	m.all.GetOrCreateCounter(fmt.Sprintf("mcp_funnel_calls_total{tool=%q,status=%q}", tool, status)).Inc()
	name := fmt.Sprintf("mcp_funnel_call_seconds{tool=%q}", tool)
	m.all.GetOrCreatePrometheusHistogramExt(name, callBuckets).Update(took.Seconds())
}

// countRefused counts a request that the guard refused.
func (m *metrics) countRefused(status int) {
	m.all.GetOrCreateCounter(fmt.Sprintf("mcp_funnel_http_refused_total{status=\"%d\"}", status)).Inc()
}

// countOverLimit counts what a limit of one identity forbade: "rate", "calls" or "quota".
func (m *metrics) countOverLimit(reason string) {
	m.all.GetOrCreateCounter(fmt.Sprintf("mcp_funnel_over_limit_total{reason=%q}", reason)).Inc()
}

func (h *httpServer) serveMetrics(w http.ResponseWriter, _ *http.Request, _ caller) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var text bytes.Buffer // so that no lock is held while a slow client reads
	h.metrics.all.WritePrometheus(&text)
	for line := range bytes.Lines(text.Bytes()) {
		if name, bare := bytes.CutPrefix(line, []byte("# HELP ")); bare {
			name = bytes.TrimSpace(name)
			line = fmt.Appendf(nil, "# HELP %s %s\n", name, help[string(name)])
		}
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}
