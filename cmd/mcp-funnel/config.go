package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// fileResolver gives kong the values of the configuration file. Its keys are
// the names of the settings' flags; flags and environment win over it.
type fileResolver struct {
	path   func(*kong.Context) string
	values map[string]any
}

// configError is what is wrong with the file itself: kong would put the name of
// whatever setting it was looking for before it.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// configPath is --config, or MCP_FUNNEL_CONFIG. No file is looked for by itself, least of all in a root.
func configPath(k *kong.Context) string {
	for _, p := range k.Path {
		for _, f := range p.Flags {
			if f.Name == "config" {
				if s, ok := k.FlagValue(f).(string); ok && s != "" {
					return kong.ExpandPath(s)
				}
			}
		}
	}
	if s := os.Getenv("MCP_FUNNEL_CONFIG"); s != "" {
		return kong.ExpandPath(s)
	}
	return ""
}

// Validate is part of kong's resolver; the file is read, and refused, when the first flag is resolved.
func (r *fileResolver) Validate(app *kong.Application) error { return nil }

func (r *fileResolver) Resolve(k *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "config" {
		return nil, nil
	}
	if r.values == nil {
		r.values = map[string]any{}
		if err := unknownVariable(os.Environ(), k.Model); err != nil && !withoutSettings(k) {
			return nil, configError{err}
		}
		if path := r.path(k); path != "" {
			values, err := readConfig(path, k.Model)
			if err != nil {
				return nil, configError{err}
			}
			r.values = values
		}
	}
	for _, env := range flag.Envs {
		if text, set := os.LookupEnv(env); set && flag.Name == "root" && text != "" {
			return dirList(text), nil
		} else if set {
			return nil, nil
		}
	}
	v, ok := r.values[flag.Name]
	if !ok {
		return nil, nil
	}
	return v, nil
}

// dirList are the directories of MCP_FUNNEL_ROOT, written as those of PATH are.
func dirList(text string) []any {
	var dirs []any
	for _, dir := range filepath.SplitList(text) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// withoutSettings says of a command that it needs none, and that of completion that nobody reads what it complains of.
func withoutSettings(k *kong.Context) bool {
	command, _, _ := strings.Cut(k.Command(), " ")
	return slices.Contains([]string{"version", "completion", "__complete"}, command)
}

// variables is how the names of our variables begin.
const variables = "MCP_FUNNEL_"

// unknownVariable refuses a variable that is named as ours are and is none of them, as the file's keys are: what it was meant
// to set would keep its default, and nobody would know.
func unknownVariable(environment []string, app *kong.Application) error {
	known := map[string]bool{tokenVariable: true}
	for _, f := range app.Flags {
		for _, name := range f.Envs {
			known[name] = true
		}
	}
	for _, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, variables) || known[name] {
			continue
		}
		if meant := tools.Nearest(name, slices.Sorted(maps.Keys(known))); meant != "" {
			return fmt.Errorf("unknown variable %.60s; did you mean %s?", name, meant)
		}
		return fmt.Errorf("unknown variable %.60s: no setting has that name; mcp-funnel serve --help lists them", name)
	}
	return nil
}

// readConfig reads a file of settings; every error names file, line and column.
func readConfig(path string, app *kong.Application) (map[string]any, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0) // a FIFO would make us wait for a writer
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
	return parseConfig(path, text, settingNames(app))
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

func parseConfig(path string, text []byte, known map[string]*kong.Flag) (map[string]any, error) {
	if err := flat(path, text); err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, content.ClipBytes(err.Error(), 500)) // it quotes whole lines
	}
	values := map[string]any{}
	for i, doc := range file.Docs {
		var entries []*ast.MappingValueNode
		switch body := doc.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode:
			continue
		case *ast.MappingNode:
			entries = body.Values
		case *ast.MappingValueNode:
			entries = []*ast.MappingValueNode{body}
		default:
			return nil, at(path, body, errors.New("a configuration file is a list of `name: value`"))
		}
		if i > 0 && len(values) > 0 {
			return nil, at(path, doc.Body, errors.New("a second document; a configuration file is one"))
		}
		for _, e := range entries {
			name := strings.TrimSpace(e.Key.String())
			flag, ok := known[name]
			if !ok {
				keys := sorted(known)
				if meant := tools.Nearest(strings.ReplaceAll(strings.ToLower(name), "_", "-"), keys); meant != "" {
					return nil, at(path, e.Key, fmt.Errorf("unknown key %.60q; did you mean %s?", name, meant))
				}
				return nil, at(path, e.Key, fmt.Errorf("unknown key %.60q; valid keys: %s", name, strings.Join(keys, ", ")))
			}
			v, err := scalar(e.Value, flag)
			if err == nil {
				err = decodes(v, flag)
			}
			if err != nil {
				return nil, at(path, e.Value, fmt.Errorf("%s: %w", name, err))
			}
			values[name] = v
		}
	}
	return values, nil
}

// maxNested is how many signs of nesting a configuration file may have, which needs a list
// or two. The parser takes memory and time that grow with the square of what is nested.
const maxNested = 64

// flat refuses what no configuration needs, before it is parsed.
func flat(path string, text []byte) error {
	nested := 0
	for n, line := range bytes.Split(text, []byte("\n")) {
		nested += bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{"))
		nested += max(0, bytes.Count(line, []byte("- "))-1) + bytes.Count(line, []byte("? "))
		if nested > maxNested || n > 1000 {
			return fmt.Errorf("%s:%d:1: a configuration file is a flat list of `name: value`", path, n+1)
		}
	}
	return nil
}

// scalar takes a value as the text a flag would be given; lists only where the flag is repeatable.
func scalar(n ast.Node, flag *kong.Flag) (any, error) {
	switch v := n.(type) {
	case *ast.SequenceNode:
		if !flag.IsSlice() {
			return nil, errors.New("takes one value, not a list")
		}
		if len(v.Values) == 0 {
			return nil, errors.New("an empty list; leave the key out")
		}
		var list []any
		for _, item := range v.Values {
			s, err := scalar(item, flag)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		return list, nil
	case *ast.StringNode:
		return v.Value, nil
	case *ast.BoolNode:
		return v.Value, nil
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	default:
		return nil, errors.New("takes a text, a number or true and false")
	}
}

// decodes tries a value as kong will take it: kong's own error would name neither the file nor its line.
func decodes(v any, flag *kong.Flag) error {
	target := reflect.New(flag.Target.Type()).Elem()
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.Scan().PushTyped(v, kong.FlagValueToken)}, target)
	if err != nil {
		return err
	}
	if valid := flag.EnumSlice(); flag.Enum != "" && !slices.Contains(valid, fmt.Sprint(v)) {
		return fmt.Errorf("%.60q is none of %s", fmt.Sprint(v), strings.Join(valid, ", "))
	}
	return nil
}

func at(path string, n ast.Node, err error) error {
	p := n.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %w", path, p.Line, p.Column, err)
}

func sorted(known map[string]*kong.Flag) []string {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
