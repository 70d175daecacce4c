package jq

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// example is a program of somebody else's with its input.
type example struct {
	from string
	job  engine.Job
	text string
}

// byDesign are the programs on which we do not say what gojq as a library says, with the reason. One that differs no
// more fails. The library has no environment, modules or further inputs either, so those agree.
var byDesign = map[string]string{
	"input_filename": named,
	`builtins[] | select(test("input_filename"))`:      named,
	"recurse(debug|.[]?)":                              passing,
	"recurse(stderr|.[]?)":                             passing,
	`debug("value: \(.)", [.,.])`:                      passing,
	`@foo?, @bar"\(0|debug)"?, 1`:                      passing,
	`builtins | sort[] | select(test("debug|stderr"))`: passing,
}

const (
	named   = "input_filename is the source's name; the library leaves it to its user"
	passing = "debug and stderr pass their input on; the library leaves them to its user"
)

// verdict is what came of a run: the results, and of which kind the first failure was.
type verdict struct {
	Rows  string
	Fault string // "", "parse", "compile", "run", "text", or another error
}

// byGojq is the oracle: gojq as a library, and encoding/json for the text.
func byGojq(e example) (v verdict) {
	q, err := gojq.Parse(e.job.Filter)
	if err != nil {
		return verdict{Fault: "parse"}
	}
	var names []string
	var values []any
	named := map[string]any{}
	for name, raw := range e.job.Args {
		value, err := numbered(json.NewDecoder(strings.NewReader(string(raw))))
		if err != nil {
			return verdict{Fault: "args"}
		}
		names, values, named[name] = append(names, "$"+name), append(values, value), value
	}
	names, values = append(names, "$ARGS"), append(values, map[string]any{"named": named, "positional": []any{}})
	code, err := gojq.Compile(q, gojq.WithVariables(names))
	if err != nil {
		return verdict{Fault: "compile"}
	}
	var rows []string
	texts, broken := e.values()
	for _, text := range texts {
		results := code.Run(text, values...)
		for {
			r, ok := results.Next()
			if !ok {
				break
			}
			if err, failed := r.(error); failed {
				var halt *gojq.HaltError
				if !errors.As(err, &halt) || halt.Value() != nil {
					v.Fault = "run"
				}
				if halt != nil {
					return verdict{strings.Join(rows, "\n"), v.Fault}
				}
				break
			}
			b, _ := gojq.Marshal(r)
			if s, ok := r.(string); ok && e.job.Raw {
				b = []byte(s)
			}
			rows = append(rows, string(b))
		}
	}
	if broken && !e.job.Slurp {
		v.Fault = "text"
	}
	if broken && e.job.Slurp {
		return verdict{Fault: "text"}
	}
	v.Rows = strings.Join(rows, "\n")
	return v
}

// values are what the filter runs on.
func (e example) values() (values []any, broken bool) {
	switch {
	case e.job.Text && e.job.Slurp:
		return []any{e.text}, false
	case e.job.Text:
		for line := range strings.Lines(e.text) {
			values = append(values, strings.TrimSuffix(line, "\n"))
		}
		return values, false
	}
	d := json.NewDecoder(strings.NewReader(e.text))
	for {
		v, err := numbered(d)
		if err != nil {
			if broken = !errors.Is(err, io.EOF); e.job.Slurp {
				values = []any{append([]any{}, values...)}
			}
			return values, broken
		}
		values = append(values, v)
	}
}

