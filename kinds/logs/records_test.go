package logs

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

func TestUnits(t *testing.T) {
	for pair, want := range map[string]string{
		"took=123ms": "took_ms:123", "took=350µs": "took_ms:0.35", "took=350us": "took_ms:0.35", "d=1h2m": "d_ms:3.72e+06", "d=-2s": "d_ms:-2000",
		`t="2m 3s"`: "t_ms:123000", `t="5 ms"`: "t_ms:5", "lat=5m": "lat_ms:300000", "t=7ns": "t_ms:7e-06", "t=.5s": "t_ms:500",
		"size=1.5MB": "size_bytes:1.5e+06", "size=2KiB": "size_bytes:2048", `size="3 GiB"`: "size_bytes:3.221225472e+09", "n=12B": "n_bytes:12", "n=1kB": "n_bytes:1000",
		// A unit that has two meanings, no unit, and words that look like one.
		"mem=512m": "", "cpu=500m": "", "requests=100m": "", "used=3m": "", "cache_ttl=5m": "cache_ttl_ms:300000",
		"x=512m": "", "d=-2m": "", "t=5m": "", "usage=5m": "",
		"responseTime=5m": "responseTime_ms:300000", "x=1h5m": "x_ms:3.9e+06",
		"heap_size=4m": "", "n=5kb": "", "n=5K": "", "n=7": "", "n=1e3": "", "s=s": "", "v=1.2.3s": "", "x=10%": "", "e=": "", "d=99999999999h": "",
		"i=iB": "", "n=1iB": "n_bytes:1", "n=99999999999999999PB": "",
		// A field of the line is never replaced.
		"took=1s took_ms=7": "took_ms:7", "took_ms=7 took=1s": "took_ms:7", "a=1s a=2s": "a_ms:1000",
	} {
		f := fieldsOf(t, "2026-11-20T14:30:22Z INFO "+pair)
		var got []string
		for name, value := range f {
			if strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_bytes") {
				got = append(got, fmt.Sprintf("%s:%v", name, value))
			}
		}
		expect.Equal(t, strings.Join(got, " "), want, pair)
	}
}
