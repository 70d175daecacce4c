package values

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// TestAgainstPython compares TOML with tomllib, INI with configparser without interpolation, and XML with expat and the
// form that XML documents, built in Python. Where they differ, the table says why.
func TestAgainstPython(t *testing.T) {
	cases := expect.Table[struct{ Format, Text, Ours, Python, Why string }](t, "testdata/python.tsv")
	readers := map[string]Reader{"toml": TOML, "ini": INI, "xml": XML}
	var in [][2]string
	for _, c := range cases {
		expect.Equal(t, read(t, readers[c.Format], c.Text), c.Ours, "%s %q", c.Format, c.Text)
		in = append(in, [2]string{c.Format, c.Text})
	}
	cmd := exec.CommandContext(t.Context(), peer.Find(t, "python3"), "testdata/peers.py")
	text, err := json.Marshal(in)
	expect.Must(t, err)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	expect.Must(t, err)
	var theirs []any
	expect.Must(t, json.Unmarshal(out, &theirs))
	for i, c := range cases {
		want := valuesOf(t, c.Ours)
		if c.Python != "" {
			want = valuesOf(t, c.Python)
		}
		got := theirs[i]
		if _, failed := got.(string); failed {
			got = "error"
		}
		if !reflect.DeepEqual(got, want) || (c.Python == "") != (c.Why == "") {
			t.Errorf("%s %q: Python reads %v, recorded is %v, because %q", c.Format, c.Text, theirs[i], want, c.Why)
		}
	}
}

// valuesOf returns the records of a recorded result, or "error".
func valuesOf(t *testing.T, recorded string) any {
	if strings.HasPrefix(recorded, "[") { // of Python
		var all any
		expect.Must(t, json.Unmarshal([]byte(recorded), &all))
		return all
	}
	all := []any{}
	switch recorded = asYq(recorded); recorded {
	case "error":
		return recorded
	case "":
		return all
	}
	for line := range strings.SplitSeq(recorded, "\n") {
		var v any
		expect.Must(t, json.Unmarshal([]byte(line), &v), line)
		all = append(all, v)
	}
	return all
}
