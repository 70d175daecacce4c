package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// document is a parsed configuration file, which is changed in place: comments, order, indentation and unknown keys
// stay as they are.
type document struct {
	client *Client
	keys   []string // of the servers
	src    []byte   // without a byte order mark
	value  map[string]any
	root   hujson.Value // of JSON
}

// operation is one change of a document: words come in place of the first n of a server's argv. If n is toAdd, the
// entry is new, and if it is toRemove, the entry goes. Without a name, the operation is on the hook words[0].
type operation struct {
	name  string
	n     int
	words []string
}

const (
	toAdd    = -1
	toRemove = -2
)

var bom = []byte("\ufeff")

func (c *Client) parse(src []byte) (*document, error) {
	if at := bytes.IndexRune(src, utf8.RuneError); !utf8.Valid(src) {
		return nil, fmt.Errorf("%s: it is not UTF-8", position(src, at))
	}
	d := &document{client: c, keys: c.keys, src: bytes.TrimPrefix(src, bom)}
	parse := d.parseJSON
	if c.toml {
		parse = d.parseTOML
	}
	if err := parse(); err != nil {
		return nil, err
	}
	if all, ok := below(d.value, "mcp", "servers").(map[string]any); ok && c.joined && all["command"] == nil {
		d.keys = []string{"mcp", "servers"} // opencode 2 has a level more
	}
	return d, nil
}

