package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Logs of each format are of the kind log, and have a time and the level of an error where a line says so.
func TestFormatsOfLogs(t *testing.T) {
	for name, c := range map[string]struct{ line, info, failure string }{
		"Apache":       {"[Wed Oct 11 14:%02d:52.123456 2026] [core:%s] [pid 1:tid 2] AH00037: x", "notice", "error"},
		"RFC 5424":     {"<%[2]s>1 2026-05-18T10:%02[1]d:00Z host app 1 - - x", "134", "131"},
		"RFC 3164":     {"<%[2]s>Oct 11 22:%02[1]d:15 host su: x", "38", "35"},
		"threadtime":   {"11-26 04:%02d:00.123  1234  5678 %s Tag: x", "I", "E"},
		"logcat time":  {"11-26 04:%02d:00.123 %s/Tag( 1234): x", "D", "E"},
		"logcat brief": {"11-26 04:%02d:00.123 %s/My Tag( 1234): x", "D", "E"},
		"logcat long":  {"[ 11-26 04:%02d:00.123  1234: 5678 %s/Tag ]\nmessage\n", "V", "E"},
		"compose":      {"web-1  | 2026-05-18T10:%02d:00Z %s x", "INFO", "ERROR"},
		"kubectl":      {"[pod/web-0/app] 2026-05-18T10:%02d:00Z %s x", "INFO", "ERROR"},
		"stern":        {"web-0 app 2026-05-18T10:%02d:00Z %s x", "INFO", "ERROR"},
		"coloured":     {"\x1b(B\x1b[36mweb-1  | \x1b[0m2026-05-18T10:%02d:00Z \x1b[31m%s\x1b(B x", "INFO", "ERROR"},
		"12 hours":     {"5/18/2026 4:%02d PM %s x", "INFO", "ERROR"},
		"12, US":       {"05/18/2026, 04:%02d:07 p.m. %s x", "INFO", "ERROR"},
		"12, ISO":      {"2026-05-18 04:%02d:07 PM %s x", "INFO", "ERROR"},
		"12, in words": {"May 8, 2026 4:%02d:07 PM %s x", "INFO", "ERROR"},
		"12, no date":  {"4:%02dPM %s x", "INF", "ERR"},
	} {
		var b strings.Builder
		for i := range 50 {
			level := c.info
			if i%10 == 7 {
				level = c.failure
			}
			fmt.Fprintf(&b, c.line+"\n", i, level)
		}
		text := []byte(b.String())
		if k := Sniff(text, true, ""); k != content.Log {
			t.Errorf("%s is %s", name, k)
			continue
		}
		var out bytes.Buffer
		err := Log.Objects(t.Context(), bytes.NewReader(text), &out)
		if err != nil && !errors.As(err, new(*content.Remarks)) {
			t.Fatal(err)
		}
		times, errs, sorted, last := 0, 0, true, ""
		for d := json.NewDecoder(&out); d.More(); {
			var r struct{ Time, Level string }
			expect.Must(t, d.Decode(&r))
			if r.Time != "" {
				times++
				sorted = sorted && r.Time >= last
				last = r.Time
			}
			if r.Level == "error" {
				errs++
			}
		}
		if times != 50 || errs != 5 || !sorted {
			t.Errorf("%s: %d times, in order %v, %d errors", name, times, sorted, errs)
		}
		d := digestAs(content.Log, text)
		_, _ = d.Write(text)
		s := d.Close()
		if got := strings.Join(s.Total, " "); !strings.Contains(got, "5 error") {
			t.Errorf("%s: %s", name, got)
		}
		if got := strings.Join(s.Says, "\n"); strings.Contains(got, "50×") {
			t.Errorf("%s: other lines are among the errors\n%s", name, got)
		}
	}
}

// Logs without times are logs too if each line begins with a level of its format.
func TestFormatsWithoutTimes(t *testing.T) {
	for _, text := range []string{
		"E/Tag( 1234): x\nD/Tag( 1234): y\n", "E/My Tag( 1234): x\nA/My Tag( 1234): y\n", "<11>x\n<14>y\n",
		"web-1  | INFO x\ndb-12  | ERROR y\n",
	} {
		expect.Equal(t, Sniff([]byte(text), true, ""), content.Log, text)
	}
}
