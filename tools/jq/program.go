package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// maxFilter is the longest filter: parsing happens in this process, and its
// cost in memory and stack grows with the nesting that fits in.
const maxFilter = 16 << 10

// maxArgs bounds the args object, for the same reason.
const maxArgs = 64 << 10

// program is a parsed filter with the values of its variables.
type program struct {
	filter string
	query  *gojq.Query
	names  []string // "$name", in order
	values []any
	name   string // of the source, for input_filename
}

// parse reads a filter. The error shows the place.
func parse(filter string, args map[string]json.RawMessage, name string) (*program, error) {
	if len(filter) > maxFilter {
		return nil, fmt.Errorf("jq: filter is %d bytes long, at most %d are taken: pass data in args, or save a result and work on it", len(filter), maxFilter)
	}
	if !utf8.ValidString(filter) {
		return nil, errors.New("jq: filter is not valid UTF-8")
	}
	if at := strings.IndexByte(filter, 0); at >= 0 { // which the parser takes for its end
		return nil, fmt.Errorf("jq: filter does not parse: a NUL byte stands in it\n%s", caret(filter, at))
	}
	q, err := gojq.Parse(filter)
	if err != nil {
		at := len(filter)
		var pe *gojq.ParseError
		if errors.As(err, &pe) {
			at = pe.Offset - len(pe.Token)
		}
		return nil, fmt.Errorf("jq: filter does not parse: %s\n%s", clip(err.Error()), caret(filter, at))
	}
	p := &program{filter: filter, query: q, name: name}
	named := map[string]any{}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(args)) {
		if size += len(k) + len(args[k]); size > maxArgs {
			return nil, fmt.Errorf("jq: args are over %d bytes: put data into a file or an observation instead", maxArgs)
		}
		if !identifier(k) {
			return nil, fmt.Errorf("jq: args: %q cannot be the name of a variable: use letters, digits and _", clip(k))
		}
		v, err := newDecoder(bytes.NewReader(args[k])).next(nil)
		if err != nil {
			return nil, fmt.Errorf("jq: args: the value of %q is not JSON: %s", k, clip(err.Error()))
		}
		named[k] = v
		p.names = append(p.names, "$"+k)
		p.values = append(p.values, v)
	}
	p.names = append(p.names, "$ARGS")
	p.values = append(p.values, map[string]any{"named": named, "positional": []any{}})
	return p, nil
}

func identifier(s string) bool {
	for i, r := range s {
		switch {
		case r == '_', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', i > 0 && '0' <= r && r <= '9':
		default:
			return false
		}
	}
	return s != "" && s != "ENV" && s != "ARGS" && s != "__loc__"
}

// compile makes a query of this program ready to run. Nothing outside can be
// reached: no environment, no modules, no further inputs; debug and stderr pass their input on.
func (p *program) compile(q *gojq.Query) (*gojq.Code, error) {
	identity := func(v any, _ []any) any { return v }
	if defs := p.additions(); defs != nil {
		with := *q
		with.FuncDefs = append(defs, q.FuncDefs...)
		q = &with
	}
	code, err := gojq.Compile(q,
		gojq.WithVariables(p.names),
		gojq.WithFunction("debug", 0, 0, identity),
		gojq.WithFunction("stderr", 0, 0, identity),
		gojq.WithFunction("input_filename", 0, 0, func(any, []any) any { return p.name }),
	)
	if err == nil {
		return code, nil
	}
	message := content.ClipEnd(err.Error(), 120) // it repeats names of the filter; what is said in its place is whole
	if message == "input(s)/0 is not allowed" {
		message = `input and inputs are not available: the filter runs on every record in turn; with "slurp": true it gets all of them as one array (with "text" too: one string)`
	}
	if strings.HasPrefix(message, "cannot load module") {
		message = "import and include are not available: there are no modules here"
	}
	return nil, fmt.Errorf("jq: filter does not compile: %s%s", message, p.locate(err.Error()))
}

