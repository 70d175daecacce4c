package engine

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// folds makes filters that ask for figures of an array, and some that need the array.
type folds struct{ *rand.Rand }

func (r folds) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r folds) key() string {
	return r.pick(".n", ".n", ".n", ".a", ".a", ".a?", ".", ".a, .n", ".n | tostring", "[.n, .a]", ".n > 2",
		"select(.n) | .a", "-.n", ".n / 2", ".a.n", "type", "nan", "empty", "length", ".[0]", "1", ".n | tojson")
}

// body makes a filter on an array.
func (r folds) body(depth int) string {
	if depth > 3 {
		return r.figure()
	}
	switch r.IntN(14) {
	case 0:
		return "{n: (" + r.body(depth+1) + "), (" + r.pick(`"k"`, "length | tostring") + "): (" + r.body(depth+1) + ")}"
	case 1:
		return "[" + r.body(depth+1) + ", " + r.body(depth+1) + "]"
	case 2:
		return "map(" + r.key() + ") | " + r.body(depth+1)
	case 3:
		return "map(select(" + r.key() + ")) | " + r.body(depth+1)
	case 4:
		return "[.[] | " + r.key() + "] | " + r.body(depth+1)
	case 5:
		return `"\(` + r.figure() + `) of \(length)"`
	case 6, 7:
		return "group_by(" + r.key() + ")" + r.groups(depth)
	case 8:
		return "if " + r.body(depth+1) + " then " + r.body(depth+1) + " else " + r.figure() + " end"
	case 9:
		return "(" + r.body(depth+1) + ")" + r.pick(" / length", " + length", " // 7", " == add", " | tojson", ", 1")
	case 10:
		return "select(length > 1) | " + r.body(depth+1)
	}
	return r.figure()
}

func (r folds) groups(depth int) string {
	before := r.pick("", "", "", " | sort_by(length)", " | map(select(length > 1))", " | reverse", " | .[:2]", "[1:]")
	return before + r.pick("[] | "+r.body(depth+1), " | map("+r.body(depth+1)+")", " | .[] | "+r.body(depth+1),
		" | length", " | [.[] | "+r.body(depth+1)+"]", " | map({k: .[0].n, v: length}) | sort_by(-.v)")
}

func (r folds) figure() string {
	sorted := r.pick("sort_by("+r.key()+")", "sort", "sort_by("+r.key()+") | reverse")
	return r.pick("length", "length", "add", "min", "max", "unique", "min_by("+r.key()+")", "max_by("+r.key()+").n",
		"unique_by("+r.key()+")", ".[0]", ".[0].n", ".[-1].a", "last", "first.a?", ".[1]", ".[:2]", ".[-2:]", ".[1:3]",
		".[-2]", sorted+" | .[:2]", sorted+" | .[-2:]", sorted+"[0]", sorted+" | last", sorted+" | .[1:3]", "add(.[].n)",
		"[.[].n] | add", "map(.n) | add", "map(.a) | length", ".", "map(.n)", "3", "reverse", "any",
		"map(.n) | unique | length")
}

func (r folds) record() string {
	if r.IntN(8) == 0 {
		return plantest.AnyJSON(r.Rand, 1)
	}
	return `{"n":` + r.pick("0", "1", "2", "2.0", "3", "-1", "0.1", "0.25", "-0", "1e2", "null", "7", "9007199254740993",
		"9007199254740992", "12345678901234567890123", `"x"`) + `,"a":` + plantest.AnyJSON(r.Rand, 2) + "}"
}

// slurpedWhole runs a filter on the array of all records by gojq.
func slurpedWhole(t *testing.T, filter, text string) told {
	t.Helper()
	p, err := plan.New(filter, nil, "", true, true)
	expect.Must(t, err)
	out, all := &heard{}, []any{}
	d := decode.NewDecoder(strings.NewReader(text))
	for {
		v, err := d.Next(nil)
		if err != nil {
			break
		}
		all = append(all, v)
	}
	e := &engine{Job: &Job{}, ctx: t.Context(), out: out, Plan: p}
	expect.Must(t, e.record(all))
	return told{out.rows, e.Outcome}
}

// A fold gives what gojq gives for the array, whether the records are slurped or the elements of one, or is unsure.
func TestFoldIsGojq(t *testing.T) {
	r := folds{rand.New(rand.NewPCG(3, 4))}
	folded, unsure, failed := 0, 0, 0
	for range 6_000 {
		filter := r.body(0)
		var records []string
		for range r.IntN(7) {
			records = append(records, r.record())
		}
		j := Job{Filter: filter, Slurp: true, Largest: []int64{1, 64, 0}[r.IntN(3)]}
		p, err := j.Prepare()
		expect.Must(t, err, filter)
		if p.Stream == nil || p.Stream.Form != plan.Folded {
			continue
		}
		folded++
		text := strings.Join(records, "\n")
		want := slurpedWhole(t, filter, text)
		got := asEver(t, j, []byte(text), j.Largest, true)
		if got.outcome.Unsure {
			if unsure++; len(got.rows) > 0 {
				t.Errorf("%s on %s is unsure after %q", filter, text, got.rows)
			}
			j.Whole = true
			got = asEver(t, j, []byte(text), j.Largest, true)
		} else if want.outcome.Failed > 0 {
			failed++
		}
		expect.MustEqual(t, differs(filter, got, want), "", "%s on %s", filter, text)
		array := []byte("[" + strings.Join(records, ",") + "]")
		got = asEver(t, Job{Filter: filter}, array, 1, false)
		expect.MustEqual(t, differs(filter, got, want), "", "%s on the array %s", filter, array)
	}
	t.Logf("%d filters have a fold, %d were unsure, %d failed in what follows", folded, unsure, failed)
	if folded < 1500 || folded-unsure < 800 {
		t.Error("too few to say something")
	}
}
