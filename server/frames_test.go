package server

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// badFrame is one malformed message, and what is to be answered.
type badFrame struct {
	name, line string
	code       int    // 0: no answer at all
	id         string // in the answer
	says       string
}

func badFrames() []badFrame {
	long := strings.Repeat("x", 1<<20)
	return []badFrame{
		{"not JSON", `hello`, -32700, "null", "not JSON"},
		{"half a message", `{"jsonrpc":"2.0","id":1,"method":"pi`, -32700, "1", "breaks off"},
		{"cut in its id", `{"jsonrpc":"2.0","id":12`, -32700, "null", "breaks off"},
		{"half an object", `{"jsonrpc":"2.0","method":"ping","id":"a" `, -32700, "null", "breaks off"},
		{"two messages on a line", `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700, "1", "line of its own"},
		{"something after it", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, -32700, "1", ""},
		{"a comma too many", `{"jsonrpc":"2.0","id":1,"method":"ping",}`, -32700, "1", "not JSON"},
		{"single quotes", `{'jsonrpc':'2.0'}`, -32700, "null", "not JSON"},
		{"NaN", `{"jsonrpc":"2.0","id":NaN,"method":"ping"}`, -32700, "null", "not JSON"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "1", "UTF-8"},
		{"lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"\ud800"}}}`, -32700, "1", ""},
		{"NUL", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}", -32700, "1", "not JSON"},
		{"empty array", `[]`, -32600, "null", "empty"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, -32600, "null", "batches"},
		{"half a batch", `[{"jsonrpc":"2.0"`, -32700, "null", "not JSON"},
		{"a batch too long", "[" + strings.Repeat("1,", 1000) + "1]", -32600, "null", "100 messages"},
		{"number", `42`, -32600, "null", "must be an object"},
		{"string", `"ping"`, -32600, "null", "must be an object"},
		{"null", `null`, -32600, "null", "must be an object"},
		{"empty object", `{}`, -32600, "null", `"jsonrpc"`},
		{"no version", `{"id":1,"method":"ping"}`, -32600, "1", `"jsonrpc"`},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600, "1", `not "1.0"`},
		{"version as a number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, -32600, "1", "not 2.0"},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null", "not null"},
		{"id 007", `{"jsonrpc":"2.0","id":007,"method":"ping"}`, -32700, "null", "not JSON"},
		{"id -01", `{"jsonrpc":"2.0","id":-01,"method":"ping"}`, -32700, "null", "not JSON"},
		{"id in hexadecimal", `{"jsonrpc":"2.0","id":0x1F,"method":"ping"}`, -32700, "null", "not JSON"},
		{"id +1", `{"jsonrpc":"2.0","id":+1,"method":"ping"}`, -32700, "null", "not JSON"},
		{"an id and a word", `{"jsonrpc":"2.0","id":1 x,"method":"ping"}`, -32700, "null", "not JSON"},
		{"id 1.5", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null", "not 1.5"},
		{"id 1.0", `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, -32600, "null", "integer"},
		{"id 1e3", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, -32600, "null", "integer"},
		{"id object", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, "null", "string or an integer"},
		{"id array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, -32600, "null", "string or an integer"},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, "null", "not true"},
		{"id of 1 MB", `{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`, -32600, "null", "at most 256"},
		{"id of a million digits", `{"jsonrpc":"2.0","id":` + strings.Repeat("9", 1<<20) + `,"method":"ping"}`, -32600, "null", "at most 256"},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600, "null", `"id" stands twice`},
		{"two methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, -32600, "1", `"method" stands twice`},
		{"two params", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":{}}`, -32600, "1", "twice"},
		{"two names", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","name":"fail"}}`, -32600, "1", `"name" stands twice`},
		{"two equal arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"a","text":"b"}}}`, -32600, "1", "twice"},
		{"METHOD", `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, -32600, "1", `write "method"`},
		{"method and Method", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}`, -32600, "1", `write "method"`},
		{"ID", `{"jsonrpc":"2.0","ID":1,"method":"ping"}`, -32600, "null", `write "id"`},
		{"Name beside name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","Name":"fail"}}`, -32600, "1", `write "name"`},
		{"long s for s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{}}`, -32600, "1", `write "params"`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, -32600, "1", "method is missing"},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, -32600, "1", "method must be a string"},
		{"method number", `{"jsonrpc":"2.0","id":1,"method":5}`, -32600, "1", "method must be a string"},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, -32600, "1", "method must be a string"},
		{"method of 1 MB", `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`, -32601, "1", "unknown method"},
		{"method with a hidden character", `{"jsonrpc":"2.0","id":1,"method":"pi\u202eng"}`, -32601, "1", `\u{202e}`},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, -32600, "1", "either"},
		{"params array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["say"]}`, -32602, "1", "not an array"},
		{"params string", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"say"}`, -32602, "1", "not a string"},
		{"params number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`, -32602, "1", "not a number"},
		{"_meta array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","_meta":[]}}`, -32602, "1", "_meta must be an object"},
		{"progress token object", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","_meta":{"progressToken":{}}}}`, -32602, "1", "progressToken"},
		{"progress token null", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","_meta":{"progressToken":null}}}`, -32602, "1", "progressToken"},
		{"protocol version number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","_meta":{"io.modelcontextprotocol/protocolVersion":5}}}`, -32602, "1", "must be a string"},
		{"arguments array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":[]}}`, -32602, "1", "not an array"},
		{"depth 100,000, arrays", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, -32700, "1", "depth"},
		{"depth 100,000, objects", strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), -32700, "null", "depth"},
		{"depth 100,000, open", strings.Repeat(`[`, 100_000), -32700, "null", ""},
		{"a request's method without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, 0, "", ""},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/lost"}`, 0, "", ""},
		{"answer to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, 0, "", ""},
		{"error for nothing", `{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}`, 0, "", ""},
		{"cancel for nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`, 0, "", ""},
		{"cancel without params", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 0, "", ""},
		{"cancel as a request", `{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":1}}`, -32601, "1", "unknown method"},
	}
}

