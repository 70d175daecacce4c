package savings

import (
	"encoding/json"
	"fmt"
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
	filter := func(text string) call { return call{"jq", map[string]any{"source": "pods.json", "filter": text}} }
	grep := func(text string) call { return call{"grep", map[string]any{"source": "pods.json", "pattern": text}} }
	for _, c := range []struct {
		name string
		call call
		want string
	}{
		{"known names", filter(`.items[]|select(.meta.phase=="Running")|.meta.name|length`), ""},
		{"jq's own words", filter(`def f(x): x|add; . as $total|[.[]|f(.)]|@csv, (label $out|break $out), 7`), ""},
		{"a known number", filter(`select(. > 3000)`), ""},
		{"a field that the tool describes", filter(`.added`), ""},
		{"a field called as an argument", filter(`.path`), "path"},
		{"a word that another tool describes", grep(`added`), "added"},
		{"plain text", call{"grep", map[string]any{"pattern": "(name", "literal": true}}, "(name"},
		{"a field", filter(`.items[]|.meta.uid`), "uid"},
		{"a field whose name is a function of jq", filter(`.items[]|.length`), "length"},
		{"a field in brackets", filter(`.items[]["uid"]`), "uid"},
		{"a field in a string", filter(`"id \(.uid)"`), "id uid"},
		{"a key of an object", filter(`{name: .items, uid}`), "uid"},
		{"a field in a pattern of variables", filter(`.items[]|. as {uid: $name}|$name`), "uid"},
		{"a key beside its variable", filter(`. as {$uid}|$uid`), "uid"},
		{"a field within reduce", filter(`reduce .items[].cents as $n (0; .+$n)`), "cents"},
		{"a value", filter(`select(.phase=="Failed")`), "Failed"},
		{"another case", filter(`select(.phase=="running")`), "running"},
		{"a number", filter(`.items[2110]`), "2110"},
		{"a pattern within a filter", filter(`select(.name|test("queue full|disk"))`), "disk"},
		{"a replacement", filter(`.name|sub("queue"; "row")`), "row"},
		{"a filter that does not parse", filter(`.items[`), ".items["},
		{"a seen layout", grep(` ERROR \[(\w+)\]`), ""},
		{"a seen word behind an escape", grep(`\bTAB\b`), ""},
		{"ignored case", grep(`(?i)error`), ""},
		{"a layout never seen", grep(`ERROR: (\w+)`), "ERROR: "},
		{"a word never seen", grep(`WARN|ERROR`), "WARN"},
		{"a part of a longer word", grep(`ERR`), "ERR"},
		{"a part of a longer word, ahead", grep(`quest_id=`), "quest_id="},
		{"a pattern that does not parse", grep(`(`), "("},
		{"a file", call{"read", map[string]any{"path": "orders.json"}}, ""},
		{"a file never seen", call{"read", map[string]any{"path": "src/nodes.json"}}, "src nodes"},
		{"an observation", call{"read", map[string]any{"path": "obs:k3v9q2m7x4ab"}}, ""},
		{"an observation never seen", call{"read", map[string]any{"path": "obs:0000000000aa"}}, "0000000000aa"},
		{"a pointer", call{"slice", map[string]any{"source": "pods.json", "at": "/items/0/status"}}, "status"},
		{"a record", call{"slice", map[string]any{"source": "pods.json", "records": "2110-2112"}}, "2110 2112"},
		{"one of several sources", call{"jq", map[string]any{"source": []string{"pods.json", "x.json"}}}, "x"},
		{"an argument", call{"grep", map[string]any{"source": "pods.json", "invert": true}}, "invert"},
		{"a tool", call{"find", map[string]any{"path": "pods.json"}}, "find"},
	} {
		r := caller{about: map[string]string{"jq": "a diff file {added}", "grep": "matching lines"}}
		r.seen.learn(seen)
		r.offered.learn(offered)
		if got := strings.Join(r.unknown(c.call), " "); got != c.want {
			t.Errorf("%s: %s %v: got unknown %q, want %q", c.name, c.call.tool, c.call.args, got, c.want)
		}
	}
}

func TestLearnJSON(t *testing.T) {
	var v any
	const list = `{"tools": [{"name": "jq", "about": "a\nlog {line}", "max": 1200}]}`
	if err := json.Unmarshal([]byte(list), &v); err != nil {
		t.Fatal(err)
	}
	var k known
	k.learnJSON(v)
	if got := fmt.Sprint(k.unknownWords("tools name jq about log line n")); got != "[n]" {
		t.Errorf("unknown: %s", got)
	}
}
