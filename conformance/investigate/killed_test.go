package investigate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// runner calls the tool in a process of its own, as a client does that starts a server for each call.
type runner struct {
	t                 *testing.T
	bin, root, store  string
	acknowledged      map[string]bool // directories whose notes were acknowledged
	killed, completed int
}

func newRunner(t *testing.T, bin, root string) *runner {
	return &runner{t: t, bin: bin, root: root, store: filepath.Join(t.TempDir(), "store"), acknowledged: map[string]bool{}}
}

// command returns a run of the program on the runner's root and store.
func (r *runner) command(ctx context.Context, words ...string) *exec.Cmd {
	words = append([]string{"--root", r.root, "--store", r.store, "--min-free", "0"}, words...)
	return exec.CommandContext(ctx, r.bin, words...)
}

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// call runs one call; after > 0 it is killed then. ok is false if it was.
func (r *runner) call(args object, after time.Duration) (text string, o order, ok bool) {
	r.t.Helper()
	raw, err := json.Marshal(args)
	expect.Must(r.t, err)
	ctx, stop := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer stop()
	c := r.command(ctx, "--toolsets", "core,investigation", "call", "--json", "investigate", string(raw))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	expect.Must(r.t, c.Start())
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		defer timer.Stop()
	}
	err = c.Wait()
	var answer struct {
		Blocks []struct{ Text string }
		Failed bool
	}
	if json.Unmarshal(out.Bytes(), &answer) != nil || len(answer.Blocks) == 0 {
		if after == 0 {
			r.t.Fatalf("%v: %s%s", err, out.String(), errs.String())
		}
		r.killed++
		return "", o, false
	}
	text = answer.Blocks[0].Text
	if answer.Failed {
		r.t.Fatalf("%s: %s", raw, text)
	}
	r.completed++
	return text, orderOf(text), true
}

var (
	orderLine = regexp.MustCompile(`WORK ORDER (ord:\w{12})( \(|: survey|: report)`)
	dirLine   = regexp.MustCompile(`(?m)^directories: (.*)$`)
)

// orderOf reads an order off the text of an answer, as an agent does.
func orderOf(text string) (o order) {
	m := orderLine.FindStringSubmatch(text)
	if m == nil {
		return o
	}
	o.Order, o.Step = m[1], map[string]string{" (": "directory", ": survey": "plan", ": report": "report"}[m[2]]
	if d := dirLine.FindStringSubmatch(text); d != nil {
		for _, p := range strings.Split(d[1], ", ") {
			o.Dirs = append(o.Dirs, struct {
				Path, Tier string
				Turns      int
			}{Path: p})
		}
	}
	return o
}

// finish answers orders until none is left. kill gives the time after which a call is killed; 0: it is not.
func (r *runner) finish(kill func() time.Duration) {
	r.t.Helper()
	var o order
	for range 20_000 {
		if o.Order == "" {
			text, next, ok := r.call(object{}, kill())
			if !ok {
				continue
			}
			if o = next; o.Order == "" {
				if strings.HasPrefix(text, "done") {
					return
				}
				r.t.Fatalf("nothing is given out: %s", text)
			}
		}
		for _, d := range o.Dirs {
			if r.acknowledged[d.Path] {
				r.t.Errorf("%s is given out again", d.Path)
			}
		}
		_, next, ok := r.call(object{"order": o.Order, "note": o.note("The directory %s is one of many.")}, kill())
		if ok {
			for _, d := range o.Dirs {
				r.acknowledged[d.Path] = true
			}
		}
		o = next
	}
	r.t.Fatal("it does not end")
}

// report returns the report without what differs between two runs.
func (r *runner) report() string {
	r.t.Helper()
	out := expect.Value(r.command(r.t.Context(), "investigations", "report").Output())(r.t)
	return unstable.ReplaceAllString(string(out), "_")
}

// TestKilled kills calls at random points of a scripted run: no acknowledged note is lost or asked for again, and the
// report is that of a run without kills.
func TestKilled(t *testing.T) {
	if promise.UnderRace {
		t.Skip("it drives a program that is built without the race detector: tried by the run without it")
	}
	dirs, kills := promise.Size(25, 300), promise.Size(15, 200)
	bin, root := built.Program(t, "cmd/mcp-funnel"), many(t, dirs)
	calm := newRunner(t, bin, root)
	began := time.Now()
	calm.finish(func() time.Duration { return 0 })
	each := time.Since(began) / time.Duration(calm.completed)
	hit := newRunner(t, bin, root)
	random := rand.New(rand.NewPCG(5, 6))
	left := kills
	hit.finish(func() time.Duration {
		if left == 0 || random.IntN(3) == 0 {
			return 0
		}
		left--
		return time.Duration(1 + random.Int64N(int64(each)))
	})
	if want, got := calm.report(), hit.report(); got != want {
		t.Errorf("the report differs:\n%.1000s\nwant\n%.1000s", got, want)
	}
	out, err := hit.command(t.Context(), "investigations", "verify").CombinedOutput()
	expect.OK(t, err, "verify: %s", out)
	t.Logf("%d calls killed, %d answered, %s each", hit.killed, hit.completed, each)
}
