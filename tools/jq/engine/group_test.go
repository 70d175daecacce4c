package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// few wants the first rows.
type few struct{ rows []string }

func (f *few) Wanted() bool   { return len(f.rows) < 3 }
func (f *few) Progress(int64) {}
func (f *few) Part(b []byte, _ bool) error {
	f.rows = append(f.rows, string(b))
	return nil
}

// A filter whose results never end does not stop the others, and neither does one that halts.
func TestEndlessResultsAreNotCounted(t *testing.T) {
	before := countFor
	defer func() { countFor = before }()
	countFor = time.Millisecond
	j, out := Job{Filters: []string{"repeat(1)", ".n", "., halt", "}"}}, []Rows{new(few), new(few), new(few), new(few)}
	all, err := j.RunGroup(t.Context(), strings.NewReader("{\"n\":1}\n{\"n\":2}\n[1]"), out)
	expect.Must(t, err)
	got := fmt.Sprint(all[0].Uncounted, all[1].Uncounted, all[1].Results, all[1].First.Record, all[2].Results, all[2].Uncounted, all[3].Compile != "",
		out[0].(*few).rows, out[1].(*few).rows, out[2].(*few).rows)
	expect.Equal(t, got, `true false 2 2 1 false true [1 1 1] [1 2] [{"n":1}]`)
}
