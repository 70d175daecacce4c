package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/records"
)

// Record is what is remembered of a server between its starts. Definitions
// of tools are trusted when the server is first seen. One that changes later, or is new, is held back until it is
// approved.
type Record struct {
	V       int      `json:"v"` // 1
	Command []string `json:"command"`
	Dir     string   `json:"dir,omitempty"`    // of the command, if it names a file there
	Modern  bool     `json:"modern"`           // it speaks the stateless protocol
	Server  string   `json:"server,omitempty"` // its name in the configuration, when it last started

	Instructions string `json:"instructions,omitempty"` // as the server sent them, truncated

	Approved []json.RawMessage `json:"approved"`         // definitions as the server wrote them, in its order
	Listed   []json.RawMessage `json:"listed,omitempty"` // all definitions of its last list; only set if Held is
	Held     []Held            `json:"held,omitempty"`   // the tools of Listed that are held back
}

// Held is a tool that is held back.
type Held struct {
	Name string `json:"name"`
	Why  string `json:"why"` // changed, new
}

// Key names the record of a command.
func Key(command []string) string {
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// Records are the records of a store.
type Records struct{ store records.Store }

// RecordsIn returns the records of upstream servers among others.
func RecordsIn(store records.Store) Records { return Records{store} }

func recordOf(key string) records.Key { return records.Key{Kind: records.Upstream, Name: key} }

// Keys returns the names of all records.
func (r Records) Keys() (keys []string, err error) {
	all, err := r.store.List(recordOf(""), "*", false)
	for _, one := range all {
		keys = append(keys, one.Name)
	}
	return keys, err
}

// Load returns a record; nil if there is none.
func (r Records) Load(key string) (*Record, error) {
	one, err := r.store.Get(recordOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.parse(key, one)
}

// parse reads a record; nil if there is none. A damaged one is an error: without it all tools would be trusted again.
func (r Records) parse(key string, found records.Record) (*Record, error) {
	if found.Body == nil && !found.Damaged {
		return nil, nil
	}
	var one Record
	if err := json.Unmarshal(found.Body, &one); err != nil || one.V != 1 {
		return nil, fmt.Errorf("%s is damaged or of another version: remove it, and the tools of the server are trusted anew",
			r.store.Where(recordOf(key)))
	}
	return &one, nil
}

// named returns the names of the approved tools of the record that was last written for a server of a name, whatever
// its command was.
func (r Records) named(server string) (tools []string) {
	all, _ := r.store.List(recordOf(""), "*", true) // without it nothing is remembered
	slices.SortFunc(all, func(a, b records.Record) int { return b.Used.Compare(a.Used) })
	for _, found := range all {
		if one, err := r.parse(found.Name, found); err == nil && one != nil && one.Server == server {
			for _, d := range one.Approved {
				tools = append(tools, nameOf(d))
			}
			break
		}
	}
	return tools
}

// Change calls change with a record, nil if there is none, and writes what it returns, if that is not nil. No other
// process changes the record meanwhile.
func (r Records) Change(key string, change func(*Record) (*Record, error)) error {
	return r.store.Update(recordOf(key), func(old records.Record) ([]byte, error) {
		one, err := r.parse(key, old)
		if err == nil {
			one, err = change(one)
		}
		if err != nil || one == nil {
			return nil, err
		}
		return json.Marshal(one)
	})
}

// Approve approves the definitions of some tools of the last list, or of all; it returns their names.
func (r *Record) Approve(names ...string) (approved []string, err error) {
	for _, name := range names {
		if !r.holds(name) {
			return nil, fmt.Errorf("no tool %.100q is held back", name)
		}
	}
	var left []Held
	for _, h := range r.Held {
		if len(names) > 0 && !slices.Contains(names, h.Name) {
			left = append(left, h)
			continue
		}
		now := definition(r.Listed, h.Name)
		if at := slices.IndexFunc(r.Approved, func(d json.RawMessage) bool { return nameOf(d) == h.Name }); at >= 0 {
			r.Approved[at] = now
		} else {
			r.Approved = append(r.Approved, now)
		}
		approved = append(approved, h.Name)
	}
	if r.Held = left; len(left) == 0 {
		r.Listed = nil
	}
	return approved, nil
}

// Definitions returns the approved definition of a tool and that of the last list; nil if there is none.
func (r *Record) Definitions(name string) (approved, listed json.RawMessage) {
	return definition(r.Approved, name), definition(r.Listed, name)
}

// Lines returns a definition as lines of indented JSON with its keys in order; none for nil.
func Lines(definition json.RawMessage) []string {
	if definition == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(definition, &v); err != nil {
		return []string{string(definition)}
	}
	text, _ := json.MarshalIndent(v, "  ", "  ") // it was decoded from JSON
	return strings.Split("  "+string(text), "\n")
}

// Differ returns how many lines two texts both begin with, and how many other ones they both end with.
func Differ(before, after []string) (start, end int) {
	for start < min(len(before), len(after)) && before[start] == after[start] {
		start++
	}
	for end < min(len(before), len(after))-start && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	return start, end
}

// ChangedLines returns the lines of two definitions that are not in both: "-" before old ones, "+" before new ones.
func ChangedLines(approved, listed json.RawMessage) (lines []string) {
	before, after := Lines(approved), Lines(listed)
	start, end := Differ(before, after)
	for _, line := range before[start : len(before)-end] {
		lines = append(lines, "- "+line)
	}
	for _, line := range after[start : len(after)-end] {
		lines = append(lines, "+ "+line)
	}
	return lines
}

// compare sets which of the listed tools are held back, and reports whether the record has changed.
func (r *Record) compare(listed []json.RawMessage) (changed bool) {
	before := r.Held
	r.Held, r.Listed = nil, nil
	for _, d := range listed {
		name := nameOf(d)
		switch old := definition(r.Approved, name); {
		case old == nil:
			r.Held = append(r.Held, Held{name, "new"})
		case canonical(old) != canonical(d):
			r.Held = append(r.Held, Held{name, "changed"})
		}
	}
	if len(r.Held) > 0 {
		r.Listed = listed
	}
	return len(before) > 0 || len(r.Held) > 0
}

func definition(all []json.RawMessage, name string) json.RawMessage {
	for _, d := range all {
		if nameOf(d) == name {
			return d
		}
	}
	return nil
}

func nameOf(definition json.RawMessage) string { return memberOf(definition, "name") }

// memberOf returns a member of an object that is a text; "" if it has none.
func memberOf(object json.RawMessage, member string) string {
	var all map[string]json.RawMessage
	var text string
	_ = json.Unmarshal(object, &all) // a definition without a name is not offered
	_ = json.Unmarshal(all[member], &text)
	return text
}

// canonical returns a definition with its keys in order.
func canonical(definition json.RawMessage) string {
	v := jsontext.Value(slices.Clone(definition))
	if v.Canonicalize() != nil {
		return string(definition)
	}
	return string(v)
}
