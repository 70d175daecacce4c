package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// TestScripts runs testdata/script against the binary. Each script has a store
// and a home of its own; $CORPUS is a directory with the real inputs.
func TestScripts(t *testing.T) {
	drivesOnly(t)
	bin := filepath.Dir(binary(t))
	inputs, home := t.TempDir(), t.TempDir()
	for name, text := range map[string][]byte{
		"war-and-peace.txt": corpus.WarAndPeace(),
		"1MB.json":          corpus.JSON1MB(),
		"5MB.json":          corpus.JSON5MB(),
		"minified.json":     corpus.JSON1MBMinified(),
		"panic.log":         corpus.PanicLog(),
		"orders.csv":        corpus.CSV20k(),
		"rare.ndjson":       corpus.RareKey9k(),
		"cjk.txt":           corpus.CJK(),
		"random.bin":        corpus.Random(1 << 20), "edited.diff": corpus.WarAndPeaceDiff(),
	} {
		write(t, filepath.Join(inputs, name), string(text))
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			// A home inside the working directory would make that too wide to be granted unasked.
			e.Setenv("HOME", home)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("CORPUS", inputs)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"obs": observe},
	})
}

// observe is the scripts' command `obs NAME FILE`: it sets NAME to the first obs:ID in a file (stdout is one).
func observe(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: obs NAME FILE")
	}
	id := shownID.FindString(ts.ReadFile(args[1]))
	if (id == "") != neg {
		ts.Fatalf("observation in %s: %q", args[1], id)
	}
	ts.Setenv(args[0], id)
}
