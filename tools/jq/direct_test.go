package jq

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

// Filters that are answered directly, and some that must not be.
var (
	directs = []string{
		".", ".a", ".a.b", `.["a"]`, `."a".n`, ".[0]", ".a[2]", ".[1].a", ".a | .n", "1", "-1", "1.50", "100000000000000000000", `"x"`, "null", "true",
		".a == 1", ".n > 2.5", ".n >= .a", ".a != null", `.a < "x"`, ".a <= -1", ". == .a", ".n == 12345678901234567890123", ".a == 1 and .n > 2", ".a or .n", ".a and .n | not",
		"select(.a)", "select(.n > 2 and .n < 5) | .a", "select(.a | not)", "select(.a == 1) | {a, n}", ".a // .n", `.a // "none"`, "(.a // .n) // empty", "empty", "empty // 1", "empty or true",
		"{a}", `{a, "n": .n, x: 1}`, `{"a"}`, "{a: .a, a: .n}", "{a: .a.b}", "{}", "[.a]", "[.a, .n]", "[.a, empty, (.n | select(. > 2))]", "[empty]",
		"if .a then .n else .b end", "if .a then .n end", "if .n > 3 then 1 elif .a then 2 else {a} end", "if .n > 3 then 1 elif .a then 2 end", "if empty then 1 else 2 end", "(.a)", "(.a).b", "{a: 1}.a", `"x" == .a`, "-1 < .n",
	}
	indirect = []string{
		".[]", ".a?", ".a, .n", ".[-1]", ".[.n]", ".[1:]", ".a + 1", `"\(.a)"`, "map(.a)", "length", ". as $x | $x", "def f: .a; f", "def select(f): 1; select(.a)", "select(.a, .n)", "{(.a): 1}", "{$__loc__}", "[]", "[.[]]", "-.a", "..",
		".a |= 1", "try .a", "@text", "first(.a)", "error", "input", "$ARGS", "reduce . as $x (0; 1)",
	}
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
	answered := map[answer]int{}
	for _, text := range directs {
		p, err := parse(text, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.ready(p.query)
		if err != nil {
			t.Fatal(err)
		}
		if f.direct == nil {
			t.Errorf("%s is not answered directly", text)
			continue
		}
		sure := false
		for range 400 {
			of := anyJSON(r, 0)
			v, err := newDecoder(strings.NewReader(of)).next(nil)
			if err != nil {
				t.Fatal(err)
			}
			w, a := f.direct(v)
			if answered[a]++; a == unsure {
				continue
			}
			sure = true
			given := a == noResult
			got := results(func() (any, bool) {
				was := given
				given = true
				return w, !was
			})
			if want := results(f.code.Run(v, p.values...).Next); got != want {
				t.Fatalf("%s on %s: %q, gojq says %q", text, of, got, want)
			}
		}
		if !sure {
			t.Errorf("%s was never sure", text)
		}
	}
	for _, a := range []answer{unsure, noResult, oneResult} {
		if answered[a] < 500 {
			t.Errorf("answer %d was given %d times only", a, answered[a])
		}
	}
}

func TestIndirect(t *testing.T) {
	for _, text := range indirect {
		p, err := parse(text, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if directly(p.query) != nil {
			t.Errorf("%s is answered directly", text)
		}
	}
}
