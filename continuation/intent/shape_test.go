package intent

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var fencedExample = regexp.MustCompile("(?s)```\n(.*?)\n```")

// example returns the example in the shape of a level.
func example(t testing.TB, level Level) []byte {
	t.Helper()
	m := fencedExample.FindStringSubmatch(Shape(level))
	if m == nil {
		t.Fatalf("%s: the shape has no example", level)
	}
	return []byte(m[1])
}

// The example of each shape passes the check, and the text names every field.
func TestShapeExamplesPass(t *testing.T) {
	fields := map[Level][]field{
		Intent: intentFields,
		Tasks:  append(planFields, taskFields[:5]...),
		Action: actionFields,
	}
	for level, all := range fields {
		message := "make me a pdf with the sales from data/q3.csv, per region, by friday"
		o := Options{Known: func(name string) bool { return name == "data/q3.csv" }, Window: 128000}
		if level == Intent {
			o.Message = []byte(message)
		} else {
			o.Intent = example(t, Intent)
		}
		if r := Check(level, example(t, level), o); len(r.Faults) > 0 {
			t.Errorf("%s: the example has faults: %q", level, r.Faults)
		}
		for _, f := range all {
			if !strings.Contains(Shape(level), "`"+f.name+"`") {
				t.Errorf("%s: the shape does not name %s", level, f.name)
			}
		}
		n := tokens.New(tokens.O200k).Count(Shape(level))
		t.Logf("%s: %d tokens", level, n)
		if n > 600 {
			t.Errorf("%s: the shape costs %d tokens, at most 600", level, n)
		}
	}
	if Shape("workflow") != "" || Shape("../intent") != "" {
		t.Error("an unknown level has a shape")
	}
}
