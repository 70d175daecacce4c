//go:build linux

package upstream_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// referring is a client of a server whose tools show what they got: one tool for each schema of arguments, by name.
type referring struct{ *client }

func startReferring(t *testing.T, schemas map[string]string) referring {
	t.Helper()
	tools := `[{"name":"raw","inputSchema":{"type":"object"}}`
	for name, schema := range schemas {
		tools += fmt.Sprintf(`,{"name":%q,"inputSchema":%s}`, name, schema)
	}
	state := filepath.Join(t.TempDir(), "state")
	write(t, state, tools+"]")
	return referring{start(t, wrapped(t.TempDir(), sick("shows its call", state)...)...)}
}

// store returns the name of an observation that is stored with a text; it must be large.
func (r referring) store(text string) string {
	r.t.Helper()
	quoted, _ := json.Marshal(text) // a string
	id := observation.FindString(r.call("raw", `{"result":{"content":[{"type":"text","text":`+string(quoted)+`}]}}`))
	if id == "" {
		r.t.Fatal("it was not stored")
	}
	return id
}

// arguments returns the arguments that a tool got, as they were written, or the error that the client got.
func (r referring) arguments(tool, args string) string {
	r.t.Helper()
	var answer struct {
		IsError bool
		Content []struct{ Text string }
	}
	got := r.call(tool, args)
	if err := json.Unmarshal([]byte(got), &answer); err != nil || len(answer.Content) == 0 || answer.IsError {
		return got
	}
	var sent struct {
		Params struct{ Arguments json.RawMessage }
	}
	expect.Must(r.t, json.Unmarshal([]byte(answer.Content[0].Text), &sent), got)
	return string(sent.Params.Arguments)
}

// numbered returns a JSON array of so many objects, on one line.
func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"a":%d,"s":"row %d"}`, i, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// A text is passed on as a string where the schema allows it, else as the JSON value that it is.
func TestReferenceOfASchema(t *testing.T) {
	inParallel(t)
	const item = `"$defs":{"I":{"type":"object","properties":{"a":{"type":"number"},"l":{"type":"array"}}},` +
		`"L/1":{"$ref":"#/$defs/I"}}`
	cases := corpus.Rows[struct {
		Name         string
		Schema       json.RawMessage
		Filter, Want string
	}](t, "schemas.ndjson")
	schemas := map[string]string{
		"inner": `{"type":"object","properties":{"v":{"anyOf":[{"$ref":"#/$defs/I"},{"type":"null"}]},` +
			`"each":{"type":"array","items":{"$ref":"#/$defs/I"}},"map":{"additionalProperties":{"type":"array"}}},` + item + `}`,
	}
	for _, c := range cases {
		schemas[c.Name] = `{"type":"object","properties":{"v":` + string(c.Schema) + `},` + item + `}`
	}
	r := startReferring(t, schemas)
	id := r.store(numbered(300))
	for _, c := range cases {
		filter, _ := json.Marshal(c.Filter)              // strings
		short, _ := json.Marshal(id + " jq " + c.Filter) // strings
		object := `{"$obs":"` + id + `","jq":` + string(filter) + `}`
		for _, v := range []string{string(short), object} {
			want := c.Want
			if strings.ContainsAny(want[:1], `{["0123456789`) {
				want = `{"v":` + want + `}`
			}
			expect.Contains(t, r.arguments(c.Name, `{"v":`+v+`}`), want)
		}
	}
	list := `"` + id + ` jq [.[1].a]"`
	for args, want := range map[string]string{
		`{"v":{"l":` + list + `}}`:                         `{"v":{"l":[1]}}`,
		`{"each":[{"l":` + list + `}]}`:                    `{"each":[{"l":[1]}]}`,
		`{"each":["` + id + ` jq .[1]|{a}"]}`:              `{"each":[{"a":1}]}`,
		`{"map":{"any name":` + list + `},"other":"text"}`: `{"map":{"any name":[1]},"other":"text"}`,
	} {
		expect.Equal(t, r.arguments("inner", args), want, "%s became", args)
	}
}

