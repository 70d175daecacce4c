package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"pgregory.net/rapid"
)

// input returns the input of a hook after a call of a tool.
func input(tool, output string) []byte {
	return []byte(`{"session_id":"s1","transcript_path":"/t.jsonl","cwd":"/srv","hook_event_name":"PostToolUse",` +
		`"tool_name":"` + tool + `","tool_input":{"command":"make \"all\"","tool_response":1},"tool_response":` + output +
		`,"tool_use_id":"toolu_1","duration_ms":12}`)
}

// replaceAll replaces every text of an output by R0, R1 … and returns the new output, "" for none, and the texts.
func replaceAll(t interface{ Fatal(...any) }, in []byte) (output string, texts []Text) {
	c, err := Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	if texts, err = c.Texts(); err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		texts[i].By = fmt.Sprintf("R%d", i)
	}
	answer := c.Answer(texts)
	if answer == nil {
		return "", texts
	}
	const before, after = `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`, "}}\n"
	output, ok := strings.CutPrefix(string(answer), before)
	output, ended := strings.CutSuffix(output, after)
	if !ok || !ended {
		t.Fatal(string(answer))
	}
	return output, texts
}

// TestOnlyTextsAreReplaced has the shape of each tool's output: number spellings, key order, escapes and blanks stay.
func TestOnlyTextsAreReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		tool, output, want string
		texts              []string
	}{
		"Bash": {
			"Bash",
			`{ "stdout":"a\n\u00e9<&>", "stderr": "e","interrupted":false ,"isImage":false,"n":1.50e+1,"x":{"stdout":"y"}}`,
			`{ "stdout":"R0", "stderr": "R1","interrupted":false ,"isImage":false,"n":1.50e+1,"x":{"stdout":"y"}}`,
			[]string{"a\né<&>", "e"},
		},
		"Bash, an image":    {"Bash", `{"stdout":"data:","stderr":"","isImage":true}`, "", nil},
		"Bash, no strings":  {"Bash", `{"stdout":null,"stderr":5}`, "", nil},
		"Bash, as a string": {"Bash", `"text"`, "?", nil},
		"Bash, cut": {
			"Bash",
			`{"persistedOutputPath":"/p","stdout":"a","persistedOutputSize": 9,"stderr":"","persistedOutputSize2":1}`,
			`{"stdout":"R0","stderr":"R1","persistedOutputSize2":1}`, []string{"a", ""},
		},
		"Bash, cut at its end": {
			"Bash", `{"stdout":"a" , "persistedOutputPath" : "/p" , "persistedOutputSize":9 }`, `{"stdout":"R0" }`,
			[]string{"a"},
		},
		"Bash, cut between": {
			"Bash", `{"stdout":"a","persistedOutputPath":"/p","i":0,"persistedOutputSize":9}`, `{"stdout":"R0","i":0}`,
			[]string{"a"},
		},
		"Grep": {
			"Grep", `{"mode":"content","numFiles":0,"filenames":["content"],"content":"a:1:b","numLines":1}`,
			`{"mode":"content","numFiles":0,"filenames":["content"],"content":"R0","numLines":1}`, []string{"a:1:b"},
		},
		"Grep, names": {
			"Grep", `{"mode":"files_with_matches","filenames":[ "a","b\"c" ],"numFiles":2}`,
			`{"mode":"files_with_matches","filenames":["R0"],"numFiles":2}`, []string{"a\nb\"c"},
		},
		"Grep, no names":    {"Grep", `{"mode":"files_with_matches","filenames":[],"numFiles":0}`, "", nil},
		"Grep, other names": {"Grep", `{"mode":"files_with_matches","filenames":["a",1],"numFiles":2}`, "", nil},
		"Grep, counts": {
			"Grep", `{"mode":"count","filenames":[],"content":"a:1","numFiles":1}`,
			`{"mode":"count","filenames":[],"content":"R0","numFiles":1}`, []string{"a:1"},
		},
		"WebFetch": {
			"WebFetch", `{"bytes":1,"code":200,"codeText":"OK","result":"r","durationMs":1,"url":"u"}`,
			`{"bytes":1,"code":200,"codeText":"OK","result":"R0","durationMs":1,"url":"u"}`, []string{"r"},
		},
		"MCP, a string": {"mcp__a__b", `"one \ud83d\ude00 \ud83d"`, `"R0"`, []string{"one 😀 \ufffd"}},
		"MCP, blocks": {
			"mcp__a__b",
			`[ {"type":"text","text":"a","_meta":{"text":"m"}} ,{"type":"image","text":"i"},{"text":"b","type":"text"}, 5]`,
			`[ {"type":"text","text":"R0","_meta":{"text":"m"}} ,{"type":"image","text":"i"},{"text":"R1","type":"text"}, 5]`,
			[]string{"a", "b"},
		},
		"MCP, no blocks": {"mcp__a__b", `[]`, "", nil},
		"MCP, a result":  {"mcp__a__b", `{"content":[{"type":"text","text":"a"}]}`, "?", nil},
		"Read":           {"Read", `{"type":"text","file":{"filePath":"/f","content":"c"}}`, "", nil},
		"unknown":        {"Task", `{"stdout":"a","content":"b","result":"c"}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.tool, c.output)
			if c.want == "?" {
				call := expect.Value(Parse(in))(t)
				if texts, err := call.Texts(); err == nil {
					t.Errorf("a shape that is unknown has texts: %+v", texts)
				}
				return
			}
			got, texts := replaceAll(t, in)
			expect.Equal(t, got, c.want)
			var plain []string
			for _, x := range texts {
				plain = append(plain, x.Text)
			}
			expect.Same(t, plain, c.texts)
		})
	}
}

func TestParse(t *testing.T) {
	c := expect.Value(Parse(input("Bash", `{"stdout":"a","persistedOutputPath":"/p"}`)))(t)
	if c.Session != "s1" || c.ToolUseID != "toolu_1" || c.CWD != "/srv" || c.Tool != "Bash" ||
		c.Argument("command") != `make "all"` || c.Argument("none") != "" {
		t.Errorf("%+v", c)
	}
	if texts, err := c.Texts(); err != nil || len(texts) != 1 || texts[0].File != "/p" {
		t.Errorf("%+v, %v", texts, err)
	}
	for in, want := range map[string]string{
		"":                                    "not the JSON of a hook",
		"null":                                "not the JSON of a hook",
		"[]":                                  "not the JSON of a hook",
		string(input("Bash", `{"stdout":"a`)): "not the JSON of a hook",
		string(input("Bash", `{}`)[:90]):      "not the JSON of a hook",
		string(input("Bash", `{}`)) + "x":     "text follows",
		string(input("Bash", `{"stdout":"a","stdout":"b"}`)):    "duplicate",
		`{"tool_name":"Bash","tool_name":"Read"}`:               "duplicate",
		`{"session_id":"s"}`:                                    `"" is not PostToolUse`,
		`{"hook_event_name":"PostToolUseFailure"}`:              `"PostToolUseFailure" is not`,
		`{"hook_event_name":"PostToolUse"}`:                     "session_id must be",
		`{"hook_event_name":"PostToolUse","session_id":"a\nb"}`: "session_id must be",
	} {
		expect.Fails(t, expect.Err(Parse([]byte(in))), want, in)
	}
}

func TestOutput(t *testing.T) {
	for output, want := range map[string][2]string{
		`{"type":"text","file":{"filePath":"/f","content":"c\n","numLines":1,"startLine":1,"totalLines":9}}`: {"/f", "c\n"},
		`{"type":"image","file":{"base64":"AA","type":"image/png"}}`:                                         {"", ""},
		`{"type":"text"}`: {"", ""}, `"text"`: {"", ""}, `null`: {"", ""},
	} {
		c := expect.Value(Parse(input("Read", output)))(t)
		if path, shown := c.Output("file", "filePath"), c.Output("file", "content"); path != want[0] || shown != want[1] {
			t.Errorf("%s: %q, %q", output, path, shown)
		}
	}
}

// value draws a JSON text with blanks, escapes and number spellings of its own.
func value(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		blank := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "blank") }
		kinds := []string{"number", "string", "literal", "object", "array"}
		if depth == 0 {
			kinds = kinds[:3]
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "number":
			return rapid.SampledFrom([]string{"0", "-0", "1.0", "1E5", "12345678901234567890", "3e-2"}).Draw(t, "number")
		case "string":
			return literalString(t)
		case "literal":
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
		case "array":
			items := rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "items")
			return "[" + blank() + strings.Join(items, blank()+","+blank()) + "]"
		}
		var members []string
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			members = append(members, fmt.Sprintf(`"k%d"%s:%s%s`, i, blank(), blank(), value(depth-1).Draw(t, "value")))
		}
		return "{" + blank() + strings.Join(members, blank()+","+blank()) + blank() + "}"
	})
}

