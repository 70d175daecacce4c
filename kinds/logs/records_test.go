package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func TestRecords(t *testing.T) {
	for _, tt := range expect.Table[struct{ Name, Line, Want string }](t, "testdata/records.tsv") {
		t.Run(tt.Name, func(t *testing.T) {
			var out bytes.Buffer
			err := Objects(t.Context(), strings.NewReader(tt.Line+"\n"), &out)
			if err != nil && !errors.As(err, new(*content.Remarks)) {
				t.Fatal(err)
			}
			head, tail, _ := strings.Cut(tt.Want, "|")
			text := strings.NewReplacer(`"`, `\"`, "\t", `\t`, "\x1b", `\u001b`).
				Replace(strings.ReplaceAll(tt.Line, `\`, `\\`))
			want := `{"line":1,` + head + `,"text":"` + text + `"` + tail + "}\n"
			expect.Same(t, out.String(), want)
		})
	}
}

// fieldsOf returns the fields of a line but for its number and text.
func fieldsOf(t *testing.T, line string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	err := Objects(t.Context(), strings.NewReader(line+"\n"), &out)
	if err != nil && !errors.As(err, new(*content.Remarks)) {
		t.Fatal(err)
	}
	var fields map[string]any
	expect.Must(t, json.Unmarshal(out.Bytes(), &fields))
	expect.Equal(t, fields["text"], any(line), "text")
	delete(fields, "line")
	delete(fields, "text")
	return fields
}

func TestTimesAndLevels(t *testing.T) {
	for _, c := range expect.Table[struct{ In, Want string }](t, "testdata/lines.tsv") {
		line, want := c.In, c.Want
		f := fieldsOf(t, line)
		got := ""
		for i, name := range []string{"time", "level", "source", "service"} {
			value, ok := f[name].(string)
			if !ok && i < 2 {
				value = "null"
			}
			got += "|" + value
		}
		if got = strings.TrimRight(got[1:], "|"); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func TestAccessFields(t *testing.T) {
	for _, c := range expect.Table[struct{ In, Want string }](t, "testdata/access.tsv") {
		line, want := c.In, c.Want
		f := fieldsOf(t, line)
		delete(f, "time")
		delete(f, "level")
		got, _ := json.Marshal(f)
		expect.Equal(t, string(got), want, line)
	}
}
