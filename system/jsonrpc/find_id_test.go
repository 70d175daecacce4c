package jsonrpc

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

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
		expect.Equal(t, string(FindID([]byte(line))), want, line)
	}
}

// TestHalfACharacter has a text that was cut inside of a surrogate pair.
func TestHalfACharacter(t *testing.T) {
	for _, text := range []string{`a \ud83d`, `a \ude00`, `a \ud83d and more`} {
		_, fault := Parse([]byte(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"part":"` + text + `"}}`))
		if fault == nil || !strings.Contains(fault.Error(), "send both halves") {
			t.Errorf("%s: %v", text, fault)
		}
	}
}
