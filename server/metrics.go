package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// metrics are what /metrics tells, in Prometheus' text. They hold no name of a caller and nothing that a
// caller sent. (Prometheus' own library takes over a millisecond of every start, stdio's too, before main
// begins, and 3.7 MB.)
type metrics struct {
	all                *prom.Set // not the library's global one
	bytes, seen, shown *prom.Counter

	mu   sync.Mutex
	took map[string]*latencies // by tool
}

// latencies are a histogram of Prometheus; the library has another kind of its own, and would write the rows
// of this one in the order of their letters.
type latencies struct {
	within []int64 // by bucket, each with those of the ones before it
	count  int64
	sum    float64 // seconds
}

// callBuckets are the upper bounds of the latency histogram, in seconds.
var callBuckets = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 50}

// usageEvery is for how long a measurement of the store stands: each reads its whole directory.
const usageEvery = 10 * time.Second

// help says what each is, behind the metadata of the library, which has no words.
var help = map[string]string{
	"mcp_funnel_seen_bytes_total":   "Bytes that tools wrote.",
	"mcp_funnel_seen_tokens_total":  "Tokens of what tools wrote.",
	"mcp_funnel_shown_tokens_total": "Tokens of what was shown of it.",
	"mcp_funnel_calls_total":        "Calls of tools that have ended, by how they did.",
	"mcp_funnel_call_seconds":       "How long calls of tools took.",
	"mcp_funnel_calls_in_flight":    "Calls of tools that are running.",
	"mcp_funnel_http_sessions":      "Sessions over HTTP.",
	"mcp_funnel_http_refused_total": "Requests that were not let in, by status.",
	"mcp_funnel_store_bytes":        "Bytes of all observations, of all processes that share the store.",
	"mcp_funnel_store_observations": "Observations kept.",
	"mcp_funnel_store_quota_bytes":  "Bytes that all observations may take.",
}

func newMetrics(h *web) *metrics {
	all := prom.NewSet()
	m := &metrics{
		all:   all,
		bytes: all.NewCounter("mcp_funnel_seen_bytes_total"),
		seen:  all.NewCounter("mcp_funnel_seen_tokens_total"),
		shown: all.NewCounter("mcp_funnel_shown_tokens_total"),
		took:  map[string]*latencies{},
	}
	prom.ExposeMetadata(true) // of the whole process, where this is the only user
	all.RegisterMetricsWriter(m.writeLatencies)
	all.NewGauge("mcp_funnel_calls_in_flight", func() float64 { return float64(h.server.gate.running()) })
	all.NewGauge("mcp_funnel_http_sessions", func() float64 { return float64(h.sessions.count()) })
	if h.server.store != nil {
		usage := measured(h.server.store)
		all.NewGauge("mcp_funnel_store_bytes", func() float64 { return float64(usage().Bytes) })
		all.NewGauge("mcp_funnel_store_observations", func() float64 { return float64(usage().Observations) })
		all.NewGauge("mcp_funnel_store_quota_bytes", func() float64 { return float64(usage().Quota) })
	}
	return m
}

// measured is a store's usage, not older than usageEvery; where it cannot be measured, the one before.
func measured(store *observations.Store) func() observations.Usage {
	var mu sync.Mutex
	var last observations.Usage
	var at time.Time
	return func() observations.Usage {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) > usageEvery {
			if now, err := store.Usage(); err == nil {
				last = now
			}
			at = time.Now()
		}
		return last
	}
}

// call counts one that has ended. A call without an answer was cancelled. The tool is one of the catalog.
func (m *metrics) call(tool string, answer funnel.Answer, took time.Duration) {
	status := "cancelled"
	for i, r := range answer.Receipts {
		if i == 0 {
			status = r.Status
		}
		m.bytes.AddInt64(max(r.Bytes, 0))
		m.seen.AddInt64(max(r.Tokens, 0))
		m.shown.AddInt64(max(r.ShownTokens, 0))
	}
	m.all.GetOrCreateCounter(fmt.Sprintf("mcp_funnel_calls_total{tool=%q,status=%q}", tool, status)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.took[tool]
	if of == nil {
		of = &latencies{within: make([]int64, len(callBuckets))}
		m.took[tool] = of
	}
	of.count++
	of.sum += took.Seconds()
	for i, bound := range callBuckets {
		if took.Seconds() <= bound {
			of.within[i]++
		}
	}
}

func (m *metrics) writeLatencies(w io.Writer) {
	const name = "mcp_funnel_call_seconds"
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.took) == 0 {
		return
	}
	prom.WriteMetadataIfNeeded(w, name, "histogram")
	for _, tool := range slices.Sorted(maps.Keys(m.took)) {
		of := m.took[tool]
		for i, bound := range callBuckets {
			_, _ = fmt.Fprintf(w, "%s_bucket{tool=%q,le=%q} %d\n", name, tool, strconv.FormatFloat(bound, 'g', -1, 64), of.within[i])
		}
		_, _ = fmt.Fprintf(w, "%s_bucket{tool=%q,le=\"+Inf\"} %d\n", name, tool, of.count)
		_, _ = fmt.Fprintf(w, "%s_sum{tool=%q} %g\n%s_count{tool=%q} %d\n", name, tool, of.sum, name, tool, of.count)
	}
}

// refuse counts a request that the guard did not let in.
func (m *metrics) refuse(status int) {
	m.all.GetOrCreateCounter(fmt.Sprintf("mcp_funnel_http_refused_total{status=\"%d\"}", status)).Inc()
}

func (h *web) serveMetrics(w http.ResponseWriter, _ *http.Request, _ caller) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var text bytes.Buffer // no lock is held while a client takes its time
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

// watched counts calls, once there is a face to HTTP that tells of them.
func (s *Server) watched(run func(context.Context, funnel.Request) (funnel.Answer, error)) func(context.Context, funnel.Request) (funnel.Answer, error) {
	return func(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
		began := time.Now()
		answer, err := run(ctx, r)
		if m := s.metrics.Load(); m != nil {
			m.call(r.Tool.Name, answer, time.Since(began))
		}
		return answer, err
	}
}
