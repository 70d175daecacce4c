package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestStringsArgument(t *testing.T) {
	type list struct {
		Glob Strings `json:"glob,omitempty" jsonschema:"some"`
	}
	var got Strings
	tool := New(Tool{Name: "t"}, func(_ context.Context, a list, _ Input, _ Output) error {
		got = a.Glob
		return nil
	})
	want := `"glob":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"description":"some"}`
	if !strings.Contains(string(tool.Schema), want) {
		t.Errorf("%s lacks %s", tool.Schema, want)
	}
	for raw, want := range map[string][]string{
		`{}`: nil, `{"glob":null}`: nil, `{"glob":""}`: nil, `{"glob":[]}`: {},
		`{"glob":"a"}`: {"a"}, `{"glob":["a","!b"]}`: {"a", "!b"},
		`{"glob":"[\"*.json\", \"!one.json\"]"}`: {"*.json", "!one.json"}, `{"glob":"[ab]*.go"}`: {"[ab]*.go"},
		`{"glob":"[\"a\",7]"}`: {`["a",7]`}, `{"glob":" [\"a\"]"}`: {"a"},
	} {
		got = nil
		if err := tool.Run(t.Context(), Input{Args: json.RawMessage(raw)}, nil); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"glob":7}`, `{"glob":["a",7]}`, `{"glob":{"a":1}}`, `{"glob":[["a"]]}`} {
		err := tool.Run(t.Context(), Input{Args: json.RawMessage(raw)}, nil)
		if err == nil ||
			!strings.Contains(err.Error(), `argument "glob" must be a string or an array of strings, not `) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, s := range []Strings{{"a"}, {"a", "b"}} {
		b, err := json.Marshal(list{s})
		if want := map[int]string{1: `{"glob":"a"}`, 2: `{"glob":["a","b"]}`}[len(s)]; err != nil || string(b) != want {
			t.Errorf("%q: %s, %v", s, b, err)
		}
	}
}
