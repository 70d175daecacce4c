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
	const android = "11-26 04:00:00.123"
	for _, c := range [][2]string{
		// time|level|source|service, as they are or null
		{"[Wed Oct 11 14:32:52.123456 2026] [core:error] [pid 1:tid 2] [client 1.2.3.4:5] AH00037: x", "Wed Oct 11 14:32:52.123456 2026|error|core"},
		{"[Wed Oct 11 14:32:52.123456 2026] [:warn] [pid 1] x", "Wed Oct 11 14:32:52.123456 2026|warn"},
		{"[Wed Oct 11 14:32:52 2026] [error] [client 1.2.3.4] x", "Wed Oct 11 14:32:52 2026|error"},
		{"[Wed Oct 11 14:32:52.1 2026] [mpm_event:notice] [pid 1:tid 2] AH00489: x", "Wed Oct 11 14:32:52.1 2026|notice|mpm_event"},
		{"[Wed Oct 11 14:32:52.1 2026] [proxy:emerg] x", "Wed Oct 11 14:32:52.1 2026|fatal|proxy"},
		{"Wed Oct 11 14:32:52 UTC 2026 INFO x", "Wed Oct 11 14:32:52 UTC 2026|info"},
		{"Wed, 11 Oct 2026 14:32:52 +0200 WARN x", "Wed, 11 Oct 2026 14:32:52 +0200|warn"},
		{"Wed Oct 11 14:32:52.123 [conn1] x", "Wed Oct 11 14:32:52.123|null|conn1"},

		{"<131>1 2026-05-18T10:00:00.003Z host app 12 ID7 [a@1 x=\"y\"] INFO text", "2026-05-18T10:00:00.003Z|error|app"},
		{"<14>1 - host app - - - text", "null|info|app"},
		{"<165>1 2026-05-18T10:00:00+02:00 host - - - - text", "2026-05-18T10:00:00+02:00|notice"},
		{"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", "Oct 11 22:14:15|fatal|su"},
		{"<11>Oct  1 22:14:15 host sshd[12]: x", "Oct  1 22:14:15|error|sshd"},
		{"<15>2026-05-18 10:00:00 host app: x", "2026-05-18 10:00:00|debug|app"},
		{"<4>[    1.234567] usb 1-1: x", "    1.234567|warn"},
		{"<3>Error: no time", "null|error"},
		{"Nov 20 14:30:22 host-1 systemd[1]: Started x", "Nov 20 14:30:22|null|systemd"},
		{"2026-11-20T14:30:22+0100 host-1 kernel-x[12]: error: x", "2026-11-20T14:30:22+0100|error|kernel-x"},

		{android + "  1234  5678 E Tag: text", android + "|error|Tag"},
		{android + "  1234  5678 W Tag     : ERROR text", android + "|warn|Tag"},
		{android + " 10123  1234  5678 F libc: Fatal signal", android + "|fatal|libc"},
		{"2026-" + android + " +0000  1234  5678 D My Tag: x", "2026-" + android + " +0000|debug|My Tag"},
		{"1732593600.123  1234  5678 E Tag: text", "1732593600.123|error|Tag"},
		{android + " E/Tag( 1234): text", android + "|error|Tag"},
		{android + " I/Tag   (12345): text", android + "|info|Tag"},
		{"E/Tag( 1234): text", "null|error|Tag"},
		{"A/Tag: text", "null|fatal|Tag"},
		{"[ " + android + "  1234: 5678 E/Tag ]", android + "|error|Tag"},
		{"--------- beginning of main", "null|null"},
		{"I/O: text", "null|null"},
		{"E/S (see 12) text", "null|null"},

		{"web-1  | 2026-05-18T10:00:00Z ERROR x", "2026-05-18T10:00:00Z|error||web-1"},
		{"my_app.web-1 | error: x", "null|error||my_app.web-1"},
		{"web-1  |", "null|null||web-1"},
		{"web.1.x1y2@node1    | 10:00:00 [core] x", "10:00:00|null|core|web.1.x1y2@node1"},
		{"db-1   | <11>Oct 11 22:14:15 host app: x", "Oct 11 22:14:15|error|app|db-1"},
		{"app-1  | E1120 14:30:22.123456 1 main.go:12] x", "1120 14:30:22.123456|error||app-1"},
		{"app-1  | \tat a.b(C.java:1)", "null|null||app-1"},
		{"INFO   | started", "null|info"},
		{"[pod/web-0/app] 2026-05-18T10:00:00Z WARN x", "2026-05-18T10:00:00Z|warn||web-0/app"},
		{"web-7d9f8-x2x4z app 2026-05-18T10:00:00.1Z ERROR x", "2026-05-18T10:00:00.1Z|error||web-7d9f8-x2x4z/app"},
		{"a-word before no time", "null|null"},

		{"05/18/2026 04:39:00 PM INFO x", "05/18/2026 16:39:00|info"},
		{"05/18/2026 12:00:00 AM INFO x", "05/18/2026 00:00:00|info"},
		{"05/18/2026 12:59:59 PM INFO x", "05/18/2026 12:59:59|info"},
		{"5/8/2026 4:39 PM ERROR x", "5/8/2026 16:39|error"},
		{"5/8/26, 4:39:01\u202fPM - WARN x", "5/8/26, 16:39:01|warn"},
		{"[5/18/26, 12:05:01 am] ERROR x", "5/18/26, 00:05:01|error"},
		{"2026-05-18 01:02:03.456 p.m. INFO x", "2026-05-18 13:02:03.456|info"},
		{"2026-05-18T4:39:00 pm +02:00 INFO x", "2026-05-18T16:39:00 +02:00|info"},
		{"2026/05/18 12:00:00 a.m. INFO x", "2026/05/18 00:00:00|info"},
		{"3:04PM ERR x", "15:04|error"},
		{"10:00:00 AM INFO x", "10:00:00|info"},
		{"May 8, 2026 4:39:00 PM org.apache.C init", "May 8, 2026 16:39:00|null"},
		{"Nov 20 04:39:00 PM INFO x", "Nov 20 16:39:00|info"},
		{"Wed Oct 11 02:32:52 PM UTC 2026 INFO x", "Wed Oct 11 14:32:52 UTC 2026|info"},
		{"18/May/2026:04:39:00 PM INFO x", "18/May/2026:16:39:00|info"},
		{`time="5/18/2026 4:39:00 PM" level=warn`, "5/18/2026 16:39:00|warn"},
		{"2026-05-18 10:00:00 am I right", "2026-05-18 10:00:00|null"},
		{"2026-05-18 10:00:00 PM2 INFO x", "2026-05-18 10:00:00|info"},
		{"2026-05-18 10:00:00 amber", "2026-05-18 10:00:00|null"},
		{"1/2 of it", "null|null"},
		{"10.0.0.1 10:00:00 x", "null|null"},

		{"\x1b(B\x1b[m2026-05-18 10:00:00 \x1b[31mERROR\x1b(B\x1b[m [\x1b[1mcore\x1b[0m] x", "2026-05-18 10:00:00|error|core"},
		{"\x1b[36mweb-1  | \x1b[0m2026-05-18 10:00:00 \x1b]8;;http://x\aWARN\x1b]8;;\x1b\\ x", "2026-05-18 10:00:00|warn||web-1"},
		{"\x1b[38:5:196m[Wed Oct 11 14:32:52 2026]\x1b[K [core:error] x", "Wed Oct 11 14:32:52 2026|error|core"},
	} {
		line, want := c[0], c[1]
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
	const begin = `1.2.3.4 - frank [10/Oct/2026:13:55:36 -0700] `
	for _, c := range [][2]string{
		{
			begin + `"GET /a b?c=1 HTTP/1.0" 200 23 "http://x/?q=1" "Mozilla (a=b)" rt=0.012 uct="0.000" urt="-" s="a b" status=7`,
			`{"address":"1.2.3.4","agent":"Mozilla (a=b)","bytes":23,"method":"GET","path":"/a b?c=1","referrer":"http://x/?q=1",` +
				`"rt":0.012,"s":"a b","status":200,"uct":0,"urt":null,"user":"frank"}`,
		},
		{
			begin + `"POST / HTTP/2.0" 304 -`,
			`{"address":"1.2.3.4","bytes":null,"method":"POST","path":"/","status":304,"user":"frank"}`,
		},
		{
			begin + `"\x16\x03" 400 0 "-" "-"`,
			`{"address":"1.2.3.4","agent":null,"bytes":0,"method":null,"path":null,"referrer":null,` +
				`"request":"\u0016\u0003","status":400,"user":"frank"}`,
		},
		{
			begin + `"-" 408 - "-" "-"`,
			`{"address":"1.2.3.4","agent":null,"bytes":null,"method":null,"path":null,"referrer":null,` +
				`"request":null,"status":408,"user":"frank"}`,
		},
		{
			begin + `"" 400 0`,
			`{"address":"1.2.3.4","bytes":0,"method":null,"path":null,"request":null,"status":400,"user":"frank"}`,
		},
		{
			begin + `"GET /`,
			`{"address":"1.2.3.4","bytes":null,"method":"GET","path":"/","status":null,"user":"frank"}`,
		},
		{
			begin + `"GET /a"b HTTP/1.1" 200 1 "-" "x \"y\" \\"`,
			`{"address":"1.2.3.4","agent":"x \"y\" \\","bytes":1,"method":"GET","path":"/a\"b","referrer":null,` +
				`"status":200,"user":"frank"}`,
		},
		{
			`web-1  | x.org:443 ::1 - - [10/Oct/2026:13:55:36 +0000] "OPTIONS * HTTP/1.1" 200 1`,
			`{"address":"::1","bytes":1,"host":"x.org:443","method":"OPTIONS","path":"*","service":"web-1","status":200,"user":null}`,
		},
	} {
		line, want := c[0], c[1]
		f := fieldsOf(t, line)
		delete(f, "time")
		delete(f, "level")
		got, _ := json.Marshal(f)
		expect.Equal(t, string(got), want, line)
	}
}
