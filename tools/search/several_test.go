package search

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// Several patterns have the counts that each has alone.
func TestSeveralPatternsAreEachAlone(t *testing.T) {
	s, store := stored(t, toolstest.Roots(t, goroot(t)))
	id := keep(t, store, observations.Provenance{Tool: "keep"}, "func A\nerr\n")
	patterns := []string{"func ", `\bTODO\b`, "err != nil", "(?i)http", "nowhere at all", `["a"]`}
	for _, path := range []string{"http/httptest", "url/url.go", "obs:" + string(id), "obs:"} {
		a := must(t, Search(), s, args{"path": path, "pattern": patterns})
		var want []string
		total := 0.0
		for _, p := range patterns {
			one := must(t, Search(), s, args{"path": path, "pattern": p, "show": "dirs"})
			total += one.counts["total_matches"]
			quoted, _ := json.Marshal(p)
			want = append(want, fmt.Sprintf(`{"pattern":%s,"matches":%g,"files":%g}`, quoted, one.counts["total_matches"], one.counts["files_with_matches"]))
		}
		expect.Equal(t, strings.TrimSpace(a.String()), strings.Join(want, "\n"), path)
		expect.Equal(t, a.counts["total_matches"], total, path)
	}
	a := must(t, Search(), s, args{"path": "url", "pattern": map[string]string{"none": "nowhere at all"}})
	expect.Equal(t, a.String(), `{"pattern":"none","matches":0,"files":0}`+"\n", a.note())
	for _, wrong := range []args{{"show": "files"}, {"context": 1}, {"limit": 1}} {
		wrong["pattern"] = patterns
		expect.Fails(t, expect.Err(call(t, Search(), s, wrong)), "several patterns are only counted: leave out show, context and limit")
	}
	expect.Fails(t, expect.Err(call(t, Search(), s, args{"pattern": []string{"a", "("}})), "pattern 2: ")
}

// storing is an answer that stores texts.
type storing struct {
	answer
	texts []string
}

func (s *storing) Store(t tools.Stored) (string, error) {
	s.texts = append(s.texts, string(t.Text))
	return "k3v9q2m7x4ab", nil
}

// A list that the limit cuts is kept whole.
func TestLimitedListIsKeptWhole(t *testing.T) {
	s := toolstest.Roots(t, goroot(t))
	for _, show := range []string{"matches", "files", "counts", "dirs", "groups"} {
		a := args{"path": "http/httptest", "pattern": `func (\w)`, "show": show}
		whole := must(t, Search(), s, a)
		a["limit"] = 1
		b, err := json.Marshal(a)
		expect.Must(t, err)
		out := &storing{answer: answer{counts: map[string]float64{}}}
		expect.Must(t, Search().Run(t.Context(), tools.Input{Args: b, Sources: s}, out))
		first, _, _ := strings.Cut(whole.String(), "\n")
		expect.Equal(t, out.String(), first+"\n", show)
		if more := strings.Count(whole.String(), "\n") > 1; more != (len(out.texts) == 1) || more && out.texts[0] != whole.String() ||
			more != strings.Contains(out.note(), " rows are shown, all kept whole as obs:k3v9q2m7x4ab") {
			t.Errorf("%s: %q, kept %.100q", show, out.note(), out.texts)
		}
	}
	over := rows{to: &strings.Builder{}, limit: 1}
	for range 3 {
		_, err := over.Write(append(make([]byte, maxWhole/2), '\n'))
		expect.Must(t, err)
	}
	expect.Equal(t, over.note(nil, searchArgs{}), "the first 1 of 3 rows are shown: raise limit for more", "over the limit of memory")
}
