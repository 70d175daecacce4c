package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// The keys of a configuration file that describe other servers: ours, whose entries are checked, and that of clients,
// whose entries may have keys of the client.
const (
	upstreamsKey = "upstreams"
	clientsKey   = "mcpServers"

	tokenRootsKey = "roots" // directories that access tokens grant
)

// otherClientsKeys are what VS Code, Zed and Codex write in place of mcpServers.
var otherClientsKeys = []string{"servers", "context_servers", "mcp_servers"}

// serverEntry is one server of a configuration file.
type serverEntry struct {
	Command     word            `json:"command"`
	Args        []word          `json:"args"`
	Dir         word            `json:"cwd"`
	Env         map[string]word `json:"env"`      // values, with ${VAR}
	KeepEnv     []word          `json:"keep-env"` // names of our own variables
	URL         word            `json:"url"`
	Headers     map[string]word `json:"headers"`
	Allow       []word          `json:"allow"` // patterns of tools
	Deny        []word          `json:"deny"`
	NoReference []word          `json:"no-reference"`
	Timeout     word            `json:"timeout"` // of a call
	Defer       word            `json:"defer"`   // tokens
}

// Defer is how many tokens of the definitions of a server's tools are listed whole; 0: all are.
type Defer int

// Decode is part of kong's interface: the flag alone stands for 1,000. A next word that is a number is its value.
func (d *Defer) Decode(ctx *kong.DecodeContext) error {
	text, next := "1000", ctx.Scan.Peek()
	if _, err := strconv.Atoi(fmt.Sprint(next.Value)); next.Type == kong.FlagValueToken || err == nil {
		text = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	n, err := strconv.Atoi(text)
	if *d = Defer(n); err != nil || n < 0 {
		return fmt.Errorf("%.40q is no number of tokens, such as 1000", text)
	}
	return nil
}

// IsBool is part of kong's interface: the flag needs no value.
func (*Defer) IsBool() bool { return true }

// word is a text, or a number or true or false as it is written.
type word string

// UnmarshalJSON is part of the interface of package json.
func (w *word) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, (*string)(w))
	}
	if strings.ContainsRune("{[n", rune(text[0])) {
		return fmt.Errorf("a text is wanted, not %.40s", text)
	}
	*w = word(text)
	return nil
}

func texts(words []word) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

// clientEntry has further keys that clients write.
type clientEntry struct {
	serverEntry
	ServerURL word            `json:"serverUrl"` // Windsurf
	HTTPURL   word            `json:"httpUrl"`   // Gemini CLI
	Disabled  word            `json:"disabled"`
	Enabled   word            `json:"enabled"`
	Timeout   json.RawMessage `json:"timeout"` // ignored: its unit differs between clients
}

// addServers adds the servers of a section of the configuration file.
func (r *FileResolver) addServers(path, kind string, section *yaml.Node) error {
	if section.Kind != yaml.MappingNode && !isNull(section) {
		return at(path, section, fmt.Errorf("%s has an entry for each server, by its name", kind))
	}
	for _, e := range entriesOf(section) {
		o, err := serverOf(kind, e.key.Value, e.value)
		if err != nil {
			return at(path, e.key, err)
		}
		if slices.ContainsFunc(r.Servers, func(other upstream.Options) bool { return o.Name == other.Name }) {
			return at(path, e.key, fmt.Errorf("two servers have the name %s", o.Name))
		}
		if o.Name == "" {
			continue
		}
		for _, member := range entriesOf(e.value) {
			if member.key.Value == "envFile" && !isNull(member.value) {
				return at(path, member.key, fmt.Errorf("%s has an envFile, whose variables a server gets only "+
					"by name: give them in env, or name those of this program's environment in keep-env", o.Name))
			}
		}
		r.Servers = append(r.Servers, o)
	}
	return nil
}

// entry is a member of a mapping.
type entry struct{ key, value *yaml.Node }

// entriesOf returns the entries of a mapping; none of another node.
func entriesOf(n *yaml.Node) (all []entry) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		all = append(all, entry{n.Content[i], n.Content[i+1]})
	}
	return all
}

// nodesIn returns a node and all below it, in their order.
func nodesIn(n *yaml.Node) []*yaml.Node {
	all := []*yaml.Node{n}
	for _, c := range n.Content {
		all = append(all, nodesIn(c)...)
	}
	return all
}

