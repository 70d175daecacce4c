package cases

import (
	"path/filepath"
	"testing"
)

// TestLogs: outputs of tests and lists name what failed.
func TestLogs(t *testing.T) {
	var tests []one
	for file, has := range map[string][]string{
		"testlogs/gotest-panic.txt": {"panic: runtime error: index out of range"},
		"testlogs/gotest-mid.txt":   {"--- FAIL: TestRound"},
		"testlogs/junit.xml":        {"line 454", "rounding", "expected 3 but was 4"},
		"testlogs/dotnet.txt":       {"line 451:   Failed Shop.Tax.Rounds [3 ms]"},
		"testlogs/eslint.txt":       {"line 451:   12:1   error    'rate' is not defined"},
		"lists/error.txt":           {"line 451: ERROR: disk full", "line 452: fatal: cannot write index"},
		"lists/find.txt":            {"line 451: find: '/srv/shop/private': Permission denied"},
		"lists/tar.txt": {"line 451: tar: shop/private/k.pem: Cannot open",
			"line 452: tar: Exiting with failure"},
		"lists/prettier.txt": {"line 451: [error] shop/x.ts: SyntaxError"},
	} {
		dir, name := filepath.Split(file)
		tests = append(tests, one{dir: filepath.Clean(dir), args: call("read", "path="+name), has: has,
			lacks: []string{"; table;"}})
	}
	try(t, tests)
}

func TestTerminal(t *testing.T) { script(t, "run/terminal.py") }

func TestScratch(t *testing.T) { script(t, "run/scratch.py") }
