package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestQueriesArgument(t *testing.T) {
	type some struct {
		Filter Queries `json:"filter" jsonschema:"f"`
	}
	var got Queries
	tool := New(Tool{Name: "t"}, func(_ context.Context, a some, _ Input, _ Output) error {
		got = a.Filter
		return nil
	})
	expect.Contains(t, string(tool.Schema),
		`"filter":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"object"}],"description":"f"}`)
	for raw, want := range map[string]string{
		`"a"`: "false [] [a]", `""`: "false [] []", `"[\"a\"]"`: `false [] [["a"]]`, `"{\"a\":\"b\"}"`: `false [] [{"a":"b"}]`,
		`["a"]`: "true [1] [a]", `["a","b"]`: "true [1 2] [a b]", `{"x":"b","y":"a"}`: "true [x y] [b a]",
	} {
		expect.Must(t, tool.Run(t.Context(), Input{Args: json.RawMessage(`{"filter":` + raw + `}`)}, nil), raw)
		expect.Equal(t, fmt.Sprint(got.Several, got.Names, got.Texts), strings.Replace(want, "[] ", "[] ", 1), raw)
		again, err := json.Marshal(got)
		if err != nil || string(again) != raw && !got.Named {
			t.Errorf("%s is written as %s, %v", raw, again, err)
		}
	}
	for raw, want := range map[string]string{
		`7`: "not 7", `[]`: "not []", `{}`: "not {}", `["a",7]`: `not ["a",7]`, `{"a":["b"]}`: "not {", `[["a"]]`: "not [",
		`["` + strings.Repeat(`a","`, MaxQueries) + `a"]`: `must be a string, or an array or object of 1 to 32 strings, not ["a"`,
	} {
		expect.Fails(t, tool.Run(t.Context(), Input{Args: json.RawMessage(`{"filter":` + raw + `}`)}, nil), want, raw)
	}
}
