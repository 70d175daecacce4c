package replicas

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// benchOnly skips what measures, unless make bench-replicas asks for it.
func benchOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("REPLICAS") != "bench" {
		t.Skip("measured by make bench-replicas")
	}
}

// samples are times of calls.
type samples struct {
	mu   sync.Mutex
	all  []time.Duration
	lost []string
}

func (s *samples) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *samples) lose(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, fmt.Sprintf(format, args...))
}

// at returns a quantile, such as 0.99.
func (s *samples) at(q float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	slices.Sort(s.all)
	return s.all[int(q*float64(len(s.all)-1))].Round(10 * time.Microsecond)
}

func (s *samples) String() string {
	return fmt.Sprintf("%d calls, %d lost, p50 %s, p99 %s", len(s.all), len(s.lost), s.at(0.5), s.at(0.99))
}

// crowd are identities that each make a call now and then.
type crowd struct {
	clients []*client
	mu      []sync.Mutex // of kept
	kept    []map[string]bool
}

// turn makes one call of an identity. It is lost if it fails, or shows an observation of another identity.
func (w *crowd) turn(ctx context.Context, n int, s *samples, due time.Time) {
	who := n % len(w.clients)
	c, k := w.clients[who], &w.mu[who]
	k.Lock()
	var known []string
	for id := range w.kept[who] {
		known = append(known, id)
	}
	k.Unlock()
	tool, args := "search", object{"pattern": "every[1-6]th", "path": fmt.Sprintf("text/%02d.txt", n%records)}
	kind := rand.IntN(10)
	if len(known) == 0 && kind >= 4 {
		kind = 0
	}
	switch kind {
	case 0, 1: // as above: kept
	case 2, 3:
		tool, args = "read", object{"path": "small.txt"}
	case 4, 5, 6:
		tool, args = "slice", object{"source": known[rand.IntN(len(known))], "lines": "1-20"}
	case 7, 8:
		tool, args = "grep", object{"source": known[rand.IntN(len(known))], "pattern": "every3th"}
	case 9:
		tool, args = "find", object{"path": "obs:"}
	}
	a, err := c.call(ctx, tool, args)
	s.add(time.Since(due))
	if err != nil || a.failed {
		s.lose("%s %v: %v %.200s", tool, args, err, a.text)
		return
	}
	k.Lock()
	defer k.Unlock()
	if a.receipt.Kept {
		w.kept[who][a.receipt.ID] = true
	}
	if tool == "find" {
		for _, id := range shownID.FindAllString(a.text, -1) {
			if !w.kept[who][id] && !a.receipt.Kept {
				s.lose("find shows %s, which another identity has kept", id)
			}
		}
	}
}

// press has the crowd make so many calls a second for a time, whether or not earlier ones have ended.
func (w *crowd) press(ctx context.Context, rate int, d time.Duration) *samples {
	s := &samples{}
	var group sync.WaitGroup
	began := time.Now()
	for n := range int(d.Seconds() * float64(rate)) {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		group.Go(func() { w.turn(ctx, n, s, due) })
	}
	group.Wait()
	return s
}

// memory returns what is resident of each replica now, and at most so far, in MiB.
func (m *team) memory() string {
	var all []string
	for _, r := range m.replicas {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
		field := func(name string) int {
			_, rest, _ := strings.Cut(string(status), "\n"+name+":")
			if words := strings.Fields(rest); len(words) > 0 {
				kib, _ := strconv.Atoi(words[0])
				return kib >> 10
			}
			return 0
		}
		all = append(all, fmt.Sprintf("%s %d (peak %d)", r.name, field("VmRSS"), field("VmHWM")))
	}
	return strings.Join(all, ", ") + " MiB"
}

