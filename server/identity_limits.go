package server

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/time/rate"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Rate is how often one identity may call. The zero value is no limit.
type Rate struct {
	PerSecond float64 // from 0.001 to 1,000,000
	Burst     int     // calls at once after a pause; from 1 to 1,000,000
}

// UnmarshalText implements [encoding.TextUnmarshaler], for "5,10".
func (r *Rate) UnmarshalText(text []byte) error {
	each, burst, _ := strings.Cut(string(text), ",")
	n, err := strconv.ParseFloat(strings.TrimSpace(each), 64)
	b, wrong := strconv.Atoi(strings.TrimSpace(burst))
	if err != nil || wrong != nil || !(n >= 0.001 && n <= 1e6) || b < 1 || b > 1e6 {
		return fmt.Errorf("%.60q is not a rate; write calls a second, from 0.001, and the burst, from 1, such as 5,10", text)
	}
	*r = Rate{n, b}
	return nil
}

// OverLimit is the data of the fault for a call that was not started because its identity is over a limit.
type OverLimit struct {
	Reason     string `json:"reason"`      // "rate" or "calls"
	RetryAfter int64  `json:"retry_after"` // seconds
}

// identityLimits limit the calls of each identity. They count [countedMethods] alone. A limiter whose burst is whole
// again is dropped, so that memory does not grow with the number of identities.
type identityLimits struct {
	rate    Rate
	running jsonrpc.OwnerLimiter
	now     func() time.Time

	replicas atomic.Int64 // among which a balancer spreads the calls; 0 is 1

	mu      sync.Mutex
	byOwner map[string]*rate.Limiter
	swept   time.Time
}

// countedMethods are what tools do and what is read. Lists, prompts, completion and ping are free.
var countedMethods = []string{string(mcp.MethodToolsCall), string(mcp.MethodResourcesRead)}

// fewLimiters is how many limiters are kept without a look at their use.
const fewLimiters = 1024

// SetReplicas has each of n replicas allow its share of the rate of an identity. The burst is rounded up.
func (s *Server) SetReplicas(n int) { s.identityLimit.replicas.Store(int64(n)) }

func (l *identityLimits) set(r Rate, calls int) {
	l.rate, l.now, l.byOwner = r, time.Now, map[string]*rate.Limiter{}
	if l.running.PerOwner = calls; calls <= 0 {
		l.running.PerOwner = math.MaxInt
	}
}

// acquire counts a call, or returns why its identity must wait. The caller must release it.
func (l *identityLimits) acquire(owner, method string) *jsonrpc.Fault {
	if !slices.Contains(countedMethods, method) {
		return nil
	}
	if full := l.running.Acquire(owner, 1); full != nil {
		return &jsonrpc.Fault{Code: jsonrpc.CodeBusy, Data: OverLimit{"calls", 1}, Message: fmt.Sprintf(
			"busy: running calls: %s, which is its limit (--calls-per-identity); wait for one to end and try again", full)}
	}
	wait := l.wait(owner)
	if wait == 0 {
		return nil
	}
	l.release(owner, method)
	over := OverLimit{"rate", int64(math.Ceil(wait.Seconds()))}
	return &jsonrpc.Fault{Code: jsonrpc.CodeBusy, Data: over, Message: fmt.Sprintf(
		"busy: over %v calls a second of this identity (--rate-per-identity); try again in %d s",
		l.rate.PerSecond, over.RetryAfter)}
}

func (l *identityLimits) release(owner, method string) {
	if slices.Contains(countedMethods, method) {
		l.running.Release(owner, 1)
	}
}

// wait takes one call from the rate of an identity, or returns in which time there will be one.
func (l *identityLimits) wait(owner string) time.Duration {
	if l.rate.Burst == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	share := max(float64(l.replicas.Load()), 1)
	each, burst := rate.Limit(l.rate.PerSecond/share), max(int(math.Ceil(float64(l.rate.Burst)/share)), 1)
	limiter := l.byOwner[owner]
	if limiter == nil {
		limiter = rate.NewLimiter(each, burst)
		l.byOwner[owner] = limiter
	} else if limiter.Limit() != each { // a replica came or went
		limiter.SetLimitAt(now, each)
		limiter.SetBurstAt(now, burst)
	}
	call := limiter.ReserveN(now, 1)
	wait := call.DelayFrom(now)
	if wait > 0 {
		call.CancelAt(now)
	}
	return wait
}

// sweep drops the limiters of idle identities, at most once in the time in which a burst becomes whole again.
func (l *identityLimits) sweep(now time.Time) {
	whole := time.Duration(float64(l.rate.Burst) / l.rate.PerSecond * float64(time.Second))
	if len(l.byOwner) < fewLimiters || now.Sub(l.swept) < max(whole, time.Second) {
		return
	}
	busy := map[string]*rate.Limiter{} // a map keeps the memory of what is deleted from it
	for owner, limiter := range l.byOwner {
		if limiter.TokensAt(now) < float64(limiter.Burst()) {
			busy[owner] = limiter
		}
	}
	l.byOwner, l.swept = busy, now
}