// numbered decodes a value whose numbers keep their digits.
func numbered(d *json.Decoder) (v any, err error) {
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// judged is the verdict of a run of ours.
func judged(rows []string, o engine.Outcome, err error) verdict {
	v := verdict{Rows: strings.Join(rows, "\n")}
	switch {
	case err != nil:
		v.Fault = err.Error()
	case strings.Contains(o.Compile, "does not parse"):
		v.Fault = "parse"
	case o.Compile != "":
		v.Fault = "compile"
	case o.Broken != nil:
		v.Fault = "text"
	case o.First != nil:
		v.Fault = "run"
	}
	return v
}

// byUs runs an example in every way there is.
func byUs(t *testing.T, e example, inChild bool) map[string]verdict {
	all := map[string]verdict{}
	for _, largest := range []int64{0, 1, 64} {
		for _, once := range []bool{false, true} {
			j, g := e.job, &gathered{}
			j.Largest = largest
			var r io.Reader = strings.NewReader(e.text)
			if once {
				r = struct{ io.Reader }{r}
			}
			o, err := j.Run(t.Context(), r, g)
			all[fmt.Sprintf("large from %d, once %t", largest, once)] = judged(g.rows, o, err)
		}
	}
	if !inChild {
		return all
	}
	g := &gathered{}
	o, err := engine.RunWorker(
		t.Context(), e.job, engine.WorkerInput{Open: func() (io.Reader, error) { return strings.NewReader(e.text), nil }},
		worker.DefaultMemory, 0, g, make(chan struct{}),
	)
	all["child"] = judged(g.rows, o, err)
	args := m{"filter": e.job.Filter}
	for name, set := range map[string]bool{"raw": e.job.Raw, "slurp": e.job.Slurp, "text": e.job.Text} {
		if set {
			args[name] = true
		}
	}
	if e.job.Args != nil {
		args["args"] = e.job.Args
	}
	r, err := run(t, asItIs, e.text, args)
	v := judged(r.rows, engine.Outcome{}, nil)
	if err != nil { // the tool words it: of which kind it is, the others say
		v.Fault = all["child"].Fault
	}
	all["tool"] = v
	return all
}

// compareAll compares examples with gojq, and asserts that at least so many agree. Each eighth also runs in a worker,
// and with SAFETY=full all of them. Under -short only each fourth runs, and those of byDesign.
func compareAll(t *testing.T, all []example, least int) {
	var agree, runs atomic.Int32
	differ := map[string]*atomic.Bool{}
	t.Run("each", func(t *testing.T) {
		for i, e := range all {
			_, listed := byDesign[e.job.Filter]
			if testing.Short() && i%4 != 0 && !listed {
				continue
			}
			if listed && differ[e.job.Filter] == nil {
				differ[e.job.Filter] = new(atomic.Bool)
			}
			known := differ[e.job.Filter]
			t.Run(e.from, func(t *testing.T) {
				t.Parallel()
				want := byGojq(e)
				same := true
				for way, got := range byUs(t, e, promise.Full() || i%8 == 0) {
					runs.Add(1)
					if got == want {
						continue
					}
					if same = false; listed {
						known.Store(true)
						continue
					}
					t.Errorf("%q on %.200q, %s:\n%s", e.job.Filter, e.text, way, cmp.Diff(want, got))
				}
				if same {
					agree.Add(1)
				}
			})
		}
	})
	for filter, differs := range differ {
		if !differs.Load() {
			t.Errorf("%s: no difference any more (%s): remove it from the list", filter, byDesign[filter])
		}
	}
	t.Logf("%d of %d examples give what gojq gives, in %d runs", agree.Load(), len(all), runs.Load())
	if testing.Short() {
		least /= 4
	}
	if int(agree.Load()) < least {
		t.Errorf("only %d examples agree, at least %d did", agree.Load(), least)
	}
}

// gojq's own tests of its command, which its module brings, hold for the tool as far as it has what they ask for.
func TestGojqCorpus(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/itchyny/gojq").Output()
	if err != nil {
		t.Skipf("go does not say where gojq's module is: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "cli", "test.yaml"))
	expect.Must(t, err)
	var cases []struct {
		Name  string
		Args  []string
		Input string
	}
	expect.Must(t, yaml.Unmarshal(b, &cases))
	var all []example
	left := map[string]int{}
	for _, c := range cases {
		e, without := asked(c.Args, c.Input)
		if without != "" {
			left[without]++
			continue
		}
		e.from = c.Name
		all = append(all, e)
	}
	t.Logf("%d examples; without: %v", len(all), left)
	least := 700
	if testing.Short() { // every third
		kept := all[:0]
		for i := 0; i < len(all); i += 3 {
			kept = append(kept, all[i])
		}
		all, least = kept, 230
	}
	compareAll(t, all, least)
}

// asked turns words of a command line into a job; without: what they ask for that the tool does not have.
func asked(words []string, input string) (e example, without string) {
	e.text = input
	var plain []string
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if !strings.HasPrefix(word, "-") || word == "-" || strings.HasPrefix(word, "-.") || strings.HasPrefix(word, "-1") {
			plain = append(plain, word)
			continue
		}
		switch word {
		case "-c", "--compact-output", "-M", "--monochrome-output":
		case "-r", "--raw-output":
			e.job.Raw = true
		case "-s", "--slurp":
			e.job.Slurp = true
		case "-R", "--raw-input":
			e.job.Text = true
		case "-cr":
			e.job.Raw = true
		case "-cRr":
			e.job.Raw, e.job.Text = true, true
		case "-n", "--null-input":
			e.text = "null"
		case "--arg", "--argjson":
			if len(words) < 2 {
				return e, word + " without its words"
			}
			value := []byte(words[1])
			if word == "--arg" {
				value, _ = json.Marshal(words[1])
			}
			if e.job.Args == nil {
				e.job.Args = map[string]json.RawMessage{}
			}
			e.job.Args[words[0]] = value
			words = words[2:]
		default:
			return e, word
		}
	}
	switch {
	case len(plain) != 1:
		return e, fmt.Sprintf("%d words beside flags", len(plain))
	case badArgs(e.job.Args):
		return e, "arguments that are no JSON"
	}
	e.job.Filter, e.job.Name = plain[0], "in"
	return e, ""
}

func badArgs(args map[string]json.RawMessage) bool {
	for _, raw := range args {
		if !json.Valid(raw) {
			return true
		}
	}
	return false
}

// The examples of jq's manual, where it is installed.
func TestManual(t *testing.T) {
	f, err := os.Open("/usr/share/man/man1/jq.1.gz")
	if err != nil {
		t.Skipf("jq's manual is not installed: %v", err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	expect.Must(t, err)
	page, err := io.ReadAll(z)
	expect.Must(t, err)
	compareAll(t, manual(string(page)), 190)
}

// manual finds the examples of the page: a program, its input on the next line, and after => its results.
func manual(page string) (all []example) {
	lines := strings.Split(
		strings.NewReplacer(`\.`, ".", `\-`, "-", `\'`, "'", `\e`, `\`, `\(aq`, "'").Replace(page), "\n",
	)
	for i := 0; i+2 < len(lines); i++ {
		program, ok := strings.CutPrefix(lines[i], "jq '")
		if !ok || !strings.HasSuffix(program, "'") || !strings.HasPrefix(lines[i+1], "   ") ||
			!strings.HasPrefix(lines[i+2], "=>") {
			continue
		}
		program = strings.TrimSuffix(program, "'")
		all = append(
			all, example{from: program, job: engine.Job{Filter: program, Name: "in"}, text: strings.TrimSpace(lines[i+1])},
		)
	}
	return all
}

// gathered takes rows.
type gathered struct {
	rows []string
	held []byte
}

func (g *gathered) Part(b []byte, last bool) error {
	g.held = append(g.held, b...)
	if last {
		g.rows, g.held = append(g.rows, string(g.held)), nil
	}
	return nil
}
func (*gathered) Progress(int64) {}
func (*gathered) Wanted() bool   { return true }