// TestBenchCrowd has 999 identities make 200 calls a second over three replicas, then one more that calls without a
// pause beside them: with limits of an identity, and without.
func TestBenchCrowd(t *testing.T) {
	benchOnly(t)
	const identities, rate = 999, 200 // a file of tokens has at most 1,000
	d := time.Minute
	for name, flags := range map[string][]string{
		"without limits": nil,
		"with limits":    {"--rate-per-identity", "5,10", "--calls-per-identity", "2", "--quota-per-identity", "200MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for n := range identities {
				names = append(names, fmt.Sprint("i", n))
			}
			m := trio(t, newVersitygw(t), append(names, "greedy"), append(flags, "--quota", "20GiB", "--log-level", "warn")...)
			w := &crowd{mu: make([]sync.Mutex, identities), kept: make([]map[string]bool, identities)}
			for n, id := range names {
				w.kept[n] = map[string]bool{}
				w.clients = append(w.clients, open(t, m.balancer.URL, m.tokens[id], eras[2+n%2]))
			}
			w.press(t.Context(), 50, 10*time.Second) // what is loaded at first use is
			before := m.memory()
			alone := w.press(t.Context(), rate, d)
			middle := m.memory()
			t.Logf("%d identities, %d calls a second for %s: %s", identities, rate, d, alone)
			ctx, stop := context.WithCancel(t.Context())
			var greedy, refused atomic.Int64
			var group sync.WaitGroup
			for range 8 {
				c := open(t, m.balancer.URL, m.tokens["greedy"], stateless)
				group.Go(func() {
					for ctx.Err() == nil {
						a, err := c.call(ctx, "run", object{"command": "seq -f 'row %.0f of many' 30000"})
						switch {
						case err != nil && strings.Contains(err.Error(), "429"):
							refused.Add(1)
							_ = sleep(ctx, 50*time.Millisecond)
						case err == nil && !a.failed:
							greedy.Add(1)
						}
					}
				})
			}
			beside := w.press(ctx, rate, d)
			stop()
			group.Wait()
			t.Logf("beside one that made %d calls of 600 KB and was refused %d: %s; p99 is %.2f of that before",
				greedy.Load(), refused.Load(), beside, float64(beside.at(0.99))/float64(alone.at(0.99)))
			t.Logf("memory: before %s; after %s; at the end %s", before, middle, m.memory())
			for _, lost := range append(alone.lost, beside.lost...)[:min(5, len(alone.lost)+len(beside.lost))] {
				t.Error(lost)
			}
		})
	}
}

