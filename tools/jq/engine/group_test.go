package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A filter that halts does not stop the others, and of endless results so many are counted.
func TestFiltersOfAGroupEndAlone(t *testing.T) {
	j := Job{Filters: []string{"repeat(1)", ".n", "., halt"}, Limit: 2, Most: 100}
	group := Group{Rows: new(Held)}
	_, err := j.Run(t.Context(), strings.NewReader("{\"n\":1}\n{\"n\":2}\n[1]"), &group)
	expect.Must(t, err)
	got := ""
	for _, h := range group.All {
		got += fmt.Sprint(h.Rows, h.Outcome.Results, h.Outcome.Uncounted, h.Outcome.Failed, "; ")
	}
	expect.Equal(t, got, `[1 1] 101 true 0; [1 2] 2 false 1; [{"n":1}] 1 false 0; `)
}
