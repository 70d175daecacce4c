package plan

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

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// maxFilter is the length of the longest filter, in bytes. A filter is parsed in this process, and the parser needs
// more memory and stack for a filter that is nested deeper.
const maxFilter = 16 << 10

// maxArgs is the size of the largest args object, in bytes, for the same reason.
const maxArgs = 64 << 10

// program is a parsed filter with the values of its variables.
type program struct {
	filter string
	query  *gojq.Query
	names  []string // "$name", in order
	values []any
	name   string // of the source, for input_filename
}

// parse parses a filter and its args. An error shows the place in the filter.
func parse(filter string, args map[string]json.RawMessage, name string) (*program, error) {
	if len(filter) > maxFilter {
		return nil, fmt.Errorf(
			"jq: filter is %d bytes long, at most %d are taken: pass data in args, or save a result and work on it", len(filter),
			maxFilter,
		)
	}
	if !utf8.ValidString(filter) {
		return nil, errors.New("jq: filter is not valid UTF-8")
	}
	if at := strings.IndexByte(filter, 0); at >= 0 { // the parser would stop there
		return nil, fmt.Errorf("jq: filter does not parse: a NUL byte stands in it\n%s", caret(filter, at))
	}
	q, err := gojq.Parse(filter)
	if err != nil {
		at := len(filter)
		var pe *gojq.ParseError
		if errors.As(err, &pe) {
			at = pe.Offset - len(pe.Token)
		}
		return nil, fmt.Errorf("jq: filter does not parse: %s\n%s", decode.Clip(err.Error()), caret(filter, at))
	}
	p := &program{filter: filter, query: q, name: name}
	named := map[string]any{}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(args)) {
		if size += len(k) + len(args[k]); size > maxArgs {
			return nil, fmt.Errorf("jq: args are over %d bytes: put data into a file or an observation instead", maxArgs)
		}
		if !identifier(k) {
			return nil, fmt.Errorf("jq: args: %q cannot be the name of a variable: use letters, digits and _", decode.Clip(k))
		}
		v, err := decode.NewDecoder(bytes.NewReader(args[k])).Next(nil)
		if err != nil {
			return nil, fmt.Errorf("jq: args: the value of %q is not JSON: %s", k, decode.Clip(err.Error()))
		}
		named[k] = v
		p.names = append(p.names, "$"+k)
		p.values = append(p.values, v)
	}
	p.names = append(p.names, "$ARGS")
	p.values = append(p.values, map[string]any{"named": named, "positional": []any{}})
	return p, nil
}

// identifier reports whether s can be the name of a variable that is not predefined.
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

// compile compiles a query with the variables of this program. The code can read no environment, no modules and no
// further inputs; debug and stderr return their input.
func (p *program) compile(q *gojq.Query) (*gojq.Code, error) {
	identity := func(v any, _ []any) any { return v }
	with := *changingInPlace(q)
	with.FuncDefs = nil
	for _, d := range lacking() {
		if strings.Contains(p.filter, d.Name) {
			with.FuncDefs = append(with.FuncDefs, d)
		}
	}
	with.FuncDefs = append(with.FuncDefs, q.FuncDefs...)
	options := append(ownerFunctions(),
		gojq.WithVariables(p.names),
		gojq.WithFunction("debug", 0, 0, identity),
		gojq.WithFunction("stderr", 0, 0, identity),
		gojq.WithFunction("input_filename", 0, 0, func(any, []any) any { return p.name }),
	)
	code, err := gojq.Compile(&with, options...)
	if err == nil {
		return code, nil
	}
	message := content.ClipEnd(err.Error(), 120) // the error repeats names of the filter
	if message == "input(s)/0 is not allowed" {
		message = `input and inputs are not available: the filter runs on every record in turn; with "slurp": true it gets all of them as one array (with "text" too: one string)`
	}
	if strings.HasPrefix(message, "cannot load module") {
		message = "import and include are not available: there are no modules here"
	}
	return nil, fmt.Errorf("jq: filter does not compile: %s%s", message, p.locate(err.Error()))
}

// lacking returns the functions of jq that gojq lacks. A caller that knows the line of a record replaces
// input_line_number. gojq does not keep the order of keys, so keys_unsorted is keys.
var lacking = sync.OnceValue(func() []*gojq.FuncDef {
	q, err := gojq.Parse(`
		def keys_unsorted: keys;
		def leaf_paths: paths(scalars);
		def toarray: if type == "array" then . else [.] end;
		def date: todate;
		def input_line_number: error("no line is known here");
		.`)
	if err != nil {
		panic(err)
	}
	return q.FuncDefs
})
