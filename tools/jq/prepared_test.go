package jq

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A filter that was kept gives what it gave when it was new: by several at once, on other texts, and beside its other forms.
func TestKeptFiltersAreAsNew(t *testing.T) {
	filters := []string{
		".", ".[]", ".[] | select(.n > 2) | .a", "map(.n) | add", "length", ".[1:3]", "first(.[])", "group_by(.a) | map(length)", "[.[].n] | @csv", "$ARGS", "[.. | numbers]",
		"def f: .n + 1; map(f)", ".[] |= .n", "input_filename", "error",
	}
	texts := []string{`[{"a":1,"n":2},{"a":2,"n":3},{"a":1,"n":4}]`, `[]`, `[{"n":9}] {"x":1}`, `not JSON`}
	answer := func(j job, text string) string {
		out := &heard{}
		o, err := j.run(t.Context(), strings.NewReader(text), out)
		b, _ := json.Marshal(o)
		return fmt.Sprintf("%q %s %v", out.rows, b, err)
	}
	for _, filter := range filters {
		for _, form := range []keptBy{{filter, false, false}, {filter, true, false}, {filter, false, true}, {filter, true, true}} {
			j := job{Filter: filter, Slurp: form.slurp, Text: form.text, Name: "a.json", window: 64}
			var want []string
			for _, text := range texts {
				fresh := j
				fresh.Args = map[string]json.RawMessage{"unused": json.RawMessage("1")} // what is given by name is never kept
				if strings.Contains(filter, "$ARGS") {
					fresh.Args = nil
				}
				want = append(want, answer(fresh, text))
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					for i, text := range texts {
						if got := answer(j, text); got != want[i] {
							t.Errorf("%+v on %s: %s, new it gives %s", form, text, got, want[i])
						}
					}
				})
			}
			all.Wait()
			if _, ok := kept.Get(form); ok == (filter == "input_filename") {
				t.Errorf("%+v: kept %v", form, ok)
			}
		}
	}
	// The same text of a filter is another filter where other values have its names, or where it asks for the source's.
	for n := range 3 {
		value := json.RawMessage(fmt.Sprint(n))
		if got := answer(job{Filter: "$v", Args: map[string]json.RawMessage{"v": value}}, "null"); !strings.HasPrefix(got, fmt.Sprintf(`["%d"]`, n)) {
			t.Errorf("$v = %d: %s", n, got)
		}
		name := fmt.Sprintf("%d.json", n)
		if got := answer(job{Filter: "input_filename", Name: name}, "null"); !strings.Contains(got, name) {
			t.Errorf("of %s: %s", name, got)
		}
	}
}
