package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestFrozen compares what programs and people rely on with testdata/frozen: the command line, settings, exit codes,
// JSON keys, files of the store and the fixed phrases of answers. A rename inside the code or a new wording of help
// changes none of it. Tool arguments and whole answers are in testdata/wire; help texts are in docs/SETTINGS.md.
//
// go test ./conformance -run TestFrozen -update rewrites the files.
func TestFrozen(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	for name, collect := range map[string]func(*testing.T) []string{
		"commandline": frozenCommandLine,
		"answers":     frozenAnswers,
		"source":      func(t *testing.T) []string { return frozenSource(t, "..") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "frozen", name+".golden")
			got := collect(t)
			if *update {
				write(t, path, strings.Join(got, "\n")+"\n")
				return
			}
			want := expect.Value(os.ReadFile(path))(t)
			expect.Same(t, got, lines(string(want)), "%s has changed; if it should have, run with -update", path)
		})
	}
}

// frozenProgram runs the binary in one directory, with one store.
type frozenProgram struct {
	t   *testing.T
	dir string
	env []string
}

func newFrozenProgram(t *testing.T) *frozenProgram {
	t.Helper()
	p := &frozenProgram{t: t, dir: plainDir(t), env: environment(t)}
	p.env = append(p.env, "MCP_FUNNEL_STORE="+filepath.Join(p.dir, "store"), "MCP_FUNNEL_MIN_FREE=0")
	return p
}

// run returns what the command prints on standard output, and its exit code.
func (p *frozenProgram) run(stdin string, env []string, words ...string) (string, int) {
	p.t.Helper()
	l := launch{dir: p.dir, env: append(slices.Clone(p.env), env...), stdin: strings.NewReader(stdin), flags: words}
	out, _, code := l.output(p.t)
	return out, code
}

