package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// results are what comes out of a filter, with the words of its error.
func results(next func() (any, bool)) string {
	var b strings.Builder
	for {
		v, ok := next()
		if !ok {
			return b.String()
		}
		if err, failed := v.(error); failed {
			return b.String() + "error: " + err.Error()
		}
		text, err := gojq.Marshal(v)
		if err != nil {
			return b.String() + "not written: " + err.Error()
		}
		b.Write(append(text, '\n'))
	}
}

// Whatever the value, a direct says what gojq does, or leaves it to gojq.
func TestDirectIsGojq(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	answered := map[Answer]int{}
	for _, text := range plantest.Directs {
		p, err := parse(text, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.compileFilter(p.query)
		if err != nil {
			t.Fatal(err)
		}
		if f.Direct == nil {
			t.Errorf("%s is not answered Directly", text)
			continue
		}
		sure := false
		for range 400 {
			of := plantest.AnyJSON(r, 0)
			v, err := decode.NewDecoder(strings.NewReader(of)).Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			w, a := f.Direct(v)
			if answered[a]++; a == unsure {
				continue
			}
			sure = true
			given := a == NoResult
			got := results(func() (any, bool) {
				was := given
				given = true
				return w, !was
			})
			if want := results(f.Code.Run(v, p.values...).Next); got != want {
				t.Fatalf("%s on %s: %q, gojq says %q", text, of, got, want)
			}
		}
		if !sure {
			t.Errorf("%s was never sure", text)
		}
	}
	for _, a := range []Answer{unsure, NoResult, OneResult} {
		if answered[a] < 500 {
			t.Errorf("answer %d was given %d times only", a, answered[a])
		}
	}
}

func TestIndirect(t *testing.T) {
	for _, text := range plantest.Indirect {
		p, err := parse(text, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if compileDirect(p.query) != nil {
			t.Errorf("%s is answered Directly", text)
		}
	}
}
