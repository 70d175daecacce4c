package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

type sample struct {
	Pattern string         `json:"pattern" jsonschema:"RE2"`
	Path    string         `json:"path,omitempty"`
	Show    string         `json:"show,omitempty" enum:"matches|files"`
	Context int            `json:"context,omitempty" range:"0,20"`
	Literal bool           `json:"literal,omitempty"`
	Skip    int64          `json:"skip,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
}

func newSample(got *sample) tools.Tool {
	return tools.New(tools.Tool{Name: "sample"}, func(_ context.Context, a sample, _ tools.Input, _ tools.Output) error {
		*got = a
		return nil
	})
}

func TestArgumentsAreDecodedOrExplained(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{`{"pattern":"x"}`, ""},
		{`{"pattern":"x","path":null}`, ""},
		{`{"pattern":"x","context":20,"literal":true,"show":"files","args":{"a":1}}`, ""},
		{``, `missing argument "pattern"; valid arguments: pattern (required), path, show, context, literal, skip, args`},
		{`null`, `missing argument "pattern"`},
		{`[]`, `must be a JSON object`},
		{`{"pattern":"x","patern":"y"}`, `unknown argument "patern" (did you mean "pattern"?); valid arguments: pattern (required)`},
		{`{"pattern":"x","file_path":"y"}`, `did you mean "path"?`},
		{`{"pattern":"x","Path":"y"}`, `unknown argument "Path"`},
		{`{"pattern":"x","zzz":"y"}`, `unknown argument "zzz"; valid`},
		{`{"pattern":1}`, `argument "pattern" must be a string, not an integer: 1; valid arguments: pattern (required), path`},
		{`{"pattern":"x","context":"3"}`, `argument "context" must be an integer, not a string`},
		{`{"pattern":"x","context":1.5}`, `argument "context" must be an integer, not a number: 1.5; valid arguments: pattern (required), path, show`},
		{`{"pattern":"x","context":15e-1}`, `argument "context" must be an integer, not a number`},
		{`{"pattern":"x","context":21.0}`, `argument "context" must be from 0 to 20, not 21`},
		{`{"pattern":"x","context":1e999999999999999999999}`, `argument "context" must be from 0 to 20, not 1e999`},
		{`{"pattern":"x","context":1e-999999999999999999999}`, `argument "context" must be an integer, not a number`},
		{`{"pattern":"x","skip":99999999999999999999}`, `argument "skip" must be from -9223372036854775808 to 9223372036854775807, not 99999999999999999999`},
		{`{"pattern":"x","skip":1e19}`, `argument "skip" must be from -9223372036854775808 to`},
		{`{"pattern":"x","context":21}`, `argument "context" must be from 0 to 20, not 21`},
		{`{"pattern":"x","context":99999999999999999999}`, `must be from 0 to 20`},
		{`{"pattern":"x","show":"all"}`, `argument "show" must be one of matches, files`},
		{`{"pattern":"x","args":[1]}`, `argument "args" must be an object, not an array`},
		{`{"pattern":"x","pattern":"y"}`, `argument "pattern" is given twice`},
		{`{"pattern":"x"`, `arguments: the JSON is truncated at byte 14, after "{\"pattern\":\"x\"": send the whole object`},
		{`{"pattern":"x",`, `truncated at byte 15`},
		{`{"pattern":"x","path":"a`, `truncated at byte 24`},
		{`{`, `truncated at byte 1, after "{"`},
		{`{"pattern":"` + strings.Repeat("é", 10_000), `, after "` + strings.Repeat("é", 20) + `"`},
		{`{"pattern":x}`, `arguments: invalid JSON at byte 11, after "{\"pattern\":": invalid character 'x'`},
		{`{"pattern":"x"} y`, `arguments: invalid JSON at byte 16, after`},
		{`{"pattern":"x","literal":"` + strings.Repeat("y", 10_000) + `"}`, `argument "literal" must be a boolean`},
	} {
		var got sample
		err := newSample(&got).Run(t.Context(), tools.Input{Args: json.RawMessage(c.args)}, nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.want == "" && got.Pattern != "x":
			t.Errorf("%s: decoded to %+v", c.args, got)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.100s:\n got %v\nwant …%s", c.args, err, c.want)
		case err != nil && len(err.Error()) > 600:
			t.Errorf("%.40s: the error has %d bytes", c.args, len(err.Error()))
		}
	}
}

// To JSON Schema a number without a fraction is an integer, however it is written.
func TestAnIntegerIsOneHoweverItIsWritten(t *testing.T) {
	for written, want := range map[string]int64{
		"2": 2, "2.0": 2, "-2.000": -2, "1e2": 100, "1e3": 1000, "1.5E+1": 15, "0.0": 0, "-0": 0, "0e7": 0, "9223372036854775807.0": 9223372036854775807, "9007199254740993.0": 9007199254740993,
		"10e-1": 1, "-1200e-2": -12, "12.300e3": 12300, "0e-5": 0, "-0.00e400": 0, "0e-99999999999999999999": 0,
	} {
		var got sample
		err := newSample(&got).Run(
			t.Context(), tools.Input{Args: json.RawMessage(`{"pattern":"x","skip":` + written + `}`)}, nil,
		)
		if err != nil || got.Skip != want || got.Pattern != "x" {
			t.Errorf("%s: %d, %v", written, got.Skip, err)
		}
	}
	for _, written := range []string{"1e-1", "15e-1", "0.5", "10.01e1", "1e400", "-1e99999999999999999999", "1e-99999999999999999999", "9223372036854775808.0"} {
		var got sample
		if err := newSample(&got).Run(
			t.Context(), tools.Input{Args: json.RawMessage(`{"pattern":"x","skip":` + written + `}`)}, nil,
		); err == nil {
			t.Errorf("%s: %d", written, got.Skip)
		}
	}
}

func TestSchemaIsTerse(t *testing.T) {
	const want = `{"type":"object","properties":{"pattern":{"type":"string","description":"RE2"},"path":{"type":"string"},"show":{"type":"string","enum":["matches","files"]},"context":{"type":"integer","minimum":0,"maximum":20},"literal":{"type":"boolean"},"skip":{"type":"integer"},"args":{"type":"object"}},"required":["pattern"]}`
	if got := string(newSample(new(sample)).Schema); got != want {
		t.Errorf("schema:\n got %s\nwant %s", got, want)
	}
}

// all has an argument of each type, with each tag.
type all struct {
	Text    string                     `json:"text" jsonschema:"é \"quoted\" <b> & \\ \u2028" enum:"<a>|b\"c"`
	Flag    bool                       `json:"flag,omitempty" jsonschema:"a flag"`
	Count   int                        `json:"count" range:",-3"`
	Large   int64                      `json:"large,omitempty" range:"1,1e21" jsonschema:"many"`
	Share   float64                    `json:"share,omitempty" range:"0.25,"`
	Maybe   *bool                      `json:"maybe,omitempty"`
	Pointer *string                    `json:"pointer,omitempty" jsonschema:"p" enum:"x"`
	Values  map[string]json.RawMessage `json:"values,omitempty" jsonschema:"values of $name"`
}

// The schema is the one that a library derives from the struct, without what clients would pay for and need not know.
func TestSchemaIsThatOfTheLibrary(t *testing.T) {
	compare[all](t)
	compare[sample](t)
	compare[struct{}](t)
	compare[struct {
		A string `json:"a,omitempty"`
	}](t)
}

func compare[Args any](t *testing.T) {
	t.Helper()
	s, err := jsonschema.For[Args](nil)
	if err != nil {
		t.Fatal(err)
	}
	s.AdditionalProperties = nil
	for f := range reflect.TypeFor[Args]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		p.AdditionalProperties = nil
		if len(p.Types) > 0 { // ["null","string"]: an absent argument says the same
			p.Type, p.Types = p.Types[1], nil
		}
		if e := f.Tag.Get("enum"); e != "" {
			for one := range strings.SplitSeq(e, "|") {
				p.Enum = append(p.Enum, one)
			}
		}
		low, high, _ := strings.Cut(f.Tag.Get("range"), ",")
		for text, bound := range map[*string]**float64{&low: &p.Minimum, &high: &p.Maximum} {
			if v, err := strconv.ParseFloat(*text, 64); err == nil {
				*bound = &v
			}
		}
	}
	want, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	got := tools.New(
		tools.Tool{Name: "one"}, func(context.Context, Args, tools.Input, tools.Output) error { return nil },
	).Schema
	if !bytes.Equal(got, want) {
		t.Errorf("schema:\n got %s\nwant %s", got, want)
	}
}

func TestABadStructPanicsAtStart(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an argument without a name was taken")
		}
	}()
	tools.New(
		tools.Tool{Name: "bad"}, func(context.Context, struct{ X int }, tools.Input, tools.Output) error { return nil },
	)
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"pattern":"x"}`)
	f.Add(`{"pattern":"x","pattern":{}}`)
	f.Fuzz(func(t *testing.T, args string) {
		var got sample
		err := newSample(&got).Run(t.Context(), tools.Input{Args: json.RawMessage(args)}, nil)
		if err == nil && !json.Valid([]byte(args)) {
			t.Errorf("taken though it is not JSON: %q", args)
		}
	})
}
