package savings

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// known is a text that was read, with its words.
type known struct {
	text  string
	words map[string]bool
}

var (
	wordsOf   = regexp.MustCompile(`[\pL\pN_]+`)
	thousands = regexp.MustCompile(`(\d),(\d{3})\b`)
	escapes   = regexp.MustCompile(`\\[nrt]`)
)

func (k *known) learn(text string) {
	for range 2 { // matches that overlap: 1,234,567
		text = thousands.ReplaceAllString(text, "$1$2")
	}
	text = escapes.ReplaceAllString(text, " ")
	k.text += text + "\n"
	if k.words == nil {
		k.words = map[string]bool{}
	}
	for _, w := range wordsOf.FindAllString(text, -1) {
		k.words[w] = true
	}
}

// learnJSON learns the keys and the strings of a JSON value.
func (k *known) learnJSON(v any) {
	switch v := v.(type) {
	case string:
		k.learn(v)
	case []any:
		for _, e := range v {
			k.learnJSON(e)
		}
	case map[string]any:
		for key, e := range v {
			k.learn(key)
			k.learnJSON(e)
		}
	}
}

// caller is what the caller of a script has read.
type caller struct {
	seen    known             // the question and the answers so far
	offered known             // the instructions and the whole list of tools
	about   map[string]string // description by tool
}

// unknown returns the names of a call that the caller has not read: words and numbers of all arguments, names and
// strings of a filter, literal parts of a pattern. Words of jq itself are no names, nor are single digits.
//
// A filter or a pattern names data. Of the list of tools, it gets names only from the description of its own tool: the
// argument path of another tool is no reason to know a field path.
func (r *caller) unknown(c call) (names []string) {
	var data, all known
	data.learn(r.seen.text + r.about[c.tool])
	all.learn(r.seen.text + r.offered.text)
	names = all.unknownWords(c.tool)
	for _, arg := range slices.Sorted(maps.Keys(c.args)) {
		names = append(names, all.unknownWords(arg)...)
		text, ok := c.args[arg].(string)
		switch {
		case arg == "filter" && ok:
			names = append(names, data.unknownInFilter(text)...)
		case arg == "pattern" && ok && c.args["literal"] == true:
			names = append(names, data.unknownRun(text, false)...)
		case arg == "pattern" && ok:
			names = append(names, data.unknownInPattern(text)...)
		case ok:
			names = append(names, all.unknownWords(text)...)
		default:
			value, _ := json.Marshal(c.args[arg])
			names = append(names, all.unknownWords(string(value))...)
		}
	}
	return names
}

func (k *known) unknownWords(text string) (names []string) {
	for _, w := range wordsOf.FindAllString(text, -1) {
		if _, err := strconv.ParseUint(w, 10, 64); err == nil && len(w) == 1 || k.words[w] || w == "true" ||
			w == "false" {
			continue
		}
		names = append(names, w)
	}
	return names
}

// unknownInPattern returns the literal parts of a pattern that the text does not hold as they are: a pattern that
// expects a bracket after a word has to have seen it.
func (k *known) unknownInPattern(pattern string) (names []string) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return []string{pattern}
	}
	var walk func(*syntax.Regexp)
	walk = func(r *syntax.Regexp) {
		if r.Op == syntax.OpLiteral {
			names = append(names, k.unknownRun(string(r.Rune), r.Flags&syntax.FoldCase != 0)...)
		}
		for _, sub := range r.Sub {
			walk(sub)
		}
	}
	walk(parsed)
	return names
}

// unknownRun returns the run unless the text holds it, not as a part of longer words. A single punctuation mark, such
// as the / of paths, need not be seen.
func (k *known) unknownRun(run string, fold bool) []string {
	if utf8.RuneCountInString(run) == 1 && !inWord([]rune(run)[0]) {
		return nil
	}
	text, find := k.text, run
	if fold {
		text, find = strings.ToLower(text), strings.ToLower(run)
	}
	first, _ := utf8.DecodeRuneInString(find)
	last, _ := utf8.DecodeLastRuneInString(find)
	for at := 0; ; at++ {
		i := strings.Index(text[at:], find)
		if i < 0 {
			return []string{run}
		}
		at += i
		left, _ := utf8.DecodeLastRuneInString(text[:at])
		right, _ := utf8.DecodeRuneInString(text[at+len(find):])
		if !(inWord(first) && inWord(left)) && !(inWord(last) && inWord(right)) {
			return nil
		}
	}
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (k *known) unknownInFilter(filter string) (names []string) {
	query, err := gojq.Parse(filter)
	if err != nil {
		return []string{filter}
	}
	return k.unknownIn(reflect.ValueOf(query))
}

// ofLanguage names the text fields of a parsed filter that name no part of the data: variables, functions, formats.
var ofLanguage = map[string]bool{
	"FuncDef.Name": true, "FuncDef.Args": true, "Func.Name": true, "Pattern.Name": true, "Term.Format": true,
	"Term.Break": true, "Label.Ident": true,
}

// takesPattern names the functions of jq whose first argument is a regular expression.
var takesPattern = []string{"capture", "gsub", "match", "scan", "split", "splits", "sub", "test"}

func (k *known) unknownIn(v reflect.Value) (names []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if f, ok := v.Interface().(*gojq.Func); ok && slices.Contains(takesPattern, f.Name) && len(f.Args) > 0 {
			if s := f.Args[0].Term; s != nil && s.Str != nil && s.Str.Queries == nil {
				return append(k.unknownInPattern(s.Str.Str), k.unknownIn(reflect.ValueOf(f.Args[1:]))...)
			}
		}
		return k.unknownIn(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			names = append(names, k.unknownIn(v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !ofLanguage[v.Type().Name()+"."+v.Type().Field(i).Name] {
				names = append(names, k.unknownIn(v.Field(i))...)
			}
		}
	case reflect.String:
		return k.unknownWords(v.String())
	}
	return names
}

// TestUnknown finds the names that a script cannot know, each alone among names that it knows.
func TestUnknown(t *testing.T) {
	const offered = `read path grep source pattern literal jq filter slice at records raw search show groups`
	const seen = `pods.json; 3,000 elements at /items; obs:k3v9q2m7x4ab
shape: {items: [3000] {meta: {name: string, phase: "Running" ×21}}}
58× ERROR [orders] queue full request_id=<*> line\tTAB`
	for _, c := range corpus.Rows[struct {
		Name, Tool string
		Args       map[string]any
		Want       string
	}](t, "known.ndjson") {
		r := caller{about: map[string]string{"jq": "a diff file {added}", "grep": "matching lines"}}
		r.seen.learn(seen)
		r.offered.learn(offered)
		expect.Equal(t, strings.Join(r.unknown(call{c.Tool, c.Args}), " "), c.Want, "%s: %s %v: got unknown", c.Name,
			c.Tool, c.Args)
	}
}
