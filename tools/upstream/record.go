package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Record is what is remembered of a server between its starts: a file of the store's directory upstreams/. Definitions
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

const (
	recordsDir = "upstreams"
	maxRecord  = 64 << 20
)

// Key names the record of a command.
func Key(command []string) string {
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// Records are the records in a store.
type Records struct{ store string }

// RecordsIn returns the records in the directory of a store.
func RecordsIn(store string) Records { return Records{store} }

func (r Records) open() (*os.Root, error) {
	dir := filepath.Join(r.store, recordsDir)
	failed := os.Mkdir(dir, 0o700) // a store that can only be read may have it
	root, err := osfile.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = failed
	}
	return root, err
}

// Keys returns the names of all records.
func (r Records) Keys() (keys []string, err error) {
	root, err := r.open()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	files, err := fs.ReadDir(root.FS(), ".")
	for _, f := range files {
		if key, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			keys = append(keys, key)
		}
	}
	return keys, err
}

// Load returns a record; nil if there is none.
func (r Records) Load(key string) (*Record, error) {
	root, err := r.open()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) { // nothing was ever written to it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	return r.load(root, key)
}

func (r Records) load(root *os.Root, key string) (*Record, error) {
	text, err := osfile.ReadIn(root, key+".json", maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var one Record
	if err := json.Unmarshal(text, &one); err != nil || one.V != 1 {
		return nil, fmt.Errorf("%s is damaged or of another version: remove it, and the tools of the server are trusted anew",
			filepath.Join(r.store, recordsDir, key+".json"))
	}
	return &one, nil
}

// named returns the names of the approved tools of the record that was last written for a server of a name, whatever
// its command was.
func (r Records) named(server string) (tools []string) {
	root, err := r.open()
	if err != nil {
		return nil // nothing is remembered
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	files, _ := fs.ReadDir(root.FS(), ".")
	var last time.Time
	for _, f := range files {
		key, isRecord := strings.CutSuffix(f.Name(), ".json")
		info, err := f.Info()
		if !isRecord || err != nil || info.ModTime().Before(last) {
			continue
		}
		if one, err := r.load(root, key); err == nil && one != nil && one.Server == server {
			last, tools = info.ModTime(), nil
			for _, d := range one.Approved {
				tools = append(tools, nameOf(d))
			}
		}
	}
	return tools
}

// Change calls change with a record, nil if there is none, and writes what it returns, if that is not nil. No other
// process changes the record meanwhile.
func (r Records) Change(key string, change func(*Record) (*Record, error)) error {
	root, err := r.open()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file is closed
	lock, err := osfile.LockIn(root, key+".lock", lockTime)
	if err != nil {
		return err
	}
	defer osfile.Unlock(lock)
	one, err := r.load(root, key)
	if err == nil {
		one, err = change(one)
	}
	if err != nil || one == nil {
		return err
	}
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return osfile.ReplaceIn(root, key+".json", key+".tmp", text)
}

const lockTime = 5 * time.Second // how long Change waits for another process

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