var (
	helpCommand = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)*)(?: \(([a-z]+)\))?(?:  .*)?$`)
	helpFlag    = regexp.MustCompile(`^ {2}(?: {4}|(-\w), )?--(\[no-\])?([\w-]+)(=\S+)?(?: +(.*))?$`)
	helpDefault = regexp.MustCompile(`Default: (\S+)\.$`)
)

// helpOf reads --help of a command: its usage, its subcommands with their aliases, its flags with their defaults.
func helpOf(text string) (usage string, commands map[string]string, flags map[string]frozenFlag) {
	usage, rest, _ := strings.Cut(text, "\n")
	commands, flags = map[string]string{}, map[string]frozenFlag{}
	if _, list, found := strings.Cut(rest, "\nCommands:\n"); found {
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range helpCommand.FindAllStringSubmatch(list, -1) {
			commands[m[1]] = m[2]
		}
	}
	last := ""
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		if m := helpFlag.FindStringSubmatch(line); m != nil {
			last = m[3]
			many := strings.HasSuffix(m[4], ",...")
			flags[last] = frozenFlag{
				short:   m[1],
				negated: m[2] != "",
				value:   m[4] != "",
				many:    many,
				text:    m[5],
			}
		} else if f, open := flags[last]; open && strings.HasPrefix(line, "         ") {
			f.text += " " + strings.TrimSpace(line)
			flags[last] = f
		} else {
			last = ""
		}
	}
	return usage, commands, flags
}

// frozenFlag is a flag as --help shows it.
type frozenFlag struct {
	short, text          string
	negated, value, many bool
}

func (f frozenFlag) String() string {
	var parts []string
	if f.short != "" {
		parts = append(parts, "short "+f.short)
	}
	switch {
	case f.negated:
		parts = append(parts, "switch with --no-")
	case !f.value:
		parts = append(parts, "switch")
	case f.many:
		parts = append(parts, "values, separated by commas")
	default:
		parts = append(parts, "value")
	}
	if m := helpDefault.FindStringSubmatch(f.text); m != nil {
		parts = append(parts, "default "+m[1])
	}
	return strings.Join(parts, ", ")
}

// hiddenSettings are accepted, but --help does not show them.
var hiddenSettings = map[string]frozenFlag{
	"ask-timeout": {value: true, text: "Default: 20s."},
}

// frozenCommandLine lists the commands with their usage, their aliases and their own flags; and of each setting its
// default, its valid words, its variable and its key of the configuration file, each tried.
func frozenCommandLine(t *testing.T) []string {
	p := newFrozenProgram(t)
	text, _ := p.run("", nil, "--help")
	_, commands, settings := helpOf(text)
	if len(commands) < 8 || len(settings) < 40 {
		t.Fatalf("--help was not understood: %d commands, %d flags\n%s", len(commands), len(settings), text)
	}
	for name, flag := range hiddenSettings {
		if _, shown := settings[name]; shown {
			t.Errorf("--help shows --%s", name)
		}
		if words, _ := p.run("", nil, "__complete", "mcp-funnel --"+name); words != "" {
			t.Errorf("completion shows --%s: %s", name, words)
		}
		value := helpDefault.FindStringSubmatch(flag.text)[1]
		if _, code := p.run("", nil, "--"+name, value, "tokens"); code != 0 {
			t.Errorf("--%s %s: code %d", name, value, code)
		}
		if _, code := p.run("", nil, "--"+name, "0", "tokens"); code == 0 {
			t.Errorf("--%s 0 is accepted", name)
		}
		settings[name] = flag
	}
	names := append(slices.Sorted(maps.Keys(commands)), "__complete")
	out := append([]string{"# commands and their own flags"}, frozenCommands(p, names, commands)...)
	out = append(out, "", "# settings: flag, variable and key of the configuration file")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, "--"+name+": "+settings[name].String()+frozenSetting(p, name, settings[name]))
	}
	return out
}

func frozenCommands(p *frozenProgram, names []string, aliases map[string]string) (out []string) {
	for _, name := range names {
		if name == "serve" {
			continue // it is the default command: its help is the program's
		}
		text, code := p.run("", nil, append(strings.Fields(name), "--help")...)
		usage, below, flags := helpOf(text)
		if code != 0 || !strings.HasPrefix(usage, "Usage: mcp-funnel "+name) {
			p.t.Errorf("%s --help: code %d, %s", name, code, usage)
		}
		out = append(out, strings.TrimPrefix(usage, "Usage: "))
		if alias := aliases[name]; alias != "" {
			out = append(out, "  alias "+alias)
		}
		for _, flag := range slices.Sorted(maps.Keys(flags)) {
			out = append(out, "  --"+flag+": "+flags[flag].String())
		}
		out = append(out, frozenCommands(p, slices.Sorted(maps.Keys(below)), below)...)
	}
	return out
}

// frozenSetting tries whether a setting has a variable and a key, and whether the key takes a list.
func frozenSetting(p *frozenProgram, name string, flag frozenFlag) string {
	value := "true"
	config := filepath.Join(p.dir, "config.yaml")
	if m := helpDefault.FindStringSubmatch(flag.text); flag.value && m != nil {
		value = m[1]
	} else if flag.value {
		value = map[string]string{
			"config": config, "http": "127.0.0.1:0", "replica": "a", "uncut": "read", "tool-limit": "read.page-tokens=9000",
			"rate-per-identity": "5,10",
		}[name]
		if value == "" {
			value = p.dir
		}
	}
	text := ""
	words, _ := p.run("", nil, "__complete", "mcp-funnel --"+name+" ")
	if flag.value && words != "" && !strings.Contains(words, "/") {
		text += ", one of " + strings.Join(strings.Fields(words), " ")
	}
	variable := "MCP_FUNNEL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	set, key, list := variable+"="+value, name+": "+value+"\n", name+": ["+value+"]\n"
	accepted := func(configured string, env ...string) bool {
		write(p.t, config, configured)
		_, code := p.run("", env, "--config", config, "tokens")
		return code == 0
	}
	both := accepted(key, set) // as most are: what is unknown is refused
	if both || accepted("", set) {
		text += ", " + variable
	}
	if both || accepted(key) {
		text += ", key " + name
	}
	if accepted(list) {
		text += ", key takes a list"
	}
	return text
}

// frozenPhrase finds the lines of an answer that begin with a fixed phrase, and which of their text is fixed.
var frozenPhrase = []struct {
	line *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`^(LARGE OUTPUT DETECTED|SAVED as|saved to)(.*)$`), "$1$2"},
	{regexp.MustCompile(`^(showing .*?)(; next: \w+ )?(\{.*)?$`), "$1$2"},
	{regexp.MustCompile(`^(--- .* ---)$`), "$1"},
	{regexp.MustCompile(`^(total|shape|note|next|error): .*$`), "$1: …"},
	{regexp.MustCompile(`^(mcp-funnel: kept as .*)$`), "$1"},
}

// frozenVolatile is what differs from run to run within them.
var frozenVolatile = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`obs:[0-9a-z]{12}\b`), "obs:ID"},
	{regexp.MustCompile(`not kept \(.*\)$`), "not kept (CAUSE)"},
	{regexp.MustCompile(`^saved to: .*/observations/`), "saved to: STORE/observations/"},
	{regexp.MustCompile(`_\d{8}T\d{6}_[0-9a-z]{12}\.`), "_TIME_ID."},
	{regexp.MustCompile(`\b\d+\b`), "N"},
}

// frozenPhrases are the fixed phrases of an answer, each once and in order.
func frozenPhrases(answer string) (out []string) {
	for _, line := range lines(answer) {
		for _, p := range frozenPhrase {
			if !p.line.MatchString(line) {
				continue
			}
			line = p.line.ReplaceAllString(line, p.as)
			for _, v := range frozenVolatile {
				line = v.what.ReplaceAllString(line, v.as)
			}
			if !slices.Contains(out, line) {
				out = append(out, line)
			}
			break
		}
	}
	return out
}

// keyPaths are the keys of a JSON value, in order, each with the type of what it holds: seen.lines number.
func keyPaths(value any, at string) []string {
	switch v := value.(type) {
	case map[string]any:
		var out []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, keyPaths(v[key], strings.TrimPrefix(at+"."+key, "."))...)
		}
		if len(out) == 0 {
			return []string{at + " object"}
		}
		return out
	case []any:
		var out []string
		for _, element := range v {
			out = append(out, keyPaths(element, at+"[]")...)
		}
		if len(out) == 0 {
			return []string{at + " array"}
		}
		slices.Sort(out)
		return slices.Compact(out)
	case string:
		return []string{at + " string"}
	case float64:
		return []string{at + " number"}
	}
	return []string{fmt.Sprintf("%s %T", at, value)}
}

// frozenKeys are the key paths of the first JSON value of a text, indented.
func frozenKeys(t *testing.T, text string) []string {
	t.Helper()
	var value any
	expect.Must(t, json.NewDecoder(strings.NewReader(text)).Decode(&value), "%.200s", text)
	out := keyPaths(value, "")
	for i := range out {
		out[i] = "  " + out[i]
	}
	return out
}
