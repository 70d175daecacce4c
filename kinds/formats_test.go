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
	for _, c := range expect.Table[struct{ Name, Line, Info, Failure string }](t, "testdata/formats.tsv") {
		var b strings.Builder
		for i := range 50 {
			level := c.Info
			if i%10 == 7 {
				level = c.Failure
			}
			fmt.Fprintf(&b, c.Line+"\n", i, level)
		}
		text := []byte(b.String())
		if k := Sniff(text, true, ""); k != content.Log {
			t.Errorf("%s is %s", c.Name, k)
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
			t.Errorf("%s: %d times, in order %v, %d errors", c.Name, times, sorted, errs)
		}
		d := digestAs(content.Log, text)
		_, _ = d.Write(text)
		s := d.Close()
		if got := strings.Join(s.Total, " "); !strings.Contains(got, "5 error") {
			t.Errorf("%s: %s", c.Name, got)
		}
		if got := strings.Join(s.Says, "\n"); strings.Contains(got, "50×") {
			t.Errorf("%s: other lines are among the errors\n%s", c.Name, got)
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
