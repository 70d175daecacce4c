// Package transcripttest makes transcripts for tests, in every format.
//
// They are not recorded: no text of anybody's session is in them.
package transcripttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// All returns all bytes of a transcript. It panics if they cannot be read.
func All(b transcript.Bytes) []byte {
	all, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err != nil {
		panic(err)
	}
	return all
}

// Formats are all formats.
var Formats = []transcript.Format{
	transcript.Claude, transcript.Codex, transcript.Anthropic, transcript.Chat, transcript.Responses,
}

// Call is one call of a tool, and its result.
type Call struct {
	ID, Tool string
	Args     map[string]any
	Result   string
	Parts    bool // the result is a list of blocks
	Failed   bool
	Open     bool // there is no result yet
}

type object = map[string]any

// Overhead is how many tokens a reported prompt has besides those of the transcript's blocks.
const Overhead = 500

var counter = tokens.New(tokens.O200k)

// tokensOf returns the tokens that lines of a session file add to a prompt.
func tokensOf(lines []byte) (n int) {
	t, err := transcript.Read(lines)
	if err != nil {
		panic(err)
	}
	for i := range t.Blocks {
		n += t.Tokens(&t.Blocks[i], counter.Count)
	}
	return n
}

// Make returns a transcript of a question, calls and an answer.
func Make(format transcript.Format, calls []Call) []byte {
	switch format {
	case transcript.Claude:
		return claude(calls)
	case transcript.Codex:
		return codex(calls)
	case transcript.Anthropic:
		return document(object{"model": "m", "system": "be brief", "messages": anthropic(calls)})
	case transcript.Chat:
		return document(object{"model": "m", "messages": chat(calls)})
	default:
		return document(object{"model": "m", "input": items(calls)})
	}
}

// document writes one JSON value, without the escapes that Go adds.
func document(v any) []byte {
	out, err := content.PlainJSON(v)
	if err != nil {
		panic(err)
	}
	return append(out, '\n')
}

// blocks returns a text as a list of blocks.
func blocks(kind, text string) []object {
	half := len(text) / 2
	for half > 0 && half < len(text) && text[half]&0xc0 == 0x80 {
		half--
	}
	if half == 0 {
		return []object{{"type": kind, "text": text}}
	}
	return []object{{"type": kind, "text": text[:half]}, {"type": kind, "text": text[half:]}}
}

func anthropic(calls []Call) (all []object) {
	all = append(all, object{"role": "user", "content": "please look"})
	for _, c := range calls {
		all = append(all, object{"role": "assistant", "content": []object{
			{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
			{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": c.Args},
		}})
		if c.Open {
			continue
		}
		all = append(all, object{"role": "user", "content": []object{anthropicResult(c)}})
	}
	return append(all, object{"role": "assistant", "content": "done"})
}

func anthropicResult(c Call) object {
	r := object{"type": "tool_result", "tool_use_id": c.ID, "content": c.Result}
	if c.Parts {
		r["content"] = blocks("text", c.Result)
	}
	if c.Failed {
		r["is_error"] = true
	}
	return r
}

func claude(calls []Call) []byte {
	var out bytes.Buffer
	parent := any(nil)
	n, prompt := 0, 0
	add := func(o object) {
		n++
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		o["parentUuid"], o["uuid"], o["sessionId"] = parent, id, "11111111-1111-4111-8111-111111111111"
		o["isSidechain"], o["cwd"], o["timestamp"] = false, "/home/u/p", "2026-11-20T10:00:00.000Z"
		parent = id
		line := document(o)
		prompt += tokensOf(line)
		out.Write(line)
	}
	out.Write(document(object{"type": "file-history-snapshot", "messageId": "x", "snapshot": object{}}))
	add(object{"type": "user", "message": object{"role": "user", "content": "please look"}})
	for _, c := range calls {
		add(object{"type": "assistant", "message": object{"role": "assistant", "model": "m", "content": []object{
			{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": c.Args},
		}, "usage": object{
			"input_tokens": 1, "cache_read_input_tokens": prompt, "cache_creation_input_tokens": Overhead - 1,
		}}})
		if c.Open {
			continue
		}
		add(object{
			"type": "user", "message": object{"role": "user", "content": []object{anthropicResult(c)}},
			"toolUseResult": object{"stdout": c.Result, "stderr": "", "lines": 3},
		})
	}
	out.WriteString(`{"type":"of-another-version","x":[1, 2]}` + "\n")
	add(
		object{
			"type":    "assistant",
			"message": object{"role": "assistant", "content": []object{{"type": "text", "text": "done"}}},
		},
	)
	return out.Bytes()
}

func items(calls []Call) (all []object) {
	all = append(all, object{"type": "message", "role": "user", "content": blocks("input_text", "please look")})
	for _, c := range calls {
		args, _ := json.Marshal(c.Args)
		all = append(all, object{"type": "reasoning", "encrypted_content": "x", "summary": []object{}},
			object{"type": "function_call", "call_id": c.ID, "name": c.Tool, "arguments": string(args)})
		if c.Open {
			continue
		}
		o := object{"type": "function_call_output", "call_id": c.ID, "output": c.Result}
		if c.Parts {
			o["output"] = blocks("input_text", c.Result)
		}
		if c.Failed {
			o["status"] = "failed"
		}
		all = append(all, o)
	}
	return append(all, object{"type": "message", "role": "assistant", "content": blocks("output_text", "done")})
}

func codex(calls []Call) []byte {
	var out bytes.Buffer
	prompt := 0 // before the answer
	line := func(kind string, payload any) {
		out.Write(document(object{"timestamp": "2026-11-20T10:00:00.000Z", "type": kind, "payload": payload}))
	}
	line("session_meta", object{"id": "22222222-2222-4222-8222-222222222222", "cwd": "/home/u/p"})
	for _, item := range items(calls) {
		if item["role"] == "assistant" {
			prompt = tokensOf(out.Bytes())
		}
		line("response_item", item)
	}
	line("event_msg", object{"type": "token_count", "info": object{
		"last_token_usage": object{
			"input_tokens":        prompt + Overhead,
			"cached_input_tokens": 80,
		}, "model_context_window": 272000,
	}})
	return out.Bytes()
}

func chat(calls []Call) (all []object) {
	all = append(all, object{"role": "system", "content": "be brief"}, object{"role": "user", "content": "please look"})
	for _, c := range calls {
		args, _ := json.Marshal(c.Args)
		all = append(all, object{"role": "assistant", "content": nil, "tool_calls": []object{
			{"id": c.ID, "type": "function", "function": object{"name": c.Tool, "arguments": string(args)}},
		}})
		if c.Open {
			continue
		}
		m := object{"role": "tool", "tool_call_id": c.ID, "content": c.Result}
		if c.Parts {
			m["content"] = blocks("text", c.Result)
		}
		all = append(all, m)
	}
	return append(all, object{"role": "assistant", "content": "done"})
}

// Text returns a random text of at least that many bytes, with all that JSON escapes.
func Text(r *rand.Rand, size int) string {
	words := strings.Fields(`river stone "quoted" back\slash naïve 東京 👩‍👩‍👧 <b>&amp; tab` + " \u2028 \x7f")
	words = append(words, "a\tb", "\x01", "\x1b[31m")
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", "\n", "\r\n"}[r.IntN(5)])
	}
	return b.String()
}
