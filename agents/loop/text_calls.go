package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxCalls = 16     // of one reply
	maxDepth = 16     // of nested values
	pythonic = "\x00" // key of a call in the syntax of Python, which is read as a JSON object

	// wordBytes are the bytes of words, numbers and file names: those after the first 12 may start a word.
	wordBytes = "0123456789.-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+*/"
)

var (
	// thoughts matches thoughts, also those whose opening tag is part of the chat template.
	thoughts = content.Pattern(`(?is)<think(?:ing)?>.*?(?:</think(?:ing)?>|$)|^.*?</think(?:ing)?>`)
	callTag  = content.Pattern(`(?i)</?(?:tool_calls?|function_call)>|<\|tool_calls?(?:_start|_end)?\|>|\[TOOL_CALLS\]`)
	// emptied matches the place of a call, which is \x00, with the code fence or backticks around it.
	emptied  = content.Pattern("(?:`+[a-zA-Z_]*\\s*)?\x00[\x00\\s,;]*`*")
	toolName = content.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	ends     = content.Pattern("^(?:[ \\t]*(?:$|[,:=}\\])\r\n`])|[ \\t]+[\"'])")
	escape   = content.Pattern(`(?:\\u[0-9a-fA-F]{4})+|\\.`)

	// The keys of a call, by preference.
	wrapperKeys  = []string{"tool_calls", "tool_call", "function_call", "function", "tool"}
	nameKeys     = []string{"name", "tool_name", "function_name", "tool", "function", "action"}
	argumentKeys = []string{"arguments", "parameters", "args", "params", "tool_input", "action_input", "input"}
)

// WithoutThoughts returns a text without what a model thought aloud between tags.
func WithoutThoughts(text string) string { return thoughts().ReplaceAllString(text, "") }

// TextCalls finds tool calls that a model wrote as text, and returns at most 16 of them, without ids. names are the
// tools; the name of a call may be another one. rest is the text without calls and thoughts. A text that could be an
// answer is no call. The time is linear in the length of text.
func TextCalls(text string, names []string) (calls []chat.ToolCall, rest string) {
	text = strings.ReplaceAll(strings.TrimSpace(WithoutThoughts(text)), "\x00", "")
	f := finder{names: names, work: 4*len(text) + 1<<16}
	from, tagged := 0, false
	for _, t := range append(callTag().FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		f.scan(text[from:t[0]], tagged)
		from, tagged = t[1], !strings.Contains(text[t[0]:t[1]], "/") && !strings.HasSuffix(text[:t[1]], "_end|>")
	}
	if len(f.calls) == 0 {
		return nil, text
	}
	rest = strings.TrimSpace(emptied().ReplaceAllString(f.rest.String(), ""))
	if !strings.ContainsFunc(rest, unicode.IsLetter) { // brackets and commas
		rest = ""
	}
	return f.calls, rest
}

// finder collects the calls of a text, and reads its values.
type finder struct {
	names []string
	calls []chat.ToolCall
	rest  strings.Builder // the text with \x00 for each call
	work  int             // bytes that may still be read: failed attempts are read again

	text string // without tags
	at   int
	open string // the closing brackets that are due
	bare bool   // unquoted words are strings
	cut  bool   // the text ended within a string
}

// scan finds the calls of a text without tags. tagged: the text follows an opening tag.
func (f *finder) scan(text string, tagged bool) {
	alone := true // only blanks and backticks precede on the line
	for i, end := 0, 0; i < len(text); i = end {
		c, found := text[i], false
		end = i + 1
		if c == '{' || c == '[' || (alone || tagged) && letter(c) {
			f.text, f.at, f.open, f.bare, f.cut = text, i, "", c == '{' || tagged, false
			v, ok := f.value()
			after, _, _ := strings.Cut(text[f.at:min(len(text), f.at+80)], "\n")
			if ok && !letter(c) && !(f.cut && c == '[') {
				end = f.at // if it is an answer, nothing in it is a call
			}
			at, before := f.at, len(f.calls)
			if found = ok && f.add(v, tagged, alone && strings.Trim(after, " \t\r`;") == ""); found {
				end = at
				f.rest.WriteByte(0)
				continue
			}
			f.calls = f.calls[:before]
		}
		f.rest.WriteString(text[i:end])
		blank := strings.IndexByte(" \t\r\n`", c) >= 0
		alone, tagged = c == '\n' || alone && blank, tagged && (blank || c == ',' || c == ';')
	}
}

// add adds the calls of a value, and returns whether it is nothing but calls. tagged: its text is marked as a call.
// alone: its text is the whole line.
func (f *finder) add(v any, tagged, alone bool) bool {
	m, _ := v.(map[string]any)
	if m == nil {
		list, _ := v.([]any)
		return len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool { return !f.add(e, tagged, alone) })
	}
	for i, k := range wrapperKeys {
		if _, isText := m[k].(string); m[k] != nil && !isText {
			return f.add(m[k], tagged || i < 3, false)
		}
	}
	nameKey, argsKey := firstKey(m, nameKeys), firstKey(m, argumentKeys)
	name, _ := m[nameKey].(string)
	name = strings.TrimSuffix(strings.TrimPrefix(name, "functions."), "()")
	args := m[argsKey]
	if text, ok := args.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "{") {
		f.text, f.at, f.bare = text, 0, true
		args, _ = f.value()
	}
	object, isObject := args.(map[string]any)
	known, is := slices.Contains(f.names, name), true
	switch {
	case !toolName().MatchString(name) || m["description"] != nil || object["properties"] != nil:
		return false // a tool that is described
	case m[pythonic] != nil:
		is = tagged || alone && known
	case argsKey == "": // the arguments have no key of their own
		is = known && m["result"] == nil && m["output"] == nil
		delete(m, nameKey)
		delete(m, "type")
		args = m
	case !known:
		clear := tagged || argsKey == "arguments" || nameKey != "name" || strings.Contains(name, "_")
		is = clear && isObject && (tagged || len(m) == 2 || m["id"] != nil || m["type"] != nil)
	}
	text, err := json.Marshal(args)
	if string(text) == "null" {
		text = []byte("{}")
	}
	if is && err == nil && len(f.calls) < maxCalls {
		function := chat.Function{Name: name, Arguments: string(text)}
		f.calls = append(f.calls, chat.ToolCall{Type: "function", Function: function})
	}
	return is && err == nil
}

