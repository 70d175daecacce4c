package conformance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// soaking is a server under random calls with faults among them, and what came of it.
type soaking struct {
	t     *testing.T
	s     *stdioClient
	root  string
	store string // where it keeps what was seen
	leak  bool   // the control: calls that never end are begun, and left

	gate    sync.RWMutex // held for reading by a call under way, alone by who measures
	resting int          // the fewest descriptors that it had at rest

	mu          sync.Mutex
	kept        []string // obs:ID, the latest
	calls       int
	faults      map[string]int
	unexplained []string
	cancelled   []pending
}

// gone is what may be said of an observation that made room or was damaged by a fault, and of a file that vanished.
var gone = regexp.MustCompile(`expired|no such observation|damaged|no such file|file does not exist`)

// call makes one, and looks whether its answer is one that can be explained: an error is
// where it was asked for, or where it says what another fault explains.
func (k *soaking) call(method string, params object, explained *regexp.Regexp) (text string, failed bool) {
	text, failed, err := said(k.s.begin(method, params))
	if err != nil {
		k.note(method, params, err.Error())
		return "", true
	}
	if failed && (explained == nil || !explained.MatchString(text)) {
		k.note(method, params, text)
	}
	if id := shownID.FindString(text); id != "" && !failed {
		k.mu.Lock()
		if k.kept = append(k.kept, id); len(k.kept) > 50 {
			k.kept = k.kept[1:]
		}
		k.mu.Unlock()
	}
	return text, failed
}

// said waits for an answer, and gives what it says.
func said(p pending) (text string, failed bool, err error) {
	m, err := p.wait()
	if err != nil {
		return "", true, err
	}
	a, err := m.said()
	return a.text(), a.failed, err
}

func (k *soaking) note(method string, params object, what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unexplained = append(k.unexplained, fmt.Sprintf("%s %.200v: %.300s", method, params, what))
}

// observation is one that was kept, or a file.
func (k *soaking) observation() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) == 0 {
		return "app.log"
	}
	return k.kept[rand.IntN(len(k.kept))]
}

var files = []string{"app.log", "orders.csv", "records.ndjson", "novel.txt", "sub/small.json"}

// usualCall is a call as a client makes it, and which of its errors others' faults explain.
type usualCall struct {
	tool, method string // one of both
	params       func(k *soaking) object
	explained    *regexp.Regexp
}

func (c usualCall) make(k *soaking) {
	params := object{}
	if c.params != nil {
		params = c.params(k)
	}
	if c.tool != "" {
		c.method, params = "tools/call", tool(c.tool, params)
	}
	k.call(c.method, params, c.explained)
}

// workerGone is what may be said of a call whose worker a fault has killed.
var workerGone = regexp.MustCompile("worker|killed|ended")

// usualCalls are drawn from at random. Some filters of jq run in the server, others in a worker.
var usualCalls = []usualCall{
	{tool: "search", explained: gone, params: func(*soaking) object {
		pattern := pick("Prince", "panic", "ERROR|WARN", `"id"`, "nothing of it")
		return object{"pattern": pattern, "context": rand.IntN(3)}
	}},
	{tool: "find", explained: gone, params: func(*soaking) object {
		return object{"glob": pick("**", "*.log", "sub/**")}
	}},
	{tool: "find", explained: gone, params: func(*soaking) object { return object{"path": "obs:"} }},
	{tool: "read", params: func(*soaking) object { return object{"path": pick(files...)} }},
	{tool: "grep", explained: gone, params: func(k *soaking) object {
		return object{"source": k.observation(), "pattern": pick("a", "the", "0"), "limit": 20}
	}},
	{tool: "grep", params: func(*soaking) object {
		return object{"source": pick(files...), "pattern": pick("e", "1"), "save": true}
	}},
	{tool: "jq", params: func(*soaking) object {
		return object{"source": "sub/small.json", "filter": pick(".", ".[0]", ".[0].id")}
	}},
	{tool: "jq", explained: workerGone, params: func(*soaking) object {
		return object{"source": "sub/small.json", "filter": pick("length", "map(.id)")}
	}},
	{tool: "jq", explained: workerGone, params: func(*soaking) object {
		return object{"source": "sub/small.json", "filter": "def f: if . > 500 then . else .+1|f end; 0|f"}
	}},
	{tool: "slice", explained: gone, params: func(k *soaking) object {
		return object{"source": k.observation(), "lines": "1-20"}
	}},
	// It may be the name of a file.
	{method: "resources/read", explained: regexp.MustCompile("."), params: func(k *soaking) object {
		return object{"uri": "observation://" + strings.TrimPrefix(k.observation(), "obs:")}
	}},
	{method: "resources/list"}, {method: "prompts/list"}, {method: "tools/list"}, {method: "ping"},
}

