package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// heard is a rows that remembers.
type heard struct{ rows []string }

func (h *heard) row(b []byte) error {
	h.rows = append(h.rows, string(b))
	return nil
}
func (*heard) wanted() bool   { return true }
func (*heard) progress(int64) {}

// The ways of a plan, each with a program that goes it; "" is a program that needs the whole.
var plans = []struct {
	filter string
	plan   string
}{
	{".[]", "flow"}, {".[].a", "flow"}, {".[]?", "flow"}, {".[] | .a", "flow"}, {". | .[] | .a | .", "flow"}, {".[].a?", "flow"}, {".[]|select(.n>3)", "flow"},
	{"def f: .a; .[] | f", "flow"}, {".[] as $x | $x", ""}, {". as $d | .[]", ""}, {".[], .[]", ""}, {".[] | (.n, .a)", "flow"}, {".[] // 1", ""},
	{".a[]", "a flow"}, {".a.b[] | .n", "a.b flow"}, {`.["a"][].n?`, "a flow"}, {`."a"[]`, "a flow"}, {".a | .[]", "a flow"}, {".a?[]", "a flow"}, {".[1:3][]", "flow 1:3"}, {".a[2:][] | .n", "a flow 2:-1"}, {".[:2] | .[]", "flow 0:2"},
	{"first(.[])", "flow most 1"}, {"limit(2; .[] | .n)", "flow most 2"}, {"limit(0; .[])", ""}, {"limit(-1; .[])", ""}, {"limit(.n; .[])", ""}, {"first(.a[] | select(.n > 2))", "a flow most 1"}, {"first(.[]) | .a", ""},
	{"map(.a)", "gather"}, {"map(.n, .a)", "gather"}, {"map(select(.n > 2))", "gather"}, {"map(empty)", "gather"}, {"[.[] | .n]", "gather"}, {"[.[].n]", "gather"}, {"[.a[]]", "a gather"}, {".a | map(.n)", "a gather"}, {".[1:2]", "gather 1:2"}, {".[:2]", "gather 0:2"}, {".[3:1]", "gather 3:1"}, {".[-2:]", ""}, {".[1:-1]", ""},
	{"[limit(2; .[])]", "gather most 2"}, {"[first(.[])]", "gather most 1"}, {"map(.a) | .[]", ""}, {"map(.a) | map(.b)", ""}, {"def map(f): 1; map(.a)", ""}, {"[.[]] | add", ""}, {".[1:] | map(.n)", "gather 1:-1"},
	{"length", "count"}, {".a | length", "a count"}, {"map(.n) | length", "count"}, {"[.[] | select(.n > 2)] | length", "count"}, {"map(select(.n > 2)) | length", "count"}, {".[1:] | length", "count 1:-1"}, {".[] | length", "flow"}, {"length | . + 1", ""}, {"def length: 1; length", ""}, {"[.a[] | .n] | length", "a count"},
	{".[0]", "item 0:1"}, {".[1000000].n", "item 1000000:1000001"}, {"limit(20000; .[])", "flow most 20000"}, {".[2].a", "item 2:3"}, {".[1] | .n", "item 1:2"}, {".a[1]", "a item 1:2"}, {"first", "item 0:1"}, {".[-1]", ""}, {".[9] | .a", "item 9:10"}, {".[1][]", "item 1:2"}, {".[0], .[1]", ""}, {".[.n]", ""},
	{".[][.n]", ""}, {".[].a[.n]", ""}, {`.a[]."\(.b)"`, ""}, {".[0][.n:]", ""}, {".[] | .[.n]", "flow"}, {".[][-1]", "flow"}, {`.[]["a"]`, "flow"}, {".[][1:-1]", "flow"},
	{".[] | select(.n == 2) | .a", "flow"}, {".[] | select(.a) | .n", "flow"}, {".a[] | select(.n > 1) | [.a]", "a flow"}, {"map(.a | select(.n) | .b)", "gather"}, {"select(.n > 2) | .a", ""}, {"select(.a.n)", ""},
	{"group_by(.n)", ""}, {"sort_by(.n)", ""}, {"add", ""}, {"unique", ""}, {"reduce .[] as $x (0; . + 1)", ""}, {"last", ""}, {".", ""}, {".a", ""}, {"keys", ""}, {"to_entries", ""}, {"[.[] | .n] == []", ""}, {"..", ""}, {"any(.[]; .n)", ""},
}

// described says a plan in words.
func described(p *plan) string {
	if p == nil {
		return ""
	}
	s := strings.TrimSpace(strings.Join(p.path, ".") + " " + []string{"flow", "gather", "count", "item"}[p.form])
	if p.from != 0 || p.to >= 0 {
		s += fmt.Sprintf(" %d:%d", p.from, p.to)
	}
	if p.most >= 0 {
		s += fmt.Sprintf(" most %d", p.most)
	}
	return s
}

