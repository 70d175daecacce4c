package tools_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestQuestionCheck(t *testing.T) {
	form := func(schema string) tools.Question {
		return tools.Question{Form: &tools.Form{Message: "x", Schema: json.RawMessage(schema)}}
	}
	prompt := tools.Question{Prompt: &tools.Prompt{MaxTokens: 1, Messages: []tools.Message{{Role: "user", Text: "x"}}}}
	for _, good := range []tools.Question{
		prompt, form(`{"type":"object"}`),
		form(
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"integer"},"c":{"type":"boolean"},"d":{"type":"number"},"e":{"type":"array","items":{"type":"string","enum":["x"]}}}}`,
		),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []tools.Question{
		{}, {Form: form(`{"type":"object"}`).Form, Prompt: prompt.Prompt}, {Form: &tools.Form{
			Schema: json.RawMessage(`{"type":"object"}`),
		}},
		form(``), form(`7`), form(`{`), form(`{"type":"string"}`), form(
			`{"type":"object","properties":{"a":{"type":"object"}}}`,
		),
		form(`{"type":"object","properties":{"a":{}}}`), form(`{"type":"object","properties":{"a":7}}`),
		{Prompt: &tools.Prompt{MaxTokens: 1}}, {Prompt: &tools.Prompt{Messages: prompt.Prompt.Messages}},
		{Prompt: &tools.Prompt{MaxTokens: 1, Messages: []tools.Message{{Role: "system", Text: "x"}}}},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v can be asked", bad)
		}
	}
	var lacks *tools.CapabilityError
	if _, err := tools.NoClient(t.Context(), prompt); !errors.As(err, &lacks) {
		t.Error(err)
	}
}

func TestFormFits(t *testing.T) {
	f := &tools.Form{Message: "x", Schema: json.RawMessage(`{"type":"object","properties":{
		"name":{"type":"string","title":"Name","minLength":2,"default":"Anna","format":"email"},"age":{"type":"integer","minimum":0},
		"one":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},"old":{"type":"string","enum":["x","y"],"enumNames":["X","Y"]},
		"some":{"type":"array","minItems":1,"items":{"anyOf":[{"const":"a","title":"A"}]}},"sure":{"type":"boolean","default":false}},"required":["name"]}`)}
	for content, fits := range map[string]bool{
		`{"name":"Anna"}`: true, `{"name":"Anna","age":3,"one":"b","old":"x","some":["a"],"sure":true}`: true, `{"name":"Anna","more":1}`: true,
		`{}`: false, `{"name":7}`: false, `{"name":"A"}`: false, `{"name":"Anna","age":-1}`: false, `{"name":"Anna","age":1.5}`: false,
		`{"name":"Anna","one":"c"}`: false, `{"name":"Anna","old":"z"}`: false, `{"name":"Anna","some":[]}`: false, `[]`: false, `{`: false,
	} {
		if err := f.Validate(json.RawMessage(content)); (err == nil) != fits {
			t.Errorf("%s: %v", content, err)
		}
	}
}
