package engine

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

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// heard is a rows that remembers.
type heard struct{ rows []string }

func (h *heard) Part(b []byte, _ bool) error {
	h.rows = append(h.rows, string(b))
	return nil
}
func (*heard) Wanted() bool   { return true }
func (*heard) Progress(int64) {}

// told is what a run said.
type told struct {
	rows    []string
	outcome Outcome
}

// wholly runs a filter on each record as it is, decoded by the slow decoder, with nothing left out.
func wholly(t testing.TB, j Job, text []byte) told {
	t.Helper()
	p, err := plan.New(j.Filter, nil, "", false, true) // as for text: nothing is known of what it reads
	expect.Must(t, err)
	out := &heard{}
	e := &engine{Job: &j, ctx: t.Context(), out: out, Plan: p}
	d := decode.NewDecoder(bytes.NewReader(text))
	for {
		v, err := d.Next(nil)
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
	e.Twice = d.Twice
	return told{out.rows, e.Outcome}
}

// asEver runs a filter as it is run; records of over so many bytes are large; once is a text that cannot be read twice.
func asEver(t testing.TB, j Job, text []byte, largest int64, once bool) told {
	t.Helper()
	j.Largest = largest
	out := &heard{}
	var r io.Reader = bytes.NewReader(text)
	if once {
		r = struct{ io.Reader }{r}
	}
	o, err := j.Run(context.WithoutCancel(t.Context()), r, out)
	expect.Must(t, err)
	return told{out.rows, o}
}

// differs says in what a run differs from one on the whole.
func differs(filter string, got, want told) string {
	g, w := got.outcome, want.outcome
	inElements := strings.HasPrefix(filter, ".[]") || strings.HasPrefix(filter, "def f: .a; .[]") ||
		strings.HasPrefix(filter, ". | .[]")
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
	if diff := cmp.Diff(strings.Join(want.rows, "\n"), strings.Join(got.rows, "\n")); diff != "" {
		return diff
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	if string(a) != string(b) {
		return fmt.Sprintf("outcome %s, want %s", a, b)
	}
	return ""
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
			text += plantest.AnyJSON(r, 0) + []string{"\n", " ", ""}[r.IntN(3)]
		}
		if r.IntN(3) == 0 {
			text = broke(r, text)
		}
		c := plantest.Filters[r.IntN(len(plantest.Filters))]
		j := Job{Filter: c.Filter}
		want := wholly(t, j, []byte(text))
		for _, largest := range []int64{1, 64, 0} {
			got := asEver(t, j, []byte(text), largest, r.IntN(2) == 0)
			if diff := differs(c.Filter, got, want); diff != "" {
				t.Errorf("%s on %q, large from %d:\n%s", c.Filter, text, largest, diff)
				if failed++; failed > 8 {
					t.FailNow()
				}
			}
			compared++
		}
		if c.Stream != "" {
			streamed++
		}
	}
	t.Logf("%d runs compared, of %d programs that stream", compared, streamed)
}

// A number or literal that the text ends with is no element, wherever the text is cut, and whatever the window. As a
// record it is one to jq, and is told.
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
			err := kinds.Records(t.Context(), strings.NewReader(c.text[:n]), c.kind, func(_ int64, at content.Span) bool {
				want, end = want+1, at.End
				return true
			})
			cut := err != nil
			open := cut && c.kind == content.NDJSON && json.Valid([]byte(c.text[end:n]))
			if open {
				want, cut = want+1, false
			}
			for _, filter := range c.filter {
				for _, largest := range []int64{1, 64, 0} {
					got := asEver(t, Job{Filter: filter}, []byte(c.text[:n]), largest, n%2 == 0)
					if b := got.outcome.Broken; len(got.rows) != want || (b != nil) != cut || b != nil && !b.Cut ||
						got.outcome.Open != open {
						t.Errorf(
							"%s on %q, large from %d: %d rows, want %d; %+v %v, want %v %v",
							filter, c.text[:n], largest, len(got.rows), want, b,
							got.outcome.Open, err, open,
						)
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
		c := plantest.Filters[int(program)%len(plantest.Filters)]
		j := Job{Filter: c.Filter}
		want := wholly(t, j, []byte(text))
		if diff := differs(c.Filter, asEver(t, j, []byte(text), 1+int64(window), program%2 == 0), want); diff != "" {
			t.Fatalf("%s, window %d:\n%s", c.Filter, window, diff)
		}
	})
}

// The control: what is read of an element, said wrongly, is seen.
func TestStreamedSeesWrongRules(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"a":1,"n":4},`, 1000) + `{"a":2,"n":5}]`)
	for name, spoil := range map[string]func(*engine){
		"reads": func(e *engine) { e.Stream.Reads = &decode.Projection{Keys: map[string]*decode.Projection{"n": nil}} },
		"from":  func(e *engine) { e.Stream.From = 1 },
		"to":    func(e *engine) { e.Stream.To = 1 },
	} {
		j := Job{Filter: "map(.a)", Largest: 1}
		if !spoiled(t, j, text, spoil) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// spoiled runs a job by an engine that something is wrong with, and is whether its answer differs from gojq's.
func spoiled(t *testing.T, j Job, text []byte, spoil func(*engine)) bool {
	t.Helper()
	out := &heard{}
	r, err := j.Prepare()
	expect.Must(t, err)
	e := &engine{Job: &j, ctx: t.Context(), out: out, Plan: r}
	spoil(e)
	expect.Must(t, e.records(bytes.NewReader(text)))
	return differs(j.Filter, told{out.rows, e.Outcome}, wholly(t, j, text)) != ""
}