// below returns the value below keys, or nil.
func below(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// position words a place of a text as an editor shows it.
func position(src []byte, at int) string {
	at = min(max(at, 0), len(src))
	line, column := 1+bytes.Count(src[:at], []byte("\n")), at-bytes.LastIndexByte(src[:at], '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// lineEnd returns how the lines of a text end.
func lineEnd(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// quoted writes strings as both JSON and TOML read them.
func quoted(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, string(hujson.String(w)))
	}
	return strings.Join(all, ", ")
}

// argv returns the commands of all entries with their arguments, by name; nil for other kinds of entries.
func (d *document) argv() map[string][]string {
	list := func(v any) (words []string, ok bool) {
		items, ok := v.([]any)
		for _, item := range items {
			word, isText := item.(string)
			words, ok = append(words, word), ok && isText
		}
		return words, ok || v == nil
	}
	entries, _ := below(d.value, d.keys...).(map[string]any)
	all := map[string][]string{}
	for name, e := range entries {
		if name == "" {
			continue // an operation without a name is on the hook
		}
		all[name] = nil
		args, ok := list(below(e, "args"))
		if command, text := below(e, "command").(string); text && ok && !d.client.joined {
			all[name] = append([]string{command}, args...)
		} else if words, ok := list(below(e, "command")); ok && d.client.joined {
			all[name] = words
		}
	}
	return all
}

// wrapping returns the words that wrap an entry's command. wrap withholds the variables of its own environment, which
// is that of the entry, unless they are named.
func (d *document) wrapping(name, self string) []string {
	entry, names := below(d.value, append(slices.Clone(d.keys), name)...), []string(nil)
	for _, key := range []string{"env", "environment"} { // the latter is opencode's
		variables, _ := below(entry, key).(map[string]any)
		names = slices.AppendSeq(names, maps.Keys(variables))
	}
	passed, _ := below(entry, "env_vars").([]any) // of codex: those of its own environment
	for _, variable := range passed {
		if text, ok := variable.(string); ok {
			names = append(names, text)
		}
	}
	words := []string{self, "wrap"}
	if slices.Sort(names); len(names) > 0 {
		words = append(words, "--env", strings.Join(slices.Compact(names), ","))
	}
	return append(words, "--")
}

// wrapped returns how many words wrap a command; 0 if it is not wrapped.
func wrapped(argv []string, self string) int {
	if len(argv) < 4 || !isOwn(argv[0], self) || argv[1] != "wrap" {
		return 0
	}
	if i := slices.Index(argv, "--"); i+1 < len(argv) {
		return i + 1
	}
	return 0
}

// isOwn reports whether a command is this program, at this place or another.
func isOwn(command, self string) bool {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return command == self || strings.TrimSuffix(base, ".exe") == "mcp-funnel"
}

// ours returns the operations that made the entries and hooks of this program in a document.
func (d *document) ours(self string) (all []operation) {
	argv := d.argv()
	for _, name := range slices.Sorted(maps.Keys(argv)) {
		if n := wrapped(argv[name], self); n > 0 {
			all = append(all, operation{name, 0, argv[name][:n]})
		} else if name == ServerName && len(argv[name]) > 0 && isOwn(argv[name][0], self) {
			all = append(all, operation{name, toAdd, argv[name]})
		}
	}
	for _, kind := range []string{toolHook, " " + startHook} {
		keys, _ := hookKeys(kind)
		for _, command := range slices.Concat(d.hooks(keys)...) {
			if hookWords(command, self) != nil && sameHook(command, kind) {
				all = append(all, operation{"", toAdd, []string{command}})
			}
		}
	}
	return all
}

// errLayout is returned for an edit that would change less or more than it should.
var errLayout = errors.New("its layout cannot be edited safely; --print shows what to change by hand")

// apply returns a configuration after operations, and checks that nothing else has changed.
func (c *Client) apply(src []byte, all []operation) ([]byte, error) {
	d, err := c.parse(src)
	if err != nil {
		return nil, err
	}
	want := d.argv()
	for _, o := range all {
		want[o.name] = append(slices.Clone(o.words), want[o.name][max(o.n, 0):]...)
		if o.n == toRemove {
			want[o.name] = nil
		}
		switch {
		case o.name == "" && o.n == toAdd:
			err = d.addHook(o.words[0])
		case o.name == "":
			d.removeHook(o.words[0])
		case o.n == toRemove && c.toml:
			d.removeTOML(o.name)
		case o.n == toRemove:
			err = d.removeJSON(o.name)
		case o.n == toAdd && c.toml:
			d.putTOML(o.words)
		case o.n == toAdd:
			err = d.put(append(slices.Clone(d.keys), o.name), c.jsonEntry(o.words))
		case c.toml:
			d.editTOML(o.name, o.n, o.words)
		default:
			err = d.editJSON(o.name, o.n, o.words)
		}
		if err != nil {
			return nil, err
		}
	}
	out := d.src
	if !c.toml {
		out = d.root.Pack()
	}
	if bytes.HasPrefix(src, bom) && !c.strict { // strict JSON has none
		out = slices.Concat(bom, out)
	}
	after, err := c.parse(out)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errLayout, err)
	}
	before, now := any(d.value), any(after.value)
	argv := after.argv()
	for _, o := range all {
		keys := append(slices.Clone(d.keys), o.name)
		switch {
		case o.name == "":
			keys, _ = hookKeys(o.words[0])
			before, now = without(before, keys), without(now, keys)
			continue
		case o.n >= 0:
			before, now = without(before, append(keys, "command")), without(now, append(keys, "command"))
			keys = append(keys, "args")
		}
		before, now = without(before, keys), without(now, keys)
		if _, there := argv[o.name]; there != (o.n != toRemove) || !slices.Equal(argv[o.name], want[o.name]) {
			return nil, errLayout
		}
	}
	if !reflect.DeepEqual(before, now) {
		return nil, errLayout
	}
	return out, nil
}

// without returns a decoded value without the value at keys, and without objects that are empty then.
func without(v any, keys []string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	m = maps.Clone(m)
	if len(keys) > 1 {
		m[keys[0]] = without(m[keys[0]], keys[1:])
	}
	if len(keys) == 1 || m[keys[0]] == nil {
		delete(m, keys[0])
	}
	if len(m) == 0 {
		return nil
	}
	return m
}
