package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// Limits of a configuration file.
const (
	maxConfig = 1 << 20 // bytes
	maxDepth  = 32      // open brackets
)

// FileResolver gives kong the values of the configuration file, whose keys are the names of flags. Flags and
// environment variables take precedence.
type FileResolver struct {
	Servers []upstream.Options // the other servers of the file, in its order
	values  map[string]any     // nil: the file has not been read yet

	TokenRoots map[string]map[string][]string // directories of access tokens, by claim and value; nil: no key roots
}

// ConfigError is an error in the file itself. kong puts the name of the setting that it was resolving before every
// error, which would mislead here; the type lets run remove that name.
type ConfigError struct{ error }

// Unwrap returns the error without the name.
func (e ConfigError) Unwrap() error { return e.error }

// configPath returns --config or MCP_FUNNEL_CONFIG. No default place is searched: a file in a root must not
// configure the server.
func configPath(k *kong.Context) string {
	for _, p := range k.Path {
		for _, f := range p.Flags {
			if f.Name == "config" {
				if s, ok := k.FlagValue(f).(string); ok && s != "" {
					return ExpandPath(s)
				}
			}
		}
	}
	if s := os.Getenv("MCP_FUNNEL_CONFIG"); s != "" {
		return ExpandPath(s)
	}
	return ""
}

// Validate is part of kong's interface; the file is read and checked when the first flag is resolved.
func (r *FileResolver) Validate(app *kong.Application) error { return nil }

// Resolve returns the value of a flag that the command line does not set; nil if neither a variable nor the file does.
func (r *FileResolver) Resolve(k *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "config" {
		return nil, nil
	}
	if r.values == nil {
		r.values = map[string]any{}
		if err := unknownVariable(os.Environ(), k.Model); err != nil && !withoutSettings(k) {
			return nil, ConfigError{err}
		}
		if path := configPath(k); path != "" {
			if err := r.read(path, settingNames(k.Model)); err != nil {
				return nil, ConfigError{err}
			}
			for _, key := range []string{"root", "allow-write"} {
				r.values[key] = besideFile(r.values[key], path)
			}
		}
	}
	for _, env := range flag.Envs {
		text, set := os.LookupEnv(env)
		if !set {
			continue
		}
		if flag.Name != "root" || text == "" {
			return nil, nil
		}
		var dirs []any // MCP_FUNNEL_ROOT separates directories as PATH does
		for _, dir := range filepath.SplitList(text) {
			dirs = append(dirs, dir)
		}
		return dirs, nil
	}
	return r.values[flag.Name], nil
}

// besideFile returns the directories of the key root or allow-write. Relative ones are below the directory of the
// configuration file, because a client may start the server anywhere.
func besideFile(root any, file string) any {
	switch v := root.(type) {
	case string:
		if v == "" || filepath.IsAbs(v) || strings.HasPrefix(v, "~") || strings.HasPrefix(v, "${") {
			return v
		}
		return filepath.Join(filepath.Dir(file), v)
	case []any:
		for i := range v {
			v[i] = besideFile(v[i], file)
		}
	}
	return root
}

// withoutSettings reports whether a command uses no settings, or completes a line for a shell, which shows no errors.
func withoutSettings(k *kong.Context) bool {
	command, _, _ := strings.Cut(k.Command(), " ")
	return slices.Contains([]string{"version", "completion", "__complete"}, command)
}

// variablePrefix starts the names of this program's environment variables.
const variablePrefix = "MCP_FUNNEL_"

// TokenVariable names the environment variable of the token. No flag takes a token: other users can read command lines.
const TokenVariable = "MCP_FUNNEL_TOKEN"

// unknownVariable returns an error for a variable with this program's prefix that is no setting, most likely a
// misspelled one, which would leave a setting at its default unnoticed.
func unknownVariable(environment []string, app *kong.Application) error {
	known := map[string]bool{TokenVariable: true}
	for _, f := range app.Flags {
		for _, name := range f.Envs {
			known[name] = true
		}
	}
	for _, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, variablePrefix) || known[name] {
			continue
		}
		if meant := content.Nearest(name, slices.Sorted(maps.Keys(known))); meant != "" {
			return fmt.Errorf("unknown variable %.60s; did you mean %s?", name, meant)
		}
		return fmt.Errorf("unknown variable %.60s: no setting has that name; mcp-funnel serve --help lists them", name)
	}
	return nil
}

// read reads a configuration file; every error names file, line and column.
func (r *FileResolver) read(path string, known map[string]*kong.Flag) error {
	text, err := configText(path)
	if err != nil {
		return err
	}
	return r.parse(path, text, known)
}

// configText returns the text of a configuration file, as YAML: comments and trailing commas of JSON, which clients'
// files have, become spaces, so that positions stay.
func configText(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|osfile.Nonblock, 0) // a FIFO would make us wait for a writer
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("--config %s: a configuration file is a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfig {
		return nil, fmt.Errorf("%s: over 1 MiB; a configuration file is smaller", path)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	depth := 0
	for i, c := range text { // the parser of JSON needs stack for each level
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxDepth {
			return nil, fmt.Errorf("%s:%d:1: over %d levels of brackets; a configuration file has a few", path,
				bytes.Count(text[:i], []byte("\n"))+1, maxDepth)
		}
	}
	if plain, err := hujson.Standardize(text); err == nil {
		return plain, nil
	}
	return text, nil
}

