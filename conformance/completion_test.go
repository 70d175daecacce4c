package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
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

// printed runs a program that must succeed in a directory of its own, and returns what it printed.
func printed(t testing.TB, l launch) (out, errs string) {
	t.Helper()
	l.dir = t.TempDir()
	out, errs, code := l.output(t)
	expect.MustEqual(t, code, 0, "%q: exit code\n%s%s", l.flags, out, errs)
	return out, errs
}

func TestBashCompletes(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	bash, env := peer.Find(t, "bash"), environment(t) // whose PATH has the binary
	offered := func(line string) []string {
		t.Helper()
		out, _ := printed(t, launch{program: bash, env: env, flags: []string{"-c", tab, "bash", line}})
		return strings.Fields(out)
	}

	keep := []string{"keep", "--name", "my tests"}
	_, kept := printed(t, launch{env: env, stdin: strings.NewReader("kept"), flags: keep})
	id := strings.TrimPrefix(shownID.FindString(kept), "obs:")
	text := expect.Value(os.ReadFile(filepath.Join("testdata", "completion.txt")))(t)
	fill := strings.NewReplacer("$ID", id, "$BEGIN", id[:3])
	for _, line := range lines(string(text)) {
		// bash replaces only the text after a =, and completes names of files where nothing is offered
		line, words, _ := strings.Cut(fill.Replace(line), "<tab>")
		if got, want := offered(line), strings.Fields(words); !slices.Equal(got, want) {
			t.Errorf("%q<tab>: %q, want %q", line, got, want)
		}
	}
	expect.Fails(t, expect.Err(os.Stat("/nowhere")), "", "a store was made by completing")
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
	env := environment(t)
	var want []string // newest first
	for _, k := range []struct{ text, name, about string }{
		{"a line\n", "*", "keep, text, 7 bytes, AGE ago: *"},
		{"{\"a\":1}\n{\"a\":2}\n", "two", "keep, ndjson, 16 bytes, AGE ago: two"},
		{strings.Repeat("x y z\n", 300), "", "keep, text, 1.8 KiB, AGE ago"},
	} {
		out, _ := printed(t, launch{
			env: env, stdin: strings.NewReader(k.text), flags: []string{"keep", "--json", "--name", k.name},
		})
		_, id, _ := strings.Cut(out, `"observation_id": "`)
		id, _, _ = strings.Cut(id, `"`)
		want = append([]string{id + " " + k.about}, want...)
	}
	printed(t, launch{env: env, flags: []string{"observations", "pin", want[2][:12]}})
	want[2] = strings.Replace(want[2], "ago: *", "ago: [pinned] *", 1)
	age := regexp.MustCompile(`\d+[smh] ago`)
	for shell, script := range askers {
		t.Run(shell, func(t *testing.T) {
			out, said := printed(t, launch{program: peer.Find(t, shell), env: env, flags: []string{"-c", script}})
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(age.ReplaceAllString(out, "AGE ago")), "\n") {
				line = strings.TrimPrefix(line, "path=obs:")
				got = append(got, strings.Join(strings.Fields(strings.Replace(line, "  # ", " ", 1)), " "))
			}
			expect.EqualList(t, got, append(slices.Clone(want), want...), "twice %q", want)
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
			script, _ := printed(t, launch{flags: []string{"completion", shell}})
			file := filepath.Join(t.TempDir(), "script")
			write(t, file, script)
			if out, errs := printed(t, launch{program: path, flags: []string{"-n", file}}); out+errs != "" {
				t.Error(out, errs)
			}
		})
	}
}