func pick(words ...string) string { return words[rand.IntN(len(words))] }

const never = "last(range(1e15))"

// faulty are what goes wrong outside the server, and what its client does wrong.
var faulty = map[string]func(k *soaking){
	"cancelled": func(k *soaking) {
		p := k.s.beginCall("jq", object{"source": "sub/small.json", "filter": never})
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		p.cancel()
		k.mu.Lock()
		k.cancelled = append(k.cancelled, p)
		k.mu.Unlock()
	},
	"bad arguments": func(k *soaking) {
		for _, p := range []object{tool("grep", object{"source": "app.log"}), tool("search", object{"pattern": "("}), tool("jq", object{"source": "sub/small.json", "filter": ".["}),
			tool("slice", object{"source": "app.log", "lines": "9-1"}), tool("read", object{"path": "../../etc/passwd"}), tool("nothing", object{})} {
			if text, failed := k.call("tools/call", p, regexp.MustCompile(".")); !failed {
				k.note("tools/call", p, "wrong, and answered: "+text)
			}
		}
	},
	"bad frame": func(k *soaking) {
		for _, frame := range []string{"{", "garbage \x00", `{"jsonrpc":"2.0"}`, `[]`, `{"jsonrpc":"2.0","method":"tools/call","params":7}`} {
			k.s.write([]byte(frame + "\n"))
		}
	},
	"worker killed": func(k *soaking) {
		params := tool("jq", object{"source": "sub/small.json", "filter": never})
		p := k.s.begin("tools/call", params)
		for range 1000 { // its own processes only
			if pids := k.s.children(); len(pids) > 0 {
				for _, pid := range pids {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				if p.answered() {
					if text, failed, err := said(p); err != nil || !failed {
						k.note("tools/call", params, fmt.Sprintf("its worker was killed, and: %s %v", text, err))
					}
					return
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
		p.cancel()
		p.forget()
	},
	"file vanishes": func(k *soaking) {
		name := fmt.Sprintf("vanishing-%d.txt", rand.IntN(1000))
		path := filepath.Join(k.root, name)
		_ = os.WriteFile(path, corpus.PanicLog(), 0o644)
		p := k.s.beginCall("read", object{"path": name})
		_ = os.Remove(path)
		if text, failed, err := said(p); err != nil {
			k.note("read", nil, err.Error())
		} else if failed && !gone.MatchString(text) {
			k.note("read", nil, text)
		}
	},
	"store busy": func(k *soaking) { // somebody holds the quota file: what cannot be kept is told, not failed
		f, err := os.OpenFile(filepath.Join(k.store, "state", "quota.json"), os.O_RDWR, 0)
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }()
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			k.call("tools/call", tool("search", object{"pattern": "e"}), gone)
		}
	},
	"quota file torn": func(k *soaking) {
		_ = os.WriteFile(filepath.Join(k.store, "state", "quota.json"), []byte(`{"v":1,"ke`), 0o600)
	},
	"store unwritable": func(k *soaking) {
		dir := filepath.Join(k.store, "tmp")
		moved := dir + "-away" // whatever the user: a mode would not stop root
		if os.Rename(dir, moved) == nil {
			k.call("tools/call", tool("search", object{"pattern": "e"}), gone)
			_ = os.Rename(moved, dir)
		}
	},
	"observation lost": func(k *soaking) {
		data, _ := filepath.Glob(filepath.Join(k.store, "observations", "*_*_*"))
		if len(data) > 0 {
			_ = os.Remove(data[rand.IntN(len(data))])
		}
	},
}

// work makes calls until the end; one in a hundred is a fault.
func (k *soaking) work(stop chan struct{}) {
	names := make([]string, 0, len(faulty))
	for name := range faulty {
		names = append(names, name)
	}
	slices.Sort(names)
	for {
		select {
		case <-stop:
			return
		case <-k.s.ended:
			return
		default:
		}
		if k.leak {
			k.s.beginCall("jq", object{"source": "sub/small.json", "filter": never})
			k.call("ping", object{}, nil)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		k.gate.RLock()
		fault := ""
		if rand.IntN(100) == 0 {
			fault = pick(names...)
			faulty[fault](k)
		} else {
			usualCalls[rand.IntN(len(usualCalls))].make(k)
		}
		k.mu.Lock()
		k.calls++
		if fault != "" {
			k.faults[fault]++
		}
		k.mu.Unlock()
		k.gate.RUnlock()
	}
}

// rest waits until nothing is under way, and measures.
func (k *soaking) rest(since time.Time) (measured, error) {
	k.gate.Lock()
	defer k.gate.Unlock()
	k.mu.Lock()
	for _, p := range k.cancelled { // no answer is due; one that was on its way is no fault
		p.forget()
	}
	k.cancelled = nil
	k.mu.Unlock()
	_ = k.s.ping()
	// what was cancelled is ending, or begins its worker yet: what leaks stays for all the tries
	for tries := 0; ; tries++ {
		m, err := measure(k.s.pid())
		m.at = time.Since(since)
		settled := len(k.s.children()) == 0 && (k.resting == 0 || m.descriptors <= k.resting+maxDescriptors)
		if err != nil || k.leak || settled || tries == 500 {
			if k.resting == 0 || m.descriptors < k.resting {
				k.resting = m.descriptors
			}
			return m, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// leastMeasured is how often is measured however busy the machine is: a beginning, a middle and an end.
const leastMeasured = 3

// run soaks for a time, and returns what was measured at rest, from the end of a warm-up on.
func (k *soaking) run(d time.Duration) (all []measured) {
	began := time.Now()
	if !k.leak {
		for _, once := range usualCalls { // what is loaded at first use is
			once.make(k)
		}
		for name, once := range faulty { // each at least this once, however short the time
			once(k)
			k.mu.Lock()
			k.faults[name]++
			k.mu.Unlock()
		}
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { k.work(stop) })
	}
	pause := max(d/60, 300*time.Millisecond)
	for time.Since(began) < d || len(all) < leastMeasured && !k.leak && time.Since(began) < d+time.Minute {
		time.Sleep(min(pause, d))
		m, err := k.rest(began)
		if err != nil {
			k.note("measure", nil, err.Error())
			break
		}
		if time.Since(began) > d/4 {
			all = append(all, m)
		}
	}
	close(stop)
	group.Wait()
	if m, err := k.rest(began); err == nil {
		all = append(all, m)
	}
	return all
}

// soakRoot is a small workspace.
func soakRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string][]byte{
		"app.log": corpus.PanicLog(), "orders.csv": corpus.CSV20k()[:200_000], "records.ndjson": corpus.RareKey9k(), "novel.txt": corpus.WarAndPeace()[:300_000],
		"sub/small.json": []byte(`[{"id":1,"a":"x"},{"id":2,"a":"y"},{"id":3}]`),
	} {
		write(t, filepath.Join(root, name), string(text))
	}
	return root
}

// slope is the growth per second, by least squares.
func slope(all []measured, of func(measured) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, m := range all {
		x, y := m.at.Seconds(), of(m)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d != 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

func median(all []measured, of func(measured) float64) float64 {
	list := make([]float64, len(all))
	for i, m := range all {
		list[i] = of(m)
	}
	slices.SortFunc(list, cmp.Compare)
	return list[len(list)/2]
}

func itsMemory(m measured) float64      { return float64(m.memory) }
func itsDescriptors(m measured) float64 { return float64(m.descriptors) }

// Of a process that runs for days: what it may grow by, whatever the time. Below ten
// minutes the collector's own swings are all that is seen of memory.
const (
	maxGrowth      = 64 << 20 // bytes, from the first third to the last
	maxSlope       = 1 << 20  // bytes a minute, over ten minutes and more
	maxDescriptors = 2
	maxGoroutines  = 3
)

// measured is what a process takes at a moment.
type measured struct {
	at          time.Duration
	memory      int64 // bytes that are resident
	descriptors int
	threads     int64
}

func measure(pid int) (m measured, err error) {
	memory, err := statusOf(pid, "VmRSS")
	if err != nil {
		return m, err
	}
	m.memory = memory << 10
	if m.threads, err = statusOf(pid, "Threads"); err != nil {
		return m, err
	}
	m.descriptors, err = descriptorsOf(pid)
	return m, err
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// goroutines ends the process the way that makes it write them down, and counts them.
func (k *soaking) goroutines() int {
	_ = k.s.cmd.Process.Signal(syscall.SIGQUIT)
	<-k.s.ended
	return len(goroutine.FindAllString(k.s.log.String(), -1))
}

// judge says what grew, or was not explained.
func (k *soaking) judge(all []measured, idle, end int) (wrong []string) {
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, u := range k.unexplained {
		note("unexplained: %s", u)
	}
	for _, line := range k.s.broken {
		note("on standard output: %s", line)
	}
	said := k.s.log.String()
	if i := strings.Index(said, "SIGQUIT: quit"); i < 0 {
		note("it did not live to its end: %.2000s", said)
	} else if strings.Contains(said[:i], "panic") {
		note("it panicked: %.2000s", said[:i])
	}
	if len(all) < leastMeasured {
		note("measured %d times only", len(all))
		return wrong
	}
	first, last := all[:(len(all)+2)/3], all[2*len(all)/3:]
	if grown := median(last, itsMemory) - median(first, itsMemory); grown > maxGrowth {
		note("memory grew by %.0f MiB", grown/(1<<20))
	}
	if all[len(all)-1].at > 10*time.Minute && slope(all, itsMemory)*60 > maxSlope {
		note("memory grows by %.2f MiB a minute", slope(all, itsMemory)*60/(1<<20))
	}
	if grown := median(last, itsDescriptors) - median(first, itsDescriptors); grown > maxDescriptors {
		note("%v descriptors more", grown)
	}
	if end > idle+maxGoroutines {
		note("%d goroutines at the end, %d in a server that only was asked once", end, idle)
	}
	return wrong
}

func newSoaking(t *testing.T, leak bool) *soaking {
	k := &soaking{
		t: t, root: soakRoot(t), store: filepath.Join(t.TempDir(), "store"), leak: leak, faults: map[string]int{},
	}
	k.s = launch{
		env: append(environment(t), "GOTRACEBACK=all"),
		flags: []string{"--root", k.root, "--store", k.store, "--min-free", "0", "--quota", "64MiB", "--call-timeout", "40s",
			"--jq-idle", "200ms"}, // a worker that waits for its next job has descriptors too: at rest there is none
	}.stdio(t)
	return k
}

// TestS31RunsForDays drives the binary with random calls, one in a hundred of them a fault, and
// measures it at rest: memory, descriptors and goroutines stay, and no error is without its cause.
// SOAK=10m says for how long (scripts/soak).
func TestS31RunsForDays(t *testing.T) {
	drivesOnly(t)
	t.Parallel() // it waits more than it works
	d := promise.Size(8*time.Second, 10*time.Minute)
	if testing.Short() {
		d = 6 * time.Second
	}
	if set := os.Getenv("SOAK"); set != "" {
		var err error
		if d, err = time.ParseDuration(set); err != nil {
			t.Fatalf("SOAK: %v", err)
		}
	}
	idle := newSoaking(t, false)
	for _, once := range usualCalls {
		once.make(idle)
	}
	rest := expect.Value(idle.rest(time.Now()))(t)
	usual := idle.goroutines()

	k := newSoaking(t, false)
	all := k.run(d)
	end := k.goroutines()
	wrong := k.judge(all, usual, end)
	report(t, wrong)
	control := newSoaking(t, true)
	leaks := control.judge(control.run(2*time.Second), usual, control.goroutines())

	last := rest
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	promise.Kept(t, promise.Proof{Promise: "S31", Cases: k.calls, Failures: len(wrong), Control: len(leaks),
		Figures: fmt.Sprintf("%s, faults %v; memory %d MiB, %.2f MiB a minute, idle %d MiB; %d descriptors, idle %d; %d goroutines, idle %d; %d threads; %d unexplained errors; %d answers to bad frames, and to what was cancelled; control: calls that are never ended",
			d, k.faults, last.memory>>20, slope(all, itsMemory)*60/(1<<20), rest.memory>>20, last.descriptors, rest.descriptors, end, usual, last.threads, len(k.unexplained), len(k.s.unasked))})
}
