package jq

import (
	"strings"
	"testing"
)

// TestInputLineNumber checks that a filter knows the line on which its record begins, where it has one.
func TestInputLineNumber(t *testing.T) {
	const filter = `[input_line_number, .a // .text]`
	for _, way := range ways {
		for _, c := range []struct{ name, text, want string }{
			{"NDJSON", "{\"a\":1}\n\n  {\"a\":2}\r\n{\"a\":3}", "[1,1]\n[3,2]\n[4,3]"},
			{"table", "a,b\n1,\"x\ny\"\n\n2,z\n3,z\n4,z\n", "[2,1]\n[5,2]\n[6,3]\n[7,4]"},
			{"log", strings.Repeat("2026-05-18T10:00:00Z INFO up\n", 2),
				"[1,\"2026-05-18T10:00:00Z INFO up\"]\n[2,\"2026-05-18T10:00:00Z INFO up\"]"},
			{"text", "one\n\nthree\n", "[1,\"one\"]\n[2,\"\"]\n[3,\"three\"]"},
			{"numbers", "7\n8\n", "[1,7]\n[2,8]"},
		} {
			f := filter
			if c.name == "numbers" {
				f = "[input_line_number, .]"
			}
			if r, err := run(t, way.tool, c.text, m{"filter": f}); err != nil || strings.Join(r.rows, "\n") != c.want {
				t.Errorf("%s, %s: %q, %v; want %q", way.name, c.name, r.rows, err, c.want)
			}
		}
		for text, want := range map[string]string{
			"{\"a\":1}\n{\"a\":\n2}\n{\"a\":3}\n": "line 2 is not one JSON value",
			"{\n\"a\": 1}\n":                      "line 1 is not one JSON value",
		} {
			if r, err := run(t, way.tool, text, m{"filter": filter}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %q: %q, %v; want %q", way.name, text, r.rows, err, want)
			}
		}
		for filter, want := range map[string]string{
			"input_line_number | nosuch": "\n    input_line_number | nosuch\n                        ^",
			"input_line_number | (":      "\n    input_line_number | (\n                         ^",
		} {
			_, err := run(t, way.tool, "{\"a\":1}\n", m{"filter": filter})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v", way.name, filter, err)
			}
		}
		if _, err := run(t, way.tool, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", m{"filter": filter}); err == nil ||
			!strings.Contains(err.Error(), "input_line_number knows the line of a record of NDJSON") {
			t.Errorf("%s: a diff: %v", way.name, err)
		}
		if _, err := run(t, way.tool, "1\n2\n", m{"filter": filter, "slurp": true}); err == nil {
			t.Errorf("%s: with slurp: no error", way.name)
		}
	}
}
