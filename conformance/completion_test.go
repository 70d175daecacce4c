package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/peer"
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
		"mcp-funnel c":                          {"call", "completion"},
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
