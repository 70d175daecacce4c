package server

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestMetaOfACall checks what a client may declare with a call, and the error for what it may not.
func TestMetaOfACall(t *testing.T) {
	c := newClient(t, newTestServer(t))
	ask := func(meta string) string {
		return c.request("tools/call", `{"name":"say","arguments":{"text":"hello"},"_meta":{`+meta+`}}`)
	}
	for meta, want := range map[string]string{
		`"funnel/usage":{"prompt_tokens":1000,"window":200000,"turn":"1"}`: `"window_from":"reported","usage_from":"meta"`,
		`"funnel/usage":{"prompt_tokens":-1}`:                              "prompt_tokens must be a whole number from 0",
		`"funnel/usage":{"prompt_tokens":1e18}`:                            "not 1e18",
		`"funnel/usage":[]`:                                                "must be an object",
		`"funnel/limits":{"page_tokens":800,"uncut":true}`:                 `"text":"hello"`,
		`"funnel/limits":{"page_tokens":80}`:                               "page tokens must be from 400 to 40000, not 80",
		`"funnel/limits":{"page_tokens":0}`:                                "not 0",
		`"funnel/limits":{"page_tokens":"many"}`:                           `\"page_tokens\" must be a whole number`,
		`"funnel/limits":{"pages":3}`:                                      `unknown limit \"pages\"; limits: large_lines, `,
		`"funnel/limits":{"uncut":1}`:                                      `\"uncut\" must be true or false`,
		`"funnel/limits":7`:                                                "must be an object",
	} {
		expect.Contains(t, ask(meta), want)
	}
}
