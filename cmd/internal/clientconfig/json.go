package clientconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// maxNested bounds how many objects and arrays a file may have: hujson's stack grows with their nesting.
const maxNested = 1 << 18

// parseJSON parses JSON with comments. hujson writes every byte back that is not changed.
func (d *document) parseJSON() error {
	if bytes.Count(d.src, []byte("["))+bytes.Count(d.src, []byte("{")) > maxNested {
		return errors.New("it has too many objects and arrays")
	}
	text := d.src
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + lineEnd(d.src))
	}
	var err error
	if d.root, err = hujson.Parse(text); err != nil { // it wants an end of line after a last comment
		again, wrong := hujson.Parse(append(bytes.Clone(text), '\n'))
		if wrong != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
		}
		again.AfterExtra = again.AfterExtra[:len(again.AfterExtra)-1]
		d.root = again
	}
	var syntax *json.SyntaxError
	if d.client.strict && errors.As(json.Unmarshal(text, new(any)), &syntax) {
		return fmt.Errorf("%s: %w; %s reads no comments and no trailing commas",
			position(d.src, int(syntax.Offset)-1), syntax, d.client.Name)
	}
	if _, err := d.path(append(slices.Clone(d.keys), ServerName)); err != nil {
		return err
	}
	plain := d.root.Clone()
	plain.Standardize()
	return json.Unmarshal(plain.Pack(), &d.value)
}

// path returns the root and the values below keys, as far as they exist. All but the last are objects, null becomes an
// empty one. A key that is there twice is an error: a client may take either.
func (d *document) path(keys []string) ([]*hujson.Value, error) {
	path := []*hujson.Value{&d.root}
	for i, key := range keys {
		if l, is := path[i].Value.(hujson.Literal); is && string(l) == "null" {
			path[i].Value = &hujson.Object{}
		}
		o, ok := path[i].Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%s: %s is no object", position(d.src, path[i].StartOffset),
				cmp.Or(strings.Join(keys[:i], "."), "the file"))
		}
		for m := range o.Members {
			if text(o.Members[m].Name) != key {
				continue
			}
			if len(path) > i+1 {
				return nil, fmt.Errorf("%s: %q is there twice", position(d.src, o.Members[m].Name.StartOffset), key)
			}
			path = append(path, &o.Members[m].Value)
		}
		if len(path) == i+1 {
			break
		}
	}
	return path, nil
}

func text(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// jsonEntry is an entry as it is written.
type jsonEntry struct {
	Type    string   `json:"type,omitempty"`
	Source  string   `json:"source,omitempty"`
	Command any      `json:"command"`
	Args    []string `json:"args,omitempty"`
}

func (c *Client) jsonEntry(argv []string) jsonEntry {
	if c.joined {
		return jsonEntry{Type: c.kind, Command: argv}
	}
	return jsonEntry{c.kind, c.source, argv[0], argv[1:]}
}

// editJSON puts words in place of the first n of a command and its arguments. The others keep their spelling.
func (d *document) editJSON(name string, n int, words []string) error {
	keys := append(slices.Clone(d.keys), name, "command")
	path, err := d.path(keys)
	if err != nil {
		return err
	}
	if len(path) <= len(keys) {
		return errLayout // the entry is missing, or it has no command
	}
	entry, command := path[len(path)-2], path[len(path)-1]
	keys[len(keys)-1] = "args"
	if path, err = d.path(keys); err != nil {
		return err
	}
	var old, all []hujson.Value
	place := 2 // of the second argument, the first that has its own layout
	if d.client.joined {
		path, place = append(path, command), 1
	} else {
		old = append(old, *command)
	}
	list, _ := path[len(path)-1].Value.(*hujson.Array)
	if list != nil {
		old = append(old, list.Elements...)
	}
	for _, w := range words {
		all = append(all, hujson.Value{Value: hujson.String(w)})
	}
	all = append(all, old[n:]...)
	if !d.client.joined {
		command.Value, all = all[0].Value, all[1:]
	}
	if list == nil {
		var args []string
		for _, a := range all {
			args = append(args, text(a))
		}
		if args == nil {
			return nil
		}
		return d.insert(entry, "", "args", args)
	}
	var first hujson.Extra // stands before the first word, and its whitespace before the other new ones
	if len(old) >= place {
		first = old[place-1].BeforeExtra
	}
	_, lead := split(first)
	if !bytes.Contains(lead, []byte("\n")) {
		lead = hujson.Extra(" ")
	}
	kept := min(len(all), max(0, len(old)-max(n, place)))
	for i := range all {
		if i == 0 {
			all[i].BeforeExtra = first
		} else if i < len(all)-kept {
			all[i].BeforeExtra = lead
		}
	}
	list.Elements = all
	return nil
}

// split cuts an extra before its last whitespace.
func split(extra hujson.Extra) (comments, lead hujson.Extra) {
	n := len(bytes.TrimRight(extra, " \t\r\n"))
	return extra[:n:n], extra[n:]
}

// indent returns the indentation of an item; ok is false if it does not begin a line.
func indent(extra hujson.Extra) (text string, ok bool) {
	_, lead := split(extra)
	i := bytes.LastIndexByte(lead, '\n')
	return string(lead[i+1:]), i >= 0
}

// extras returns the white space and comments before and after each item of an object or array, and before its end. A
// comma follows the last item if its after is not nil.
func extras(v *hujson.Value) (before, after []*hujson.Extra, rest *hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			before = append(before, &c.Members[i].Name.BeforeExtra)
			after = append(after, &c.Members[i].Value.AfterExtra)
		}
		rest = &c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			before = append(before, &c.Elements[i].BeforeExtra)
			after = append(after, &c.Elements[i].AfterExtra)
		}
		rest = &c.AfterExtra
	}
	return before, after, rest
}

