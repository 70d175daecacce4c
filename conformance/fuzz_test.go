package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// fuzzTargets finds the fuzz targets below a directory, and the number of committed inputs of each.
func fuzzTargets(t *testing.T, top string) map[string]int {
	t.Helper()
	found := map[string]int{}
	expect.Must(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			d.Name() == "node_modules" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(d.Name(), "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		for _, m := range fuzzFunction.FindAllSubmatch(text, -1) {
			inputs, err := os.ReadDir(filepath.Join(dir, "testdata", "fuzz", string(m[1])))
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			found[strings.TrimPrefix(dir, top+"/")+" "+string(m[1])] = len(inputs)
		}
		return nil
	}))
	return found
}

// parsers maps each parser of foreign input to the fuzz target it must have.
var parsers = map[string]string{
	"frames":       "server FuzzFrames",
	"receipts":     "funnel FuzzAnswer",
	"sidecars":     "observations/backend FuzzSidecar",
	"pointers":     "text/content FuzzPointer",
	"ignore rules": "system/tree FuzzRules",
	"patterns":     "text/linesearch FuzzCompile",
	"diffs":        "kinds/diff FuzzDiff",
	"tokens":       "text/tokens FuzzCount",
	"usage":        "session/usage FuzzParseMeta",
	"hooks":        "session/usage FuzzParseClientEvent",
	"sessions":     "session/usage FuzzLastRecord",
	"source files": "kinds/outline FuzzOf",
	"citations":    "tools/investigate/evidence FuzzCheck",
	"clients":      "cmd/internal/clientconfig FuzzChanges",
}

// Every fuzz target has a corpus that is committed, so that what fuzzing found is tried by every run; scripts/fuzz
// finds the targets in the same way, by asking for them.
func TestS32FuzzTargetsHaveACorpus(t *testing.T) {
	without := func(found map[string]int) (missing []string) {
		for name, inputs := range found {
			if inputs == 0 {
				missing = append(missing, name)
			}
		}
		return missing
	}
	found := fuzzTargets(t, "..")
	missing := without(found)
	for parser, target := range parsers {
		if _, ok := found[target]; !ok {
			missing = append(missing, "the parser of "+parser)
		}
	}
	for _, name := range missing {
		t.Errorf("%s has no target, or no input below testdata/fuzz: run scripts/fuzz and keep some of what it finds", name)
	}
	inputs := 0
	for _, n := range found {
		inputs += n
	}
	planted := t.TempDir()
	write(t, planted+"/x/x_test.go", "package x\n\nimport \"testing\"\n\nfunc FuzzPlanted(f *testing.F) {}\n")
	promise.Kept(t, promise.Proof{
		Promise:  "S32",
		Cases:    len(found) + len(parsers),
		Failures: len(missing),
		Control:  len(without(fuzzTargets(t, planted))),
		Figures:  fmt.Sprintf("fuzz targets with %d committed inputs", inputs),
	})
}