// With slurp, a filter gets all records of a text as one array; errors that name slurp show the form that has it.
func TestReferenceWithSlurp(t *testing.T) {
	r := startReferring(t, map[string]string{"v": `{"type":"object","properties":{"v":{"type":"array"},"s":{"type":"string"}}}`})
	id := r.store(strings.NewReplacer("},{", "}\n{", "[", "", "]", "").Replace(numbered(300)))
	form := `a reference with slurp has the form {\"$obs\": \"` + id + `\", \"jq\": \"FILTER\", \"slurp\": true}`
	for v, want := range map[string]string{
		`{"$obs":"ID","jq":".[:2]|map(.a)","slurp":true}`:          `{"v":[0,1]}`,
		`{"$obs":"ID","jq":"select(.a==7)|[.a]"}`:                  `{"v":[7]}`,
		`{"$obs":"ID","jq":"[.a]|select(. == [7])","slurp":false}`: `{"v":[7]}`,
		`{"$obs":"ID","jq":"length","slurp":true}`:                 `has type \"integer\", want \"array\"`,
		`"ID jq .[:2]"`:                          form,
		`{"$obs":"ID","jq":".[:2]"}`:             form,
		`"ID jq [inputs]"`:                       form,
		`"ID jq ."`:                              form,
		`{"$obs":"ID"}`:                          form,
		`{"$obs":"ID","slurp":true}`:             "a reference has the form",
		`{"$obs":"ID","lines":"1","slurp":true}`: "a reference has the form",
		`{"$obs":"ID","jq":".","slurp":"yes"}`:   "a reference has the form",
	} {
		v = strings.ReplaceAll(v, "ID", id)
		expect.Contains(t, r.arguments("v", `{"v":`+v+`}`), want)
	}
	v := `{"s":{"$obs":"` + id + `","jq":".[:2][].s","slurp":true}}`
	expect.Equal(t, r.arguments("v", v), `{"s":"row 0\nrow 1"}`, "%s became", v)
}

// Lines are passed on with their ends, but for the whole end of the last one.
func TestReferenceToLines(t *testing.T) {
	r := startReferring(t, map[string]string{"v": `{"type":"object","properties":{"v":{"type":"string"}}}`})
	for _, end := range []string{"\n", "\r\n"} {
		id := r.store("row 1" + end + "row 2" + end + "a\rb" + end + strings.Repeat("more"+end, 300) + "last\r")
		for lines, want := range map[string]string{
			"1": "row 1", "1-2": "row 1" + end + "row 2", "3": "a\rb", "303-303": "more", "303-": "more" + end + "last\r",
		} {
			quoted, _ := json.Marshal(want) // a string
			expect.Equal(t, r.arguments("v", `{"v":"`+id+` lines `+lines+`"}`), `{"v":`+string(quoted)+`}`,
				"end %q, lines %s became\nwant %s", end, lines, quoted)
		}
	}
}

// Numbers beside a reference are passed on as they are written. Some of them are too large for a float64.
func TestReferenceBesideNumbers(t *testing.T) {
	r := startReferring(t, map[string]string{"v": `{"type":"object","properties":{` +
		`"v":{"type":"string"},"n":{"type":"number","maximum":10},"l":{"type":"array"}}}`})
	id := r.store(strings.Repeat("1e400\n", 300))
	for args, want := range map[string]string{
		`{"n":1e400,"v":"ID lines 1"}`:                          `{"n":1e400,"v":"1e400"}`,
		`{"n":"ID lines 1"}`:                                    `{"n":1e400}`,
		`{"l":[1e400,{"a":-1E+400,"b":"ID lines 1"}]}`:          `{"l":[1e400,{"a":-1E+400,"b":"1e400"}]}`,
		`{"l":[1.0,0.10,1E3,-0,1e-400],"n":1,"v":"ID lines 1"}`: `{"l":[1.0,0.10,1E3,-0,1e-400],"n":1,"v":"1e400"}`,
		`{"n":-12345678901234567890,"v":"ID lines 1"}`:          `{"n":-12345678901234567890,"v":"1e400"}`,
		`{"n":11,"v":"ID lines 1"}`:                             "do not fit the schema",
	} {
		args = strings.ReplaceAll(args, "ID", id)
		expect.Contains(t, r.arguments("v", args), want)
	}
}

