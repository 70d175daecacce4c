package kinds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// incidents are what a summary says went wrong.
func incidents(s digest.Summary) string {
	var all []string
	for _, total := range s.Total {
		for _, word := range []string{"panic", "stack trace", "crash", "error", "warn", "fatal"} {
			if strings.Contains(total, word) {
				all = append(all, total)
				break
			}
		}
	}
	return strings.Join(all, "; ")
}

// quoting is what each language's source may hold of what its programs print.
const quoting = `
2026-11-20 10:00:00 ERROR it broke
panic: runtime error: index out of range

goroutine 1 [running]:
main.main()
	/src/a.go:3 +0x1d
Traceback (most recent call last):
  File "a.py", line 3, in <module>
    f()
ValueError: no
Exception in thread "main" java.lang.RuntimeException: no
	at a.B.c(B.java:1)
`

func TestSourceHasNoIncidents(t *testing.T) {
	control := summarize("out.txt", []byte(strings.Repeat("a line\n", 20)+quoting))
	if incidents(control) == "" {
		t.Fatalf("the control tells no incident: %q", control.Total)
	}
	for _, name := range []string{"a.go", "a.py", "a.js", "A.java", "a.yaml", "a.toml", "a.html", "a.css", "a.sql", "Makefile", "a.rs", "a.ts", "a.sh"} {
		s := summarize(name, []byte(quoting))
		if kind, broken := map[string]content.Kind{"a.yaml": content.YAML, "a.toml": content.TOML}[name]; broken {
			if s.Kind != kind || incidents(s) != "" || len(s.Damage) != 1 || !strings.Contains(s.Damage[0], ": line ") ||
				len(s.Says) != 1 {
				t.Errorf("%s: %s, %q, %q", name, s.Kind, s.Total, s.Says)
			}
		} else if s.Kind != content.Text || incidents(s) != "" || len(s.Says) > 0 {
			t.Errorf("%s: %s, %q, %q", name, s.Kind, s.Total, s.Says)
		}
	}
}

// Several files under their names: what is source among them tells nothing, what is not does.
func TestSourceAmongFiles(t *testing.T) {
	text := "==> a.go <==\n" + quoting + "==> b.py <==\n" + quoting
	s := summarize("", []byte(text))
	if s.Kind != content.Text || incidents(s) != "" || len(s.Says) > 0 {
		t.Errorf("%s, %q, %q", s.Kind, s.Total, s.Says)
	}
	if body := strings.Join(s.Body, "\n"); !strings.Contains(body, "1: ==> a.go <==") ||
		!strings.Contains(body, "15: ==> b.py <==") {
		t.Errorf("where the files begin is not told: %q", s.Body)
	}
	s = summarize("", []byte(text+"==> out.txt <==\n"+quoting))
	expect.Equal(t, incidents(s), "1 panic; 2 stack traces; 1 error", "one of three files is a program's output, told")
	// In a file of source a header is one more text that it quotes.
	if s = summarize("head_test.go", []byte(text+"==> out.txt <==\n"+quoting)); incidents(s) != "" {
		t.Errorf("%q", s.Total)
	}
}

// Code whose name is not known, as another server hands it out, quotes rather than fails.
func TestNamelessCode(t *testing.T) {
	for _, line := range []string{
		"\tat := path + f(x)", "\tat = f(x)", "\tat (where) {", "    at noon (local time) on the",
		"\tif s == \"panic: runtime error: x\" {", "\t// thread 'main' panicked at x", "\t\"(most recent call last)\",", "\tlog(\"ERROR: x\")", "\tx := `main.c:1:2: error: y`",
	} {
		if s := summarize("", []byte("func f() {\n"+line+"\n}\n")); incidents(s) != "" {
			t.Errorf("%q: %q", line, s.Total)
		}
	}
	for _, text := range []string{
		"Error: x\n    at f (/src/a.js:3:4)\n", "Error: x\n    at /src/a.js:3:4\n", "Error: x\n    at async Promise.all (index 0)\n", "Error: x\n    at Array.map (<anonymous>)\n",
		"Error: x\n   at N.C.M(String s) in C:\\x.cs:line 5\n", "Error: x\n  at N.C.M () [0x00001] in <f>:0 \n", "x.E: y\n\tat a.B.c(B.java:1) ~[a.jar:1]\n",
		"2026-11-20 10:00:00 http: \"panic: runtime error: x\"\n", "http: panic serving 1.2.3.4:5: x\n", "main.c:1:2: error: x\n",
	} {
		if s := summarize("", []byte(text)); incidents(s) == "" {
			t.Errorf("%q: nothing is told", text)
		}
	}
	files, _ := filepath.Glob(filepath.Join(peer.GoSource(t), "net", "http", "*.go"))
	noisy := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		expect.Must(t, err)
		if s := summarize("", text); incidents(s) != "" || s.Kind == content.Log {
			noisy++
			t.Logf("%s: %s, %q", f, s.Kind, s.Total)
		}
	}
	if noisy*30 > len(files) {
		t.Errorf("%d of %d files of Go source tell of incidents", noisy, len(files))
	}
}