func TestPlans(t *testing.T) {
	for _, c := range plans {
		p, err := parse(c.filter, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := described(planOf(p)); got != c.plan {
			t.Errorf("%s: %q, want %q", c.filter, got, c.plan)
		}
	}
}

// told is what a run said.
type told struct {
	rows    []string
	outcome outcome
}

// wholly runs a filter on each record as it is, decoded by the slow decoder, with nothing left out.
func wholly(t testing.TB, j job, text []byte) told {
	t.Helper()
	p, err := parse(j.Filter, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.compile(p.query)
	if err != nil {
		t.Fatal(err)
	}
	out := &heard{}
	e := &engine{job: &j, ctx: t.Context(), out: out, prepared: &prepared{code: &filter{code: code}, values: p.values}}
	d := newDecoder(bytes.NewReader(text))
	for {
		v, err := d.next(nil)
		if err == nil {
			err = e.record(v)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, errHalted) {
			break
		}
		if err != nil {
			if err := e.syntax(d, err); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			break
		}
	}
	e.Twice = d.twice
	return told{out.rows, e.outcome}
}

// asEver runs a filter as it is run, through a window of so many bytes; once is a text that cannot be read twice.
func asEver(t testing.TB, j job, text []byte, window int, once bool) told {
	t.Helper()
	j.window = window
	out := &heard{}
	var r io.Reader = bytes.NewReader(text)
	if once {
		r = struct{ io.Reader }{r}
	}
	o, err := j.run(context.WithoutCancel(t.Context()), r, out)
	if err != nil {
		t.Fatal(err)
	}
	return told{out.rows, o}
}

// differs says in what a run differs from one on the whole.
func differs(filter string, got, want told) string {
	g, w := got.outcome, want.outcome
	inElements := strings.HasPrefix(filter, ".[]") || strings.HasPrefix(filter, "def f: .a; .[]") || strings.HasPrefix(filter, ". | .[]")
	g.Twice, w.Twice = nil, nil // only of what is read
	g.Open = false              // see TestCutAnywhere
	if inElements {             // what went out before the fault stays
		if g.First != nil && w.First != nil {
			first := *g.First
			first.Element = w.First.Element
			g.First = &first
		}
		if w.Broken != nil {
			n := min(len(want.rows), len(got.rows))
			if len(got.rows) < len(want.rows) {
				return "fewer rows"
			}
			got.rows = got.rows[:n]
			g.Results, g.Records, g.Failed, g.First = w.Results, w.Records, w.Failed, w.First
		}
	}
	if diff := cmp.Diff(joined(want.rows), joined(got.rows)); diff != "" {
		return diff
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	if string(a) != string(b) {
		return fmt.Sprintf("outcome %s, want %s", a, b)
	}
	return ""
}

// anyJSON makes a text of values as the programs expect them, and some they do not.
func anyJSON(r *rand.Rand, depth int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	space := func() string { return pick("", "", "", " ", "\n", "\t ") }
	switch n := r.IntN(12); {
	case n < 4 && depth < 4:
		s := "["
		for i := range r.IntN(9) {
			if i > 0 {
				s += space() + ","
			}
			s += space() + anyJSON(r, depth+1)
		}
		return s + space() + "]"
	case n < 8 && depth < 4:
		s := "{"
		for i := range r.IntN(5) {
			if i > 0 {
				s += space() + ","
			}
			s += space() + pick(`"a"`, `"a"`, `"b"`, `"n"`, `"n"`, `"\u0061"`, `"é"`, `""`) + space() + ":" + space() + anyJSON(r, depth+1)
		}
		return s + space() + "}"
	case n < 10:
		return pick("0", "1", "2", "3", "4", "5", "-0", "1.50", "1e3", "12345678901234567890123", "-7")
	default:
		return pick("null", "true", "false", `"x"`, `"é\n\u00e9"`, `""`, `"\ud800"`, "\"\xff\"", `"a long string that does not fit a small window, with [ and { and \" in it"`)
	}
}

func broke(r *rand.Rand, s string) string {
	if len(s) == 0 {
		return s
	}
	at := r.IntN(len(s))
	switch r.IntN(3) {
	case 0:
		return s[:at]
	case 1:
		return s[:at] + s[at+1:]
	default:
		return s[:at] + string(`[]{},:"\x0 `[r.IntN(11)]) + s[at:]
	}
}

// Whatever the window, a filter says of a text what it says of its records as they are.
func TestStreamedIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 2000
	compared, streamed, failed := 0, 0, 0
	for range rounds {
		var text string
		for range 1 + r.IntN(3) {
			text += anyJSON(r, 0) + []string{"\n", " ", ""}[r.IntN(3)]
		}
		if r.IntN(3) == 0 {
			text = broke(r, text)
		}
		c := plans[r.IntN(len(plans))]
		j := job{Filter: c.filter}
		want := wholly(t, j, []byte(text))
		for _, window := range []int{8, 64, 0} {
			got := asEver(t, j, []byte(text), window, r.IntN(2) == 0)
			if diff := differs(c.filter, got, want); diff != "" {
				t.Errorf("%s on %q, window %d:\n%s", c.filter, text, window, diff)
				if failed++; failed > 8 {
					t.FailNow()
				}
			}
			compared++
		}
		if c.plan != "" {
			streamed++
		}
	}
	t.Logf("%d runs compared, of %d programs that stream", compared, streamed)
}

// A number or literal that the text ends with is no element, wherever the text is cut, and whatever the window. As a record it is one to
// jq, and is told.
func TestCutAnywhere(t *testing.T) {
	const digits = "1234567890123456789012345678901234567890123456789012345678901234567890"
	elements := `[1, -2.5e3,true,"a,]",[3,4],null ,{"n":5},` + digits + ",false,7]"
	records := "{\"a\":1}\n-2.5e3\n[3,true]\nnull\n" + digits + " {\"n\":5} false\n7\n"
	for _, c := range []struct {
		kind   content.Kind
		text   string
		filter []string
	}{
		{content.JSON, elements, []string{".[]", ".[] | [.]", ".[] | 1"}},
		{content.NDJSON, records, []string{".", "[.]", "1", "[..]"}},
	} {
		for n := range len(c.text) {
			want, end := 0, int64(0)
			err := content.Records(t.Context(), strings.NewReader(c.text[:n]), c.kind, func(_ int64, at content.Span) bool {
				want, end = want+1, at.End
				return true
			})
			cut := err != nil
			open := cut && c.kind == content.NDJSON && json.Valid([]byte(c.text[end:n]))
			if open {
				want, cut = want+1, false
			}
			for _, filter := range c.filter {
				for _, window := range []int{8, 64, 0} {
					got := asEver(t, job{Filter: filter}, []byte(c.text[:n]), window, n%2 == 0)
					if b := got.outcome.Broken; len(got.rows) != want || (b != nil) != cut || b != nil && !b.Cut || got.outcome.Open != open {
						t.Errorf("%s on %q, window %d: %d rows, want %d; %+v %v, want %v %v", filter, c.text[:n], window, len(got.rows), want, b, got.outcome.Open, err, open)
					}
				}
			}
		}
	}
}

func FuzzStreamed(f *testing.F) {
	for i, text := range []string{`[{"a":1,"n":4},{"a":[1,2],"n":2}]`, `{"a":[{"n":1},2],"a":[3]}`, "[1,2,", `{"a":{"b":[1,2,3]}} [4]`, "[[[[1]]]]", `[1 2]`, `{"a":[1],"b" 2}`} {
		f.Add(text, uint8(5*i), uint8(8))
	}
	f.Fuzz(func(t *testing.T, text string, program, window uint8) {
		c := plans[int(program)%len(plans)]
		j := job{Filter: c.filter}
		want := wholly(t, j, []byte(text))
		if diff := differs(c.filter, asEver(t, j, []byte(text), 8+int(window), program%2 == 0), want); diff != "" {
			t.Fatalf("%s, window %d:\n%s", c.filter, window, diff)
		}
	})
}

// The control: what is read of an element, said wrongly, is seen.
func TestStreamedSeesWrongRules(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"a":1,"n":4},`, 1000) + `{"a":2,"n":5}]`)
	for name, spoil := range map[string]func(*engine){
		"reads":   func(e *engine) { e.eachReads = &node{keys: map[string]*node{"n": nil}} },
		"element": func(e *engine) { e.plan.from = 1 },
		"most":    func(e *engine) { e.plan.most = 1 },
	} {
		j := job{Filter: "map(.a)", window: 8}
		if !spoiled(t, j, text, spoil) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// spoiled runs a job by an engine that something is wrong with, and is whether its answer differs from gojq's.
func spoiled(t *testing.T, j job, text []byte, spoil func(*engine)) bool {
	t.Helper()
	p, err := parse(j.Filter, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	out := &heard{}
	r, err := p.prepare(false, false)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{job: &j, ctx: t.Context(), out: out, prepared: r}
	spoil(e)
	if err := e.records(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return differs(j.Filter, told{out.rows, e.outcome}, wholly(t, j, text)) != ""
}
