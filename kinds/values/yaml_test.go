package values

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// read returns the records of a text, a line each, and then its notes and its error.
func read(t testing.TB, r Reader, text string) string {
	t.Helper()
	var out bytes.Buffer
	err := r.Objects(t.Context(), strings.NewReader(text), &out)
	if d, ok := errors.AsType[*content.Remarks](err); ok {
		for _, n := range d.Notes {
			out.WriteString("note: " + n + "\n")
		}
	} else if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

type yamlCase struct{ Text, Ours, Yq, Why string }

// TestYAML: the records of each text are those recorded; where yq of mikefarah has other values, the table says why.
func TestYAML(t *testing.T) {
	for _, c := range expect.Table[yamlCase](t, "testdata/yaml.tsv") {
		got := read(t, YAML, c.Text)
		expect.Equal(t, got, c.Ours, "%q", c.Text)
		if (c.Yq == "") != (c.Why == "") || c.Yq != "" && c.Yq == asYq(got) {
			t.Errorf("%q: a difference to yq without a reason, or a reason without a difference", c.Text)
		}
	}
}

// asYq returns the values of a result, or "error".
func asYq(got string) string {
	var all []string
	for line := range strings.SplitSeq(got, "\n") {
		if strings.HasPrefix(line, "error: ") {
			return "error"
		}
		if line != "" && !strings.HasPrefix(line, "note: ") {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

// TestYAMLAgainstYq compares with the program that YQ names: what the table has recorded of it is what it prints.
func TestYAMLAgainstYq(t *testing.T) {
	yq := os.Getenv("YQ")
	if yq == "" {
		t.Skip("YQ names no program")
	}
	for _, c := range expect.Table[yamlCase](t, "testdata/yaml.tsv") {
		cmd := exec.CommandContext(t.Context(), yq, "-o=json", "-I=0", ".")
		cmd.Stdin = strings.NewReader(c.Text)
		out, err := cmd.Output()
		got, want := strings.TrimSuffix(string(out), "\n"), c.Yq
		if err != nil {
			got = "error"
		}
		if want == "" {
			want = asYq(c.Ours)
		}
		expect.Equal(t, got, want, "%q", c.Text)
	}
}