// TestBenchReplicas has the same crowd make the same calls over one, two and three replicas.
func TestBenchReplicas(t *testing.T) {
	benchOnly(t)
	const identities, rate = 300, 200
	for n := 1; n <= 3; n++ {
		var names []string
		for n := range identities {
			names = append(names, fmt.Sprint("i", n))
		}
		m := several(t, n, newVersitygw(t), names, "--quota", "20GiB", "--log-level", "warn")
		w := &crowd{mu: make([]sync.Mutex, identities), kept: make([]map[string]bool, identities)}
		for n, id := range names {
			w.kept[n] = map[string]bool{}
			w.clients = append(w.clients, open(t, m.balancer.URL, m.tokens[id], eras[2+n%2]))
		}
		w.press(t.Context(), 50, 10*time.Second) // what is loaded at first use is
		s := w.press(t.Context(), rate, 30*time.Second)
		t.Logf("%d replicas, %d calls a second: %s; memory %s", n, rate, s, m.memory())
		for _, r := range m.replicas {
			r.kill()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// counted is a proxy before an S3 server that counts requests by method.
func counted(t testing.TB, to string) (at string, count *sync.Map) {
	target, err := url.Parse(to)
	expect.Must(t, err)
	count = &sync.Map{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
		n, _ := count.LoadOrStore(r.In.Method+" "+r.In.Header.Get("Range"), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL, count
}

// TestBenchStore measures the shared store beside a directory, and beside minio-go alone.
func TestBenchStore(t *testing.T) {
	benchOnly(t)
	g := newVersitygw(t)
	m := newTeam(t, g, "anna")
	large := []string{"--max-observation", "2GiB", "--quota", "20GiB", "--cache-size", "4GiB"}
	m.start("a", large...)
	dir := []string{"--store", filepath.Join(t.TempDir(), "store"), "--min-free", "0"}
	local := serve(t, "local", append(append([]string{
		"--root", m.root, "--token-file", filepath.Join(m.dir, "tokens"), "--toolsets", "core,shell", "--sandbox", "off",
	}, dir...), large...)...)

	for _, size := range []int{64 << 10, 1 << 20} {
		path := filepath.Join(m.root, fmt.Sprint("size", size))
		write(t, path, text(size))
		var both []*client
		for _, r := range []*replica{m.replicas[0], local} {
			both = append(both, open(t, r.url, m.tokens["anna"], stateless))
		}
		took := [2]samples{}
		for range 60 {
			for i, c := range both {
				a := c.must(t, "run", object{"command": "cat size" + fmt.Sprint(size)})
				expect.OK(t, isKept(a))
				took[i].add(a.took)
			}
		}
		t.Logf("receipt of %d KiB: p50 %s shared, %s in a directory: %s more; p99 %s and %s", size>>10, took[0].at(0.5),
			took[1].at(0.5), took[0].at(0.5)-took[1].at(0.5), took[0].at(0.99), took[1].at(0.99))
	}
	m.benchKeep(t, dir, large)
	m.benchSlice(t, g, large)
}

// text returns so many bytes of lines.
func text(size int) []byte {
	var b bytes.Buffer
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "line %d has %d and %x\n", n, rand.Int64(), rand.Int64())
	}
	return b.Bytes()[:size]
}

func (m *team) benchKeep(t *testing.T, dir, large []string) {
	const size = 300_000_000
	path := filepath.Join(t.TempDir(), "large")
	write(t, path, text(size))
	u, err := url.Parse(m.objects.url())
	expect.Must(t, err)
	creds := credentials.NewStaticV4(access, secret, "")
	client, err := minio.New(u.Host, &minio.Options{Creds: creds, Region: "us-east-1"})
	expect.Must(t, err)
	keep := func(flags ...string) {
		cmd := exec.Command(built.Program(t, "cmd/mcp-funnel"), append(append([]string{"keep"}, flags...), large...)...)
		cmd.Env = environ(t)
		in, err := os.Open(path)
		expect.Must(t, err)
		defer func() { _ = in.Close() }()
		cmd.Stdin = in
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, "%.500s", out)
		expect.Contains(t, string(out), "SAVED as obs:")
	}
	cache := t.TempDir()
	ways := []struct {
		name string
		do   func()
	}{
		{"FPutObject", func() {
			name := fmt.Sprint("bench/", rand.Int64())
			_, err := client.FPutObject(t.Context(), bucket, name, path, minio.PutObjectOptions{})
			expect.Must(t, err)
		}},
		{"keep, shared", func() { keep(m.store(cache)...) }},
		{"keep, directory", func() { keep(dir...) }},
	}
	took := make([]samples, len(ways))
	for round := range 6 {
		for i, w := range ways {
			began := time.Now()
			if w.do(); round > 0 { // the first one warms up
				took[i].add(time.Since(began))
			}
		}
	}
	for i, w := range ways {
		t.Logf("300 MB by %s: median %s, %.2f × FPutObject", w.name, took[i].at(0.5),
			float64(took[i].at(0.5))/float64(took[0].at(0.5)))
	}
}

func (m *team) benchSlice(t *testing.T, g *versitygw, large []string) {
	c := open(t, m.replicas[0].url, m.tokens["anna"], stateless)
	to, err := c.link(t.Context(), "")
	expect.Must(t, err)
	block := text(1 << 20)
	const blocks = 1000
	began := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, strings.Replace(to, m.balancer.URL, c.url, 1),
		io.NopCloser(&repeated{block: block, left: blocks}))
	expect.Must(t, err)
	r.ContentLength = int64(len(block)) * blocks
	response, err := clients.Do(r)
	expect.Must(t, err)
	answer, err := io.ReadAll(response.Body)
	expect.Must(t, err)
	_ = response.Body.Close()
	id := shownID.FindString(string(answer))
	t.Logf("1 GB by a link: %s", time.Since(began).Round(time.Millisecond))
	at, count := counted(t, g.url())
	fresh := serve(t, "fresh", append(append([]string{"--root", m.root, "--token-file", filepath.Join(m.dir, "tokens")},
		strings.Split(strings.ReplaceAll(strings.Join(m.store(t.TempDir()), "\x00"), g.url(), at), "\x00")...), large...)...)
	c = open(t, fresh.url, m.tokens["anna"], stateless)
	lines := bytes.Count(block, []byte("\n")) * blocks
	var took samples
	for n := range 40 {
		from := lines/4 + n*lines/100
		a := c.must(t, "slice", object{"source": id, "lines": fmt.Sprintf("%d-%d", from, from+20)})
		if n > 0 {
			took.add(a.took)
		}
	}
	asked := map[string]int64{}
	count.Range(func(k, v any) bool {
		method, _, _ := strings.Cut(k.(string), " ")
		asked[method] += v.(*atomic.Int64).Load()
		asked["different"]++
		return true
	})
	t.Logf("slice in the middle of 1 GB: %s; requests for 40 slices: %v", &took, asked)
}

// repeated reads the same block again and again.
type repeated struct {
	block []byte
	at    int
	left  int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.block[r.at:])
	if r.at += n; r.at == len(r.block) {
		r.at, r.left = 0, r.left-1
	}
	return n, nil
}
