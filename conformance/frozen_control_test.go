package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestFrozenFindsChanges shows what TestFrozen finds and what it ignores.
func TestFrozenFindsChanges(t *testing.T) {
	drivesOnly(t)
	const before = "package a\nimport \"encoding/json\"\n" +
		"type Line struct {\n\tSeen inner `json:\"seen\"`\n\tKept bool `json:\"kept,omitempty\"`\n}\n" +
		"type inner struct { Bytes int64 `json:\"bytes\"`; Raw json.RawMessage `json:\"raw\"` }\n" +
		"const key = \"funnel/receipt\"\n"
	facts := func(text string) string {
		s := newSourceFacts()
		expect.Must(t, s.add([]byte(text)))
		return strings.Join(s.lines(), "\n")
	}
	want := facts(before)
	for name, c := range map[string]struct {
		old, new string
		found    bool
	}{
		"a key":         {`"kept,omitempty"`, `"held,omitempty"`, true},
		"an inner key":  {`"bytes"`, `"size"`, true},
		"omitempty":     {`"kept,omitempty"`, `"kept"`, true},
		"a type":        {"Kept bool", "Kept string", true},
		"a key of meta": {"funnel/receipt", "funnel/answer", true},
		"a field":       {"Kept bool", "Whole bool", false},
		"a named type":  {"inner", "totals", false},
		"a constant":    {"const key", "const receiptKey", false},
	} {
		expect.Equal(t, facts(strings.ReplaceAll(before, c.old, c.new)) != want, c.found, "a change of %s: found", name)
	}

	p := newFrozenProgram(t)
	help, _ := p.run("", nil, "observations", "list", "--help")
	_, _, flags := helpOf(help)
	_, _, changed := helpOf(strings.Replace(help, "--json ", "--ndjson ", 1))
	if slices.Equal(slices.Sorted(maps.Keys(flags)), slices.Sorted(maps.Keys(changed))) || len(flags) != len(changed) {
		t.Errorf("a changed flag is not found in %v", slices.Sorted(maps.Keys(changed)))
	}
	all, _ := p.run("", nil, "--help")
	_, _, flags = helpOf(all)
	_, _, changed = helpOf(regexp.MustCompile(`Default:\s+4000\.`).ReplaceAllString(all, "Default: 5000."))
	if flags["page-tokens"].String() == changed["page-tokens"].String() {
		t.Errorf("a changed default is not found: %s", changed["page-tokens"])
	}

	const answer = "LARGE OUTPUT DETECTED: kept whole as obs:k3v9q2m7x4ab\n--- head: 1-10 of 300 ---\n" +
		"showing 1-2 of 3; next: jq {\"a\":1}"
	phrases := strings.Join(frozenPhrases(answer), "\n")
	for _, c := range [][2]string{
		{"kept whole as", "stored as"},
		{"--- head", "--- top"},
		{"; next: ", "; go on: "},
		{"showing", "shown"},
	} {
		if got := strings.Join(frozenPhrases(strings.Replace(answer, c[0], c[1], 1)), "\n"); got == phrases {
			t.Errorf("%q for %q is not found", c[1], c[0])
		}
	}
	other := strings.NewReplacer("k3v9q2m7x4ab", "0123456789ab", "300", "301").Replace(answer)
	if got := strings.Join(frozenPhrases(other), "\n"); got != phrases {
		t.Errorf("other IDs and numbers are taken for a change:\n%s", cmp.Diff(phrases, got))
	}
	keys := frozenKeys(t, `{"seen":{"lines":1},"origin":["a"]}`)
	for _, other := range []string{
		`{"seen":{"rows":1},"origin":["a"]}`,
		`{"seen":{"lines":"1"},"origin":["a"]}`,
		`{"seen":{"lines":1}}`,
	} {
		if slices.Equal(frozenKeys(t, other), keys) {
			t.Errorf("%s is taken for the same keys", other)
		}
	}
}
