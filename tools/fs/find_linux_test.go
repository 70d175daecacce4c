package fs

import (
	"encoding/json"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// The kernel's files say that they are empty; stat measures what they hold.
func TestFindMeasuresFilesThatTellNoSize(t *testing.T) {
	a, err := call(t, Find(), toolstest.Roots(t, "/proc/self"), `{"show":"stat","glob":"status","depth":1}`)
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Size, Lines, Tokens int64 }
	if err := json.Unmarshal(a.Bytes(), &record); err != nil {
		t.Fatalf("%v: %q", err, a.String())
	}
	if record.Size != 0 || record.Lines < 10 || record.Tokens < record.Lines {
		t.Errorf("%+v", record)
	}
}
