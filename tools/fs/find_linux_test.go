package fs

import (
	"encoding/json"
	"strings"
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

// A directory whose name is a line break and then obs: is listed as a directory: as rows of the list of obs:, its entries
// would look like observations.
func TestFindListsNoDirectoryAsObservations(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"\nobs:z/k3v9q2m7x4ab": "text", " obs:/file": "text"})
	for _, at := range []string{"\nobs:z", "\nobs:z/", " obs:"} {
		for _, show := range []string{"list", "stat", "tree"} {
			a, err := call(t, Find(), toolstest.Roots(t, dir), arguments(t, "path", at, "show", show))
			if err != nil {
				t.Fatalf("%q: %v", at, err)
			}
			if a.paged || strings.Contains(a.String(), "\nobs:") || strings.HasPrefix(a.String(), "obs:") {
				t.Errorf("%q, show=%s: a page: %t, %q", at, show, a.paged, a.String())
			}
		}
	}
}
