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
	for _, tt := range []struct{ name, line, want string }{
		{"ISO time, level, logger, pairs", `2026-11-20T14:30:22.123Z INFO  [scheduler] started id=42 took=1.5s user="Ada L"`,
			`"time":"2026-11-20T14:30:22.123Z","level":"info","source":"scheduler"|,"id":42,"took":"1.5s","user":"Ada L"`},
		{"pairs never replace the fields", `2026-11-20T14:30:23Z ERROR line=3 level=x text=y time=z source=q a=1`,
			`"time":"2026-11-20T14:30:23Z","level":"error"|,"a":1`},
		{"the first of two pairs counts", `2026-11-20T14:30:23Z WARN a=1 a=2`,
			`"time":"2026-11-20T14:30:23Z","level":"warn"|,"a":1`},
		{"logfmt", `time=2026-11-20T14:30:22Z level=ERROR msg="a \"b\"" n=-1.5e3`,
			`"time":"2026-11-20T14:30:22Z","level":"error"|,"msg":"a \"b\"","n":-1.5e3`},
		{"syslog", `Nov 20 14:30:22 host sshd[123]: session for user=root; uid=0)`,
			`"time":"Nov 20 14:30:22","level":null,"source":"sshd"|,"user":"root","uid":0`},
		{"access log", `1.2.3.4 - - [20/Nov/2026:14:30:22 +0000] "GET /a?b=1 HTTP/1.1" 200 12`,
			`"time":"20/Nov/2026:14:30:22 +0000","level":null,"address":"1.2.3.4","user":null,"method":"GET","path":"/a?b=1",` +
				`"status":200,"bytes":12|`},
		{"no time", "\tat foo.bar(Baz.java:12)", `"time":null,"level":null|`},
		{"numbers as JSON writes them only", `2026-11-20 14:30:22 INFO a=007 b=+5 c=1_000 d=0`,
			`"time":"2026-11-20 14:30:22","level":"info"|,"a":"007","b":"+5","c":"1_000","d":0`},
		{"brackets around a value", `2026-11-20 14:30:22 INFO done (ms=12) [code=7] {x=y} list=[1]`,
			`"time":"2026-11-20 14:30:22","level":"info"|,"ms":12,"code":7,"x":"y","list":"[1]"`},
		{"glog", `E1120 14:30:22.123456 1 main.go:12] failed`, `"time":"1120 14:30:22.123456","level":"error"|`},
		{"coloured", "\x1b[31m2026-11-20 14:30:22 ERROR x=1\x1b[0m", `"time":"2026-11-20 14:30:22","level":"error"|,"x":1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Objects(t.Context(), strings.NewReader(tt.line+"\n"), &out)
			if err != nil && !errors.As(err, new(*content.Remarks)) {
				t.Fatal(err)
			}
			head, tail, _ := strings.Cut(tt.want, "|")
			text := strings.NewReplacer(`"`, `\"`, "\t", `\t`, "\x1b", `\u001b`).
				Replace(strings.ReplaceAll(tt.line, `\`, `\\`))
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
