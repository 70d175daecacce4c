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
		form(`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"integer"},"c":{"type":"boolean"},"d":{"type":"number"},"e":{"type":"array","items":{"type":"string","enum":["x"]}}}}`),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []tools.Question{
		{}, {Form: form(`{"type":"object"}`).Form, Prompt: prompt.Prompt}, {Form: &tools.Form{Schema: json.RawMessage(`{"type":"object"}`)}},
		form(``), form(`7`), form(`{`), form(`{"type":"string"}`), form(`{"type":"object","properties":{"a":{"type":"object"}}}`),
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