// A schema that refers to itself for the same value, or stands for very many, ends neither the session nor the time.
func TestReferenceToAnEndlessSchema(t *testing.T) {
	inParallel(t)
	many := `"d0":{"type":"string"}`
	for i := range 60 {
		of := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
		many += fmt.Sprintf(`,"d%d":{"anyOf":[%s,%s]}`, i+1, of, of)
	}
	schemas := map[string]string{
		"itself":  `{"type":"object","properties":{"v":{"$ref":"#/properties/v"}}}`,
		"root":    `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"two":     `{"type":"object","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}},"properties":{"v":{"$ref":"#/$defs/a"}}}`,
		"dynamic": `{"type":"object","$dynamicAnchor":"x","properties":{"v":{"allOf":[{"$dynamicRef":"#x"}]}}}`,
		"many":    `{"type":"object","$defs":{` + many + `},"properties":{"v":{"$ref":"#/$defs/d60"}}}`,
		"members": `{"type":"object","$defs":{"n":{"type":["object","string"],"properties":{"a":{"allOf":[` +
			`{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}},"properties":{"w":{"$ref":"#/$defs/n"},"v":{"type":"string"}}}`,
		"elements": `{"type":"object","$defs":{"tree":{"properties":{"of":{"items":{"$ref":"#/$defs/tree"}}}}},"properties":{"v":{"type":"string"}}}`,
	}
	r := startReferring(t, schemas)
	id := r.store(strings.Repeat("a line\n", 500))
	for name := range schemas {
		deep := strings.Repeat(`{"a":`, 60) + "{}" + strings.Repeat("}", 60)
		expect.Equal(t, r.arguments(name, `{"v":"`+id+` lines 1","w":`+deep+`}`), `{"v":"a line","w":`+deep+`}`, name)
	}
}

// Bytes that are no text are passed on in base64 where the schema says so, else refused; a BOM is part of a whole text.
func TestReferenceToBytes(t *testing.T) {
	r := startReferring(t, map[string]string{"v": `{"type":"object","properties":{"s":{"type":"string"},` +
		`"b":{"type":"string","contentEncoding":"base64"},` +
		`"d":{"type":"string","description":"The file, base64-encoded."},"n":{"type":"string","description":"Not base64."},` +
		`"f":{"anyOf":[{"type":"string","format":"byte"},{"type":"null"}]}}}`})
	blob := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n" + strings.Repeat("\xff\x00\xfe", 510)))
	pdf := observation.FindString(r.call("raw",
		`{"result":{"content":[{"type":"resource","resource":{"uri":"x://y","blob":"`+blob+`"}}]}}`))
	text := "\ufeffa;b\n" + strings.Repeat("1;2;3\n", 240)
	bom := r.store(text)
	quoted, _ := json.Marshal(text) // a string
	whole := `{"s":` + strings.Replace(string(quoted), "\ufeff", `\ufeff`, 1) + `}`
	for args, want := range map[string]string{
		`{"d":"` + bom + ` lines 2"}`:                            `{"d":"1;2;3"}`,
		`{"n":"` + pdf + `"}`:                                    "are no UTF-8 text",
		`{"s":"` + pdf + `"}`:                                    "are no UTF-8 text",
		`{"s":"` + pdf + ` lines 2-"}`:                           "are no UTF-8 text",
		`{"s":"` + pdf + ` jq ."}`:                               "it is binary",
		`{"s":"` + bom + `"}`:                                    whole,
		`{"s":"` + bom + ` lines 2"}`:                            `{"s":"1;2;3"}`,
		`{"b":"` + bom + ` lines 2"}`:                            `{"b":"MTsyOzM="}`,
		`{"s":{"$obs":"` + bom[len("obs:"):] + `","lines":"2"}}`: `{"s":"1;2;3"}`,
		`{"s":{"\u0024obs":"` + bom + `","lines":"2"}}`:          `{"s":"1;2;3"}`,
		`{"s":{"$obs":7}}`:                                       "a reference has the form",
		`{"s":{"$obs":null}}`:                                    "a reference has the form",
		`{"s":[{"$obs":"obs:none"}]}`:                            "a reference has the form",
	} {
		expect.Contains(t, r.arguments("v", args), want)
	}
	for _, args := range []string{`{"b":"` + pdf + `"}`, `{"d":"` + pdf + `"}`, `{"f":{"$obs":"` + pdf + `"}}`} {
		expect.Contains(t, r.call("v", args), blob[:60])
	}
	near := r.call("v", `{"s":"`+bom+` and more"}`)
	expect.Has(t, near, `"},{"type":"text","text":"note: `, "a note on a text that only begins like a reference")
}