func settingNames(app *kong.Application) map[string]*kong.Flag {
	names := map[string]*kong.Flag{}
	for _, f := range app.Flags {
		if f.Name != "help" && f.Name != "config" && f.Name != "version" {
			names[f.Name] = f
		}
	}
	return names
}

func (r *FileResolver) parse(path string, text []byte, known map[string]*kong.Flag) error {
	r.values = map[string]any{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for i := 0; ; i++ {
		var doc yaml.Node
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return invalid(path, text, err)
		}
		if len(doc.Content) == 0 || isNull(doc.Content[0]) {
			continue
		}
		body := doc.Content[0]
		if body.Kind != yaml.MappingNode {
			return at(path, body, errors.New("a configuration file is a list of `name: value`"))
		}
		if i > 0 && len(r.values) > 0 {
			return at(path, body, errors.New("a second document; a configuration file is one"))
		}
		if twice := duplicateIn(body); twice != nil {
			return at(path, twice, fmt.Errorf("duplicate key %q; remove one", content.ClipBytes(twice.Value, 60)))
		}
		for _, e := range entriesOf(body) {
			name := e.key.Value
			if comment := commentIn(e.key); comment != nil {
				return commented(path, text, comment)
			}
			if name == upstreamsKey || name == clientsKey || name == tokenRootsKey {
				if comment := commentIn(e.value); comment != nil {
					return commented(path, text, comment)
				}
				add := r.addServers
				if name == tokenRootsKey {
					add = r.setTokenRoots
				}
				if err := add(path, name, e.value); err != nil {
					return err
				}
				continue
			}
			flag, ok := known[name]
			if !ok {
				if slices.Contains(otherClientsKeys, name) {
					return at(path, e.key,
						fmt.Errorf("unknown key %q; write %s in its place for the servers of a client", name, clientsKey))
				}
				keys := append(slices.Sorted(maps.Keys(known)), upstreamsKey, clientsKey, tokenRootsKey)
				if meant := content.Nearest(strings.ReplaceAll(strings.ToLower(name), "_", "-"), keys); meant != "" {
					return at(path, e.key, fmt.Errorf("unknown key %.60q; did you mean %s?", name, meant))
				}
				return at(path, e.key,
					fmt.Errorf("unknown key %.60q; valid keys: %s", name, strings.Join(keys, ", ")))
			}
			v, err := scalar(e.value, flag)
			if err == nil {
				err = checkValue(v, flag)
			}
			if err != nil {
				return at(path, e.value, fmt.Errorf("%s: %w", name, err))
			}
			r.values[name] = v
		}
	}
}

// setTokenRoots reads directories by claim and value. Relative ones are below the directory of the file.
func (r *FileResolver) setTokenRoots(path, _ string, n *yaml.Node) error {
	v, err := valueOf(n)
	if err == nil {
		text, _ := json.Marshal(v) // plain values
		err = json.Unmarshal(text, &r.TokenRoots)
	}
	if err != nil || r.TokenRoots == nil {
		return at(path, n, errors.New("roots has lists of directories by claim and value of an access token, such as "+
			"`sub: {anna: [/srv/anna]}`; the directories of this server are root"))
	}
	for _, byValue := range r.TokenRoots {
		for _, dirs := range byValue {
			for i, dir := range dirs {
				dirs[i] = ExpandPath(besideFile(dir, path).(string))
			}
		}
	}
	return nil
}

// errAlias is returned for an alias of YAML.
var errAlias = errors.New("an alias is not understood here; write the value")

// scalar returns a value as the text that a flag would take, or a list if the flag is repeatable.
func scalar(n *yaml.Node, flag *kong.Flag) (any, error) {
	v, err := valueOf(n)
	switch list := v.(type) {
	case []any:
		switch {
		case !flag.IsSlice():
			return nil, errors.New("takes one value, not a list")
		case len(list) == 0:
			return nil, errors.New("an empty list; leave the key out")
		}
		for i, item := range n.Content {
			if list[i], err = scalar(item, flag); err != nil {
				return nil, err
			}
		}
	case string:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			return strings.TrimRight(list, "\n"), nil
		}
	case bool:
	default:
		return nil, cmp.Or(err, errors.New("takes a text, a number or true and false"))
	}
	return v, err
}

// checkValue decodes a value as kong will, because kong's own error would name neither the file nor the line.
func checkValue(v any, flag *kong.Flag) error {
	target := reflect.New(flag.Target.Type()).Elem()
	err := flag.Mapper.Decode(
		&kong.DecodeContext{Value: flag.Value, Scan: kong.Scan().PushTyped(v, kong.FlagValueToken)}, target,
	)
	if err != nil {
		return err
	}
	if valid := flag.EnumSlice(); flag.Enum != "" && !slices.Contains(valid, fmt.Sprint(v)) {
		return fmt.Errorf("%.60q is none of %s", fmt.Sprint(v), strings.Join(valid, ", "))
	}
	return nil
}

func at(path string, n *yaml.Node, err error) error {
	return fmt.Errorf("%s:%d:%d: %w", path, n.Line, n.Column, err)
}