// firstKey returns the first of the keys that m has, or "".
func firstKey(m map[string]any, keys []string) string {
	for _, k := range keys {
		if _, ok := m[k]; ok {
			return k
		}
	}
	return ""
}

// value reads a value in the syntax of JSON or Python, with the usual mistakes of small models: map[string]any, []any,
// string, or json.RawMessage of a number or literal.
func (f *finder) value() (v any, ok bool) {
	f.skip(" \t\r\n")
	switch f.next() {
	case '{':
		m, _, ok := f.items('}')
		return m, ok
	case '[':
		_, list, ok := f.items(']')
		return list, ok
	}
	if s, ok := f.quoted(); ok {
		return s, true
	}
	word := f.skip(wordBytes)
	if word != "" && f.next() == '(' {
		m, list, ok := f.items(')')
		call := map[string]any{"name": word, "arguments": m, pythonic: true}
		if len(list) == 1 {
			call["arguments"] = list[0]
		} else if len(list) > 1 {
			call["arguments"] = list // without keywords: the loop refuses it
		}
		return call, ok && (len(list) == 0 || len(m) == 0)
	}
	literal := strings.Replace(strings.ToLower(word), "none", "null", 1)
	if json.Valid([]byte(literal)) {
		return json.RawMessage(literal), true
	}
	return word, word != "" && f.bare
}

// items reads the items of a bracket, with or without keys, and the closing bracket. Commas may be missing; so may the
// closing bracket, at the end of the text, of a line, of a code fence or of an outer bracket.
func (f *finder) items(closing byte) (m map[string]any, list []any, ok bool) {
	f.at++
	f.open += string(closing)
	defer func() { f.open = f.open[:len(f.open)-1] }()
	m, list = map[string]any{}, []any{}
	for n := 0; len(f.open) <= maxDepth && f.work > 0; n++ {
		newline := strings.Contains(f.skip(" \t\r\n"), "\n")
		at, c := f.at, f.next()
		f.work -= 8 // as expensive as reading that many bytes
		switch {
		case c == closing:
			f.at++
			return m, list, true
		case c == 0 || strings.IndexByte(f.open, c) >= 0:
			return m, list, n > 0
		case c == ',' && n > 0:
			f.at++
			continue
		}
		key, keyed := f.quoted()
		if !keyed {
			key = f.skip(wordBytes)
		}
		f.skip(" \t\r\n")
		if keyed = key != "" && (f.next() == ':' || f.next() == '='); keyed {
			f.at++
		} else {
			f.at, f.cut = at, false
		}
		v, ok := f.value()
		switch {
		case !ok || keyed && closing == ']' || !keyed && closing == '}':
			f.at = at
			return m, list, n > 0 && (newline || c == '`')
		case keyed:
			m[key] = v
		default:
			list = append(list, v)
		}
	}
	return m, list, false
}

// next returns the next byte, or 0 at the end.
func (f *finder) next() byte { return (f.text[f.at:min(f.at+1, len(f.text))] + "\x00")[0] }

// skip skips characters of a set, and returns them.
func (f *finder) skip(set string) string {
	at := f.at
	for f.at < len(f.text) && strings.IndexByte(set, f.text[f.at]) >= 0 {
		f.at++
	}
	f.work -= f.at - at
	return f.text[at:f.at]
}

func letter(c byte) bool { return strings.IndexByte(wordBytes[12:], c) >= 0 }

// quoted reads a string. A quotation mark ends it only if a comma, colon, bracket, string or the end of the line
// follows, so that apostrophes need no escape. If no mark ends it, it is the rest of the text without the brackets due.
func (f *finder) quoted() (string, bool) {
	c, size := utf8.DecodeRuneInString(f.text[f.at:])
	marks := "'‘’"
	if strings.ContainsRune("\"“”„", c) {
		marks = "\"“”„"
	}
	if size == 0 || !strings.ContainsRune(marks, c) {
		return "", false
	}
	start := f.at + size
	for f.at = start; f.at < len(f.text) && f.work > 0; {
		c, size = utf8.DecodeRuneInString(f.text[f.at:])
		f.at += size
		f.work -= size
		if c == '\\' {
			f.at = min(f.at+1, len(f.text))
		} else if strings.ContainsRune(marks, c) && ends().MatchString(f.text[f.at:min(len(f.text), f.at+16)]) {
			return unescape(f.text[start : f.at-size]), true
		}
	}
	f.cut = true
	s := f.text[start:f.at]
	for _, c := range f.open {
		s = strings.TrimSuffix(strings.TrimRight(s, " \t\r\n`"), string(c))
	}
	return unescape(s), true
}

// unescape replaces the escapes of JSON and those of quotation marks and underscores. Others are kept: patterns have
// them.
func unescape(s string) string {
	return escape().ReplaceAllStringFunc(s, func(e string) (text string) {
		if json.Unmarshal([]byte(`"`+e+`"`), &text) != nil {
			text = strings.TrimPrefix(e, strings.Repeat(`\`, strings.Count(`\'\_`, e)))
		}
		return text
	})
}
