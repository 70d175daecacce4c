package logs

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// Times of all forms are known, as the time at which they are.
func TestMarksKnowTimes(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-20T14:30:22Z INFO x":                              "2026-11-20T14:30:22Z",
		"2026-11-20 14:30:22,123 INFO x":                           "2026-11-20T14:30:22.123Z",
		"2026/11/20 14:30:22 x":                                    "2026-11-20T14:30:22Z",
		"[2026-11-20 14:30:22.5 +0100] x":                          "2026-11-20T13:30:22.5Z",
		"time=\"2026-11-20T14:30:22+01:00\" level=info":            "2026-11-20T13:30:22Z",
		"1.2.3.4 - - [20/Nov/2026:14:30:22 +0100] \"GET /\" 200 1": "2026-11-20T13:30:22Z",
		"Nov 20 14:30:22 host app: x":                              "0000-11-20T14:30:22Z",
		"Nov  2 14:30:22 host app: x":                              "0000-11-02T14:30:22Z",
		"[Mon May 18 10:00:00.123456 2026] [core:error] x":         "2026-05-18T10:00:00.123Z",
		"E1120 14:30:22.500000 1 a.go:1] x":                        "0000-11-20T14:30:22.5Z",
		"11-20 14:30:22.123  12  34 E Tag: x":                      "0000-11-20T14:30:22.123Z",
		"5/18/2026 4:39 PM INFO x":                                 "2026-05-18T16:39:00Z",
		"14:30:22 ERROR x":                                         "0000-01-01T14:30:22Z",
		"1700000000 INFO x":                                        "2023-11-14T22:13:20Z",
		"1700000000.250 INFO x":                                    "2023-11-14T22:13:20.25Z",
		"[    1.500000] x":                                         "1970-01-01T00:00:01.5Z",
		"no time":                                                  "",
	} {
		var m Marks
		for _, before := range []string{"", "14:30:22 ERROR x", "2026-11-20T14:30:22Z x"} { // the form of the line before is no matter
			m.Read([]byte(before))
			m.Read([]byte(line))
			got := ""
			if m.Known {
				got = time.UnixMilli(m.At).UTC().Format(time.RFC3339Nano)
			}
			expect.Equal(t, got, want, line)
		}
	}
}

// The level and the time of a line are those of its object.
func TestMarksAreThoseOfObjects(t *testing.T) {
	for _, name := range []string{"access.log", "colour.log", "java.log", "logfmt.log", "python.log", "syslog.log", "rust.log"} {
		text := expect.Value(os.ReadFile("../testdata/cases/" + name))(t)
		var objects bytes.Buffer
		_ = Objects(t.Context(), bytes.NewReader(text), &objects)
		var m Marks
		d := json.NewDecoder(&objects)
		for line := range strings.Lines(string(text)) {
			var o struct{ Time, Level, Status any }
			expect.Must(t, d.Decode(&o))
			m.Read([]byte(strings.TrimRight(line, "\r\n")))
			level, time := "", ""
			level, _ = o.Level.(string)
			if time, _ = o.Time.(string); name == "access.log" {
				level = map[bool]string{true: "error"}[o.Status.(float64) >= 500]
			}
			expect.Equal(t, m.Level, level, line)
			expect.Equal(t, m.Time, time, line)
		}
	}
}