// lacking are functions of jq that gojq leaves out. It does not keep the order of keys: keys_unsorted is keys.
var lacking = sync.OnceValue(func() []*gojq.FuncDef {
	q, err := gojq.Parse(`
		def keys_unsorted: keys;
		def leaf_paths: paths(scalars);
		def toarray: if type == "array" then . else [.] end;
		def date: todate;
		.`)
	if err != nil {
		panic(err)
	}
	return q.FuncDefs
})

// additions are those of them that the filter may mean.
func (p *program) additions() (defs []*gojq.FuncDef) {
	for _, d := range lacking() {
		if strings.Contains(p.filter, d.Name) {
			defs = append(defs, d)
		}
	}
	return defs
}

// locate finds the name gojq complains about, which it does not say the place of.
func (p *program) locate(message string) string {
	what, name, found := strings.Cut(message, ": ")
	arity := -1
	switch {
	case strings.HasPrefix(message, "input(s)"):
		name, found = "input", true
		if at := word(p.filter, name, -1); at < 0 {
			name = "inputs"
		}
	case what == "function not defined":
		n, count, _ := strings.Cut(name, "/")
		if name = n; count != "" {
			arity = int(count[0] - '0')
		}
	case strings.HasPrefix(message, "cannot load module"):
		name = "import"
		if at := word(p.filter, name, -1); at < 0 {
			name = "include"
		}
	}
	if !found {
		return ""
	}
	if at := word(p.filter, name, arity); at >= 0 {
		return "\n" + caret(p.filter, at)
	}
	return ""
}

// word finds a name in a filter as a word of its own, outside plain text of
// strings; with arity 0 one that is not called with arguments, above 0 one that is.
func word(filter, name string, arity int) int {
	part := func(c byte) bool { return c == '_' || c == '$' || c == '@' || identifier("a"+string(rune(c))) }
	quoted := 0 // open quotes of strings; inside \( … ) is code again
	var resume []int
	for i := 0; i < len(filter); i++ {
		switch c := filter[i]; {
		case quoted == 1 && c == '\\' && i+1 < len(filter) && filter[i+1] == '(':
			resume, quoted = append(resume, 0), 0
			i++
			continue
		case quoted == 1 && c == '\\':
			i++
			continue
		case c == '"':
			quoted = 1 - quoted
			continue
		case quoted == 1:
			continue
		case c == '(' && len(resume) > 0:
			resume[len(resume)-1]++
		case c == ')' && len(resume) > 0:
			if resume[len(resume)-1]--; resume[len(resume)-1] < 0 {
				resume, quoted = resume[:len(resume)-1], 1
				continue
			}
		}
		end := i + len(name)
		if !strings.HasPrefix(filter[i:], name) || i > 0 && (part(filter[i-1]) || filter[i-1] == '.') || end < len(filter) && part(filter[end]) {
			continue
		}
		called := strings.HasPrefix(strings.TrimLeft(filter[end:], " \t\r\n"), "(")
		if arity < 0 || called == (arity > 0) {
			return i
		}
	}
	return -1
}

// caret shows the line of a filter around a byte, and ^ below that byte.
func caret(filter string, at int) string {
	at = max(0, min(at, len(filter)))
	start := strings.LastIndexByte(filter[:at], '\n') + 1
	end := len(filter)
	if i := strings.IndexByte(filter[at:], '\n'); i >= 0 {
		end = at + i
	}
	const before, after = 100, 60 // bytes: an error repeats at most 200 of what it was given
	left, right := "", ""
	if at-start > before {
		start, left = at-before, "…"
		for !utf8.RuneStart(filter[start]) {
			start++
		}
	}
	if end-at > after {
		end, right = at+after, "…"
		for !utf8.RuneStart(filter[end]) {
			end--
		}
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, left+filter[start:at])
	return "    " + line + strings.ReplaceAll(filter[at:end], "\t", " ") + right + "\n    " + strings.Repeat(" ", utf8.RuneCountInString(line)) + "^"
}

// clip cuts what others gave us, for messages.
func clip(s string) string { return content.ClipEnd(s, 200) }