func TestBadFrames(t *testing.T) {
	c := newClient(t, newTestServer(t))
	frames := badFrames()
	if len(frames) < 38 {
		t.Errorf("%d cases, want at least 38", len(frames))
	}
	for _, f := range frames {
		t.Run(f.name, func(t *testing.T) {
			message := c.ask(f.line)
			if f.code == 0 {
				if message != "" {
					t.Errorf("answered: %s", message)
				}
			} else {
				got := read(t, message)
				if got.Error == nil || got.Error.Code != f.code || string(got.ID) != f.id || !strings.Contains(got.Error.Message, f.says) {
					t.Errorf("want code %d, id %s, %q; got %.400s", f.code, f.id, f.says, message)
				}
				if len(message) > 700 {
					t.Errorf("the answer is %d bytes long", len(message))
				}
			}
			if got := c.ask(`{"jsonrpc":"2.0","id":"after","method":"ping"}`); got != `{"jsonrpc":"2.0","id":"after","result":{}}` {
				t.Errorf("ping afterwards: %s", got)
			}
		})
	}
}

// TestIDsAreKept is the control of the table above, too: sound messages are served under their ids.
func TestIDsAreKept(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for _, id := range []string{
		"0", "-1", "-0", "9007199254740993", "-9007199254740993", "18446744073709551617", strings.Repeat("9", 256),
		`""`, `"a"`, `"0"`, `"\u0061\n"`, `"ключ 🔑"`, `"<&>"`, `"` + strings.Repeat("k", 254) + `"`,
	} {
		for _, method := range []string{"ping", "tools/list", "tools/lost", "prompts/get"} {
			message := c.ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
			if want := `{"jsonrpc":"2.0","id":` + id + `,`; !strings.HasPrefix(message, want) {
				t.Errorf("%s: want %s…, got %.300s", method, want, message)
			}
		}
	}
}

func TestSoundFrames(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for name, line := range map[string]string{
		"keys in another order": `{"params":{},"method":"ping","id":1,"jsonrpc":"2.0"}`,
		"spelt by escapes":      `{"jsonrpc":"2.0","\u0069d":1,"m\u0065thod":"p\u0069ng"}`,
		"space":                 " { \"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"ping\" } \r",
		"params null":           `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`,
		"_meta null":            `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":null}}`,
		"an unknown key":        `{"jsonrpc":"2.0","id":1,"method":"ping","trace":"x"}`,
		"unknown _meta":         `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x/y":1}}}`,
	} {
		if got := c.ask(line); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestFindID(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"x":"yyyy`: "5",
		`{"id":"a","params":{`:            `"a"`,
		"{\"id\":5 \t,\"method\":":        "5",
		`{"method":,"id":5}`:              "",
		`{"method":"x","id":5}}`:          "5",
		`{"id":007}`:                      "",
		`{"id":5 6}`:                      "",
		`{"id":5]`:                        "",
		`{"id":"a":`:                      "",
		`{"params":{"id":5},"method":"x`:  "",
		`{"params":{"id":5`:               "",
		`{"id":1.5,"method":"x"`:          "",
		`[{"id":5}`:                       "",
		``:                                "",
		`{"id":` + strings.Repeat("1", 9): "",
	} {
		if got := string(findID([]byte(line))); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// FuzzFrames has any line answered by at most one well-formed message, with an id that stands in it,
// and never a panic.
func FuzzFrames(f *testing.F) {
	for _, b := range badFrames() {
		if len(b.line) < 4096 {
			f.Add([]byte(b.line))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"_meta":{"progressToken":1}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"director"},"argument":{"name":"task","value":""}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{` + modernMeta + `}}`))
	c := newClient(f, newTestServer(f))
	f.Fuzz(func(t *testing.T, line []byte) {
		answers := 0
		c.conn.Handle(t.Context(), line, func(m []byte, answer bool) error {
			var got struct {
				JSONRPC string
				ID      json.RawMessage
				Result  json.RawMessage
				Error   *Fault
			}
			if err := json.Unmarshal(m, &got); err != nil || got.JSONRPC != "2.0" {
				t.Fatalf("%v: %q", err, m)
			}
			if !answer {
				return nil
			}
			answers++
			if (got.Result == nil) == (got.Error == nil) {
				t.Errorf("%q has neither or both of result and error", m)
			}
			if id := string(got.ID); id != "null" && !strings.Contains(string(line), id) {
				t.Errorf("the id %s does not stand in %q", id, line)
			}
			if got.Error != nil && len(m) > 2000 {
				t.Errorf("an error of %d bytes", len(m))
			}
			return nil
		})
		if answers > 1 {
			t.Errorf("%d answers to %q", answers, line)
		}
	})
}

func BenchmarkBadFrames(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		line := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", size) + `"}`)
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = parse(line)
			}
		})
	}
}