// duplicateIn returns the first key that a mapping at or below a node has twice; nil if there is none.
func duplicateIn(n *yaml.Node) *yaml.Node {
	for _, one := range nodesIn(n) {
		seen := map[string]bool{}
		for _, e := range entriesOf(one) {
			if seen[e.key.Value] {
				return e.key
			}
			seen[e.key.Value] = true
		}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// valueOf returns the value of a YAML node in the types of package json. Keys and numbers are strings, as they are
// written: it tags them so.
func valueOf(n *yaml.Node) (v any, err error) {
	for _, one := range nodesIn(n) {
		if one.Kind == yaml.AliasNode {
			return nil, errAlias
		}
		for _, e := range entriesOf(one) {
			e.key.Tag = "!!str"
		}
		if one.Kind == yaml.ScalarNode && !isNull(one) && one.ShortTag() != "!!bool" {
			one.Tag = "!!str"
		}
	}
	err = n.Decode(&v)
	return v, err
}

// serverOf returns the options of one server. Their name is "" if the server is disabled.
func serverOf(kind, server string, n *yaml.Node) (o upstream.Options, err error) {
	v, err := valueOf(n)
	if err != nil {
		return o, fmt.Errorf("%.60s: %w", server, err)
	}
	all, _ := v.(map[string]any)
	for _, part := range []string{"env", "headers"} {
		values, _ := all[part].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if values[name] == nil {
				return o, fmt.Errorf("%.60s: %s: %s is null: give it a text, or remove it", server, part, name)
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil && kind == clientsKey }) // as if it were not there
	text, err := json.Marshal(v)
	if err != nil {
		return o, err
	}
	var e serverEntry
	d := json.NewDecoder(bytes.NewReader(text))
	if kind == upstreamsKey {
		d.DisallowUnknownFields()
		err = d.Decode(&e)
	} else {
		var c clientEntry
		err = d.Decode(&c)
		if e = c.serverEntry; c.Disabled == "true" || c.Enabled == "false" {
			return o, err
		}
		for _, url := range []word{c.ServerURL, c.HTTPURL} {
			if url != "" {
				e.URL = url
			}
		}
	}
	if err == nil {
		o, err = e.options()
	}
	if err != nil && (all["oauth"] != nil || all["auth"] != nil) {
		err = errors.New("a log-in by OAuth is not supported: give the token as a header, Authorization: Bearer ${TOKEN}")
	}
	if err != nil {
		return o, fmt.Errorf("%.60s: %s", server, strings.TrimPrefix(err.Error(), "json: "))
	}
	if o.Name = ServerName(server); o.Name == "" {
		return o, fmt.Errorf("the name %.60q has no letter or digit", server)
	}
	return o, nil
}

// options returns the entry as options.
func (e serverEntry) options() (o upstream.Options, err error) {
	switch {
	case (e.Command == "") == (e.URL == ""):
		return o, errors.New("a server has either a command or a url")
	case e.URL != "" && len(e.Args)+len(e.Env)+len(e.KeepEnv) > 0:
		return o, errors.New("a server at a url has no args and no variables: it has headers")
	case e.Command != "" && len(e.Headers) > 0:
		return o, errors.New("a command has no headers: it has variables, env and keep-env")
	}
	if o.Timeout, err = time.ParseDuration(string(e.Timeout)); e.Timeout != "" && (err != nil || o.Timeout <= 0) {
		return o, fmt.Errorf("timeout: %.40q is no time, such as 5m", e.Timeout)
	}
	if o.Defer, err = strconv.Atoi(cmp.Or(string(e.Defer), "0")); err != nil || o.Defer < 0 {
		return o, fmt.Errorf("defer: %.40q is no number of tokens, such as 1000", e.Defer)
	}
	for _, pattern := range texts(slices.Concat(e.Allow, e.Deny)) {
		if _, err := path.Match(pattern, ""); err != nil {
			return o, fmt.Errorf("%.60q is no pattern of tools", pattern)
		}
	}
	o.Allow, o.Deny, o.NoReference = texts(e.Allow), texts(e.Deny), texts(e.NoReference)
	if e.URL != "" {
		o.Remote = &mcpclient.Endpoint{Headers: map[string]string{}}
		if o.Remote.URL, err = Expanded(string(e.URL)); err != nil {
			return o, err
		}
		for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
			if o.Remote.Headers[name], err = Expanded(string(e.Headers[name])); err != nil {
				return o, fmt.Errorf("headers: %s: %w", name, err)
			}
		}
		return o, nil
	}
	o.Written = append([]string{string(e.Command)}, texts(e.Args)...)
	o.Command.Env = texts(e.KeepEnv)
	for i, written := range o.Written {
		word, err := Expanded(written)
		if err != nil {
			return o, fmt.Errorf("%s: %w", map[bool]string{true: "command", false: "args"}[i == 0], err)
		}
		o.Command.Args = append(o.Command.Args, word)
	}
	for _, words := range [][]string{o.Written, o.Command.Args} {
		if strings.HasPrefix(words[0], "~") {
			words[0] = ExpandPath(words[0])
		}
	}
	if o.Command.Dir, err = Expanded(string(e.Dir)); err != nil {
		return o, fmt.Errorf("cwd: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		value, err := Expanded(string(e.Env[name]))
		if err != nil {
			return o, fmt.Errorf("env: %s: %w", name, err)
		}
		o.Command.Set = append(o.Command.Set, name+"="+value)
	}
	return o, nil
}

// variable matches ${NAME} and ${NAME:-DEFAULT}.
var variable = regexp.MustCompile(`\$\{(?:env:)?(\w+)(:-[^}]*)?\}`)

// Expanded returns a text with the values of the variables that it names as ${NAME}.
func Expanded(text string) (string, error) {
	if at := strings.Index(text, "${input:"); at >= 0 {
		return "", fmt.Errorf("%.60s stands for what the client asks its user: it is not known here", text[at:])
	}
	if rest := variable.ReplaceAllString(text, ""); strings.Contains(rest, "${") {
		at := strings.Index(rest, "${")
		return "", fmt.Errorf("%.60s is not known here: a variable is ${NAME} or ${NAME:-DEFAULT}", rest[at:])
	}
	var missing string
	out := variable.ReplaceAllStringFunc(text, func(v string) string {
		m := variable.FindStringSubmatch(v)
		value, set := os.LookupEnv(m[1])
		switch {
		case set:
			return value
		case m[2] != "":
			return m[2][2:]
		}
		missing = m[1]
		return ""
	})
	if missing != "" {
		return "", fmt.Errorf("the variable %s is not set", missing)
	}
	return out, nil
}

// noName matches characters that the name of a server cannot have.
var noName = regexp.MustCompile(`[^a-z0-9_-]+`)

// ServerName returns a text as the name of a server.
func ServerName(text string) string {
	return strings.Trim(noName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}