// literalString draws a JSON string as some writer may spell it.
func literalString(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", " ", "é", "😀", `\n`, `\"`, `\\`, `\/`, `\u0000`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "<", "\u2028", "\u202e",
	}), 0, 6).Draw(t, "string")
	return `"` + strings.Join(parts, "") + `"`
}

// TestTheRestStays: an answer with the texts put back as they were written is the output, byte for byte.
func TestTheRestStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blank := func() string { return rapid.SampledFrom([]string{"", " ", "\r\n"}).Draw(t, "blank") }
		tool := rapid.SampledFrom([]string{"Bash", "Grep", "WebFetch", "mcp__a__b"}).Draw(t, "tool")
		var raw []string // the texts as they are written, in their order
		add := func() string {
			raw = append(raw, literalString(t))
			return raw[len(raw)-1]
		}
		object := func(must []string) string {
			var members []string
			for _, name := range append(must, "other", "more") {
				v := ""
				if slices.Contains(replaced[tool], name) || tool[0] == 'm' && name == "text" {
					v = add()
				} else if name == "type" {
					v = `"text"`
				} else {
					v = value(2).Draw(t, "value")
				}
				members = append(members, `"`+name+`"`+blank()+":"+blank()+v)
			}
			return "{" + blank() + strings.Join(members, blank()+","+blank()) + blank() + "}"
		}
		var output string
		if tool[0] == 'm' {
			var blocks []string
			for range rapid.IntRange(1, 3).Draw(t, "blocks") {
				blocks = append(blocks, object([]string{"type", "text"}), value(1).Draw(t, "no block"))
			}
			output = "[" + blank() + strings.Join(blocks, blank()+","+blank()) + "]"
		} else {
			output = object(rapid.Permutation(append([]string{"isImage2"}, replaced[tool]...)).Draw(t, "names"))
		}
		got, texts := replaceAll(t, input(tool, output))
		if len(texts) != len(raw) {
			t.Fatalf("%d texts of %d in %s", len(texts), len(raw), output)
		}
		slices.SortFunc(texts, func(a, b Text) int { return a.at.Start - b.at.Start })
		for i, x := range texts {
			var want string
			if err := json.Unmarshal([]byte(raw[i]), &want); err != nil || x.Text != want {
				t.Fatalf("%q, want %q, %v", x.Text, want, err)
			}
			got = strings.Replace(got, `"`+x.By+`"`, raw[i], 1)
		}
		expect.MustEqual(t, got, output)
	})
}
