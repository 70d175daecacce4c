package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// tab returns the completions that bash offers for an incomplete line, by calling our function as bash does.
const tab = `source <(mcp-funnel completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
IFS=' ' read -r -a COMP_WORDS <<<"$1"
_mcp_funnel mcp-funnel
printf '%s\n' "${COMPREPLY[@]}"
`

func TestBashCompletes(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	bash, bin := peer.Find(t, "bash"), filepath.Dir(binary(t))
	env := append(environment(t), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	run := func(stdin string, name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Env, c.Dir, c.Stdin = env, t.TempDir(), strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	offered := func(line string) []string { return strings.Fields(run("", bash, "-c", tab, "bash", line)) }

	id := strings.TrimPrefix(shownID.FindString(run("kept", binary(t), "keep", "--name", "my tests")), "obs:")
	for line, want := range map[string][]string{
		"mcp-funnel c":                          {"call", "context", "compact", "check", "chat", "completion"},
		"mcp-funnel call ":                      {"search", "find", "read", "grep", "jq", "slice"},
		"mcp-funnel call s":                     {"search", "slice"},
		"mcp-funnel call slice ":                {"at=", "bytes=", "chars=", "lines=", "records=", "source="},
		"mcp-funnel call slice source=a ":       {"at=", "bytes=", "chars=", "lines=", "records="},
		"mcp-funnel call slice a ":              {"at=", "bytes=", "chars=", "lines=", "records="},
		"mcp-funnel call grep 'pattern=a b' in": {"invert="},
		// bash replaces only the text after the =
		"mcp-funnel call search show=":                {"matches", "files", "counts", "dirs", "groups"},
		"mcp-funnel call grep source=obs:":            {id},
		"mcp-funnel call grep source=":                nil, // bash then completes names of files
		"mcp-funnel observations cat ":                {id},
		"mcp-funnel obs show obs:" + id[:3]:           {id},
		"mcp-funnel obs rm " + id[:3]:                 {id},
		"mcp-funnel --store /nowhere/at/all obs cat ": nil,
		"mcp-funnel --log-format ":                    {"text", "json"},
		"mcp-funnel --model clau":                     {"claude"},
		"mcp-funnel --model=gem":                      {"gemini"},
		"mcp-funnel keep --na":                        {"--name"},
		"mcp-funnel completion ":                      {"bash", "zsh", "fish"},
		"mcp-funnel call nosuch ":                     nil,
	} {
		if got := offered(line); !slices.Equal(got, want) {
			t.Errorf("%q<tab>: %q, want %q", line, got, want)
		}
	}
	if _, err := os.Stat("/nowhere"); err == nil {
		t.Error("a store was made by completing")
	}
}

// askers print the candidates that a shell is given for "mcp-funnel obs cat " and for "mcp-funnel call read path=obs:",
// one on a line with its description, in the order in which the shell keeps them.
var askers = map[string]string{
	// 63: after a second tab, bash lists candidates
	"bash": `source <(mcp-funnel completion bash)
compopt() { [[ $* == "-o nosort" ]] && sorted=no; }
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:' COMP_TYPE=63
shopt -s nullglob
for COMP_LINE in "mcp-funnel obs cat " "mcp-funnel call read path=obs:"; do
  COMP_POINT=${#COMP_LINE} sorted=yes
  _mcp_funnel mcp-funnel
  [[ $sorted == no ]] || COMPREPLY=("sorted by the shell")
  printf '%s\n' "${COMPREPLY[@]}"
done
`,
	// compadd -V does not sort a group
	"zsh": `compdef() { }
source <(mcp-funnel completion zsh)
compadd() {
  local array=${@[${@[(i)-d]}+1]}
  [[ $1 == -V ]] && print -rl -- "${(@P)array}"
  print -r -- inserted ${@[${@[(i)--]}+1,-1]} >&2
}
words=(mcp-funnel obs cat '') CURRENT=4
_mcp-funnel
words=(mcp-funnel call read path=obs:) CURRENT=4
_mcp-funnel
`,
	"fish": `mcp-funnel completion fish | source
complete -C "mcp-funnel obs cat "
complete -C "mcp-funnel call read path=obs:"
`,
}

// Each shell lists observations newest first, each with its tool, kind, size, age and name.
func TestShellsDescribeObservations(t *testing.T) {
	drivesOnly(t)
	env := append(environment(t), "PATH="+filepath.Dir(binary(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	run := func(stdin string, name string, args ...string) (string, string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		var said strings.Builder
		c.Env, c.Dir, c.Stdin, c.Stderr = env, t.TempDir(), strings.NewReader(stdin), &said
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, said.String())
		}
		return string(out), said.String()
	}
	var want []string // newest first
	for _, k := range []struct{ text, name, about string }{
		{"a line\n", "*", "keep, text, 7 bytes, AGE ago: *"},
		{"{\"a\":1}\n{\"a\":2}\n", "two", "keep, ndjson, 16 bytes, AGE ago: two"},
		{strings.Repeat("x y z\n", 300), "", "keep, text, 1.8 KiB, AGE ago"},
	} {
		out, _ := run(k.text, binary(t), "keep", "--json", "--name", k.name)
		_, id, _ := strings.Cut(out, `"observation_id": "`)
		id, _, _ = strings.Cut(id, `"`)
		want = append([]string{id + " " + k.about}, want...)
	}
	_, _ = run("", binary(t), "observations", "pin", want[2][:12])
	want[2] = strings.Replace(want[2], "ago: *", "ago: [pinned] *", 1)
	age := regexp.MustCompile(`\d+[smh] ago`)
	for shell, script := range askers {
		t.Run(shell, func(t *testing.T) {
			out, said := run("", peer.Find(t, shell), "-c", script)
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(age.ReplaceAllString(out, "AGE ago")), "\n") {
				line = strings.TrimPrefix(line, "path=obs:")
				got = append(got, strings.Join(strings.Fields(strings.Replace(line, "  # ", " ", 1)), " "))
			}
			if !slices.Equal(got, append(slices.Clone(want), want...)) {
				t.Errorf("listed: %q\nwant twice %q", got, want)
			}
			if shell == "zsh" && !strings.Contains(said, "inserted "+want[0][:12]+" "+want[1][:12]) {
				t.Errorf("inserted: %s", said)
			}
		})
	}
}

// Each shell accepts the syntax of its script.
func TestCompletionScriptsParse(t *testing.T) {
	drivesOnly(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			path := peer.Find(t, shell)
			script, err := exec.CommandContext(t.Context(), binary(t), "completion", shell).Output()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(file, script, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