// put adds a member below keys, with the objects that are missing; to an array, it adds an element.
func (d *document) put(keys []string, value any) error {
	path, err := d.path(keys)
	if err != nil {
		return err
	}
	at := len(path) - 1
	v, outer := path[at], ""
	if at == len(keys) && v.Value.Kind() != '[' {
		return fmt.Errorf("%s: %s is no array", position(d.src, v.StartOffset), strings.Join(keys, "."))
	}
	for k := len(keys) - 1; k > at; k-- {
		value = map[string]any{keys[k]: value}
	}
	if at > 0 {
		for _, m := range path[at-1].Value.(*hujson.Object).Members {
			if text(m.Name) == keys[at-1] {
				outer, _ = indent(m.Name.BeforeExtra)
			}
		}
	}
	return d.insert(v, outer, append(keys[:len(keys):len(keys)], "")[at], value)
}

// insert adds a value at the end of an object or array, laid out as the items before it are.
func (d *document) insert(v *hujson.Value, outer, name string, value any) error {
	before, after, rest := extras(v)
	nl, unit := lineEnd(d.src), "  "
	if first, _, _ := extras(&d.root); len(first) > 0 {
		if own, _ := indent(*first[0]); own != "" {
			unit = own
		}
	}
	inner, lines := outer+unit, len(before) == 0 && (bytes.Contains(d.src, []byte("\n")) || v == &d.root)
	for _, extra := range before {
		if own, ok := indent(*extra); ok {
			inner, lines = own, true
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var lead hujson.Extra
	if lines {
		e.SetIndent(inner, unit)
		comments, end := split(*rest)
		lead = append(bytes.Clone(comments), nl+inner...)
		if *rest = end; len(before) == 0 && !bytes.Contains(end, []byte("\n")) {
			*rest = hujson.Extra(nl + outer)
		}
	} else if len(before) > 0 {
		lead = hujson.Extra(" ")
	}
	if err := e.Encode(value); err != nil {
		return err
	}
	item, err := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(nl)))
	if n := len(after); n > 0 && *after[n-1] != nil {
		item.AfterExtra = hujson.Extra{}
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		item.BeforeExtra = hujson.Extra(" ")
		member := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: lead, Value: hujson.String(name)}, Value: item}
		c.Members = append(c.Members, member)
	case *hujson.Array:
		item.BeforeExtra = lead
		c.Elements = append(c.Elements, item)
	}
	return err
}

// removeJSON removes the entry of a server.
func (d *document) removeJSON(name string) error {
	path, err := d.path(append(slices.Clone(d.keys), name))
	if err != nil {
		return err
	}
	v := path[len(path)-2]
	remove(v, slices.IndexFunc(v.Value.(*hujson.Object).Members, func(m hujson.ObjectMember) bool {
		return text(m.Name) == name
	}))
	return nil
}

// remove takes an item out of an object or array, and leaves the comments around it.
func remove(v *hujson.Value, i int) {
	before, after, rest := extras(v)
	if i >= len(before) {
		return // a key that is there twice; apply finds that nothing has changed
	}
	comments, _ := split(*before[i])
	last, next := len(before)-1, rest
	if i < last {
		next = before[i+1]
	} else if last > 0 && *after[last] == nil {
		*rest = append(bytes.Clone(*after[last-1]), *rest...)
		*after[last-1] = nil
	} else if last > 0 && *after[last-1] == nil {
		*after[last-1] = hujson.Extra{}
	}
	ownLine := bytes.HasPrefix(bytes.TrimLeft(*next, " \t\r"), []byte("\n"))
	switch {
	case !ownLine && (i < last || len(comments) > 0): // what follows takes the place of the item
		*next = append(bytes.Clone(*before[i]), bytes.TrimLeft(*next, " \t")...)
	case len(comments) > 0:
		*next = append(bytes.Clone(comments), *next...)
	case last == 0 && len(bytes.TrimSpace(*rest)) == 0:
		*rest = nil
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
}
