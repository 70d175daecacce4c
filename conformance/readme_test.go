package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
)

const (
	readme      = "../README.md"
	readmeBytes = 10_000 // two screens
)

// pages returns the names of the README and of all pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil || len(docs) < 10 {
		t.Fatalf("docs has %d pages: %v", len(docs), err)
	}
	return append([]string{readme}, docs...)
}

// TestReadmeToolTable holds the table between the two marks to the tools as they are.
func TestReadmeToolTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| tool | arguments (required in bold) | what it does |\n|---|---|---|\n")
	for _, tool := range server.Catalog(server.Parts{}) {
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		expect.Must(t, json.Unmarshal(tool.Schema, &schema))
		var required, optional []string
		for name := range schema.Properties {
			optional = append(optional, "`"+name+"`")
		}
		sort.Strings(optional)
		for _, name := range schema.Required {
			required = append(required, "**`"+name+"`**")
			for i, o := range optional {
				if o == "`"+name+"`" {
					optional = append(optional[:i], optional[i+1:]...)
					break
				}
			}
		}
		first, _, _ := strings.Cut(tool.Description, "\n")
		fmt.Fprintf(
			&b, "| `%s` | %s | %s |\n", tool.Name, strings.Join(append(required, optional...), ", "),
			strings.ReplaceAll(first, "|", `\|`),
		)
	}
	between(t, readme, "<!-- tools -->\n", "<!-- end of tools -->", b.String())
}

// TestReadmeClients holds the blocks of the clients to what install prints, apart from line breaks and the paths of this
// machine. Clients with the same block share a row.
func TestReadmeClients(t *testing.T) {
	drivesOnly(t)
	project, env := plainDir(t), environment(t)
	install := func(words ...string) string {
		out, errs, code := launch{dir: project, env: env, flags: append([]string{"install"}, words...)}.output(t)
		expect.MustEqual(t, code, 0, "install %q: exit code: %s", words, errs)
		return out
	}
	paths := strings.NewReplacer(binary(t), "/path/to/mcp-funnel/bin/mcp-funnel", project, "/path/to/project")
	brackets := strings.NewReplacer("{ ", "{", " }", "}", "[ ", "[", " ]", "]")
	var blocks []string
	clients := map[string][]string{}
	for _, client := range strings.Split(regexp.MustCompile(`claude-desktop,[a-z,-]+`).FindString(install("--help")), ",") {
		block := paths.Replace(strings.TrimSpace(install(client, "--print")))
		if strings.HasPrefix(block, "{") {
			block = brackets.Replace(strings.Join(strings.Fields(block), " "))
		}
		block = strings.ReplaceAll(block, "\n", "`<br>`")
		if clients[block] == nil {
			blocks = append(blocks, block)
		}
		clients[block] = append(clients[block], client)
	}
	var b strings.Builder
	b.WriteString("| client | block |\n|---|---|\n")
	for _, block := range blocks {
		fmt.Fprintf(&b, "| %s | `%s` |\n", strings.Join(clients[block], ", "), block)
	}
	between(t, readme, "<!-- clients -->\n", "<!-- end of clients -->", b.String())
}

// TestReadmeLinks checks that the README links every page of docs, and that it stays short. The test of scripts/site
// checks where links lead.
func TestReadmeLinks(t *testing.T) {
	text := expect.Value(os.ReadFile(readme))(t)
	if len(text) > readmeBytes {
		t.Errorf("README has %d bytes, at most %d; move text to docs", len(text), readmeBytes)
	}
	linked := map[string]bool{}
	for _, m := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
		linked[filepath.Join("..", string(m[1]))] = true
	}
	for _, page := range pages(t)[1:] {
		if !linked[page] {
			t.Errorf("README has no link to %s", page)
		}
	}
}

// TestReadmeSettings holds the list of settings to what --help prints.
func TestReadmeSettings(t *testing.T) {
	out, _, _ := launch{flags: []string{"--help"}}.output(t)
	between(t, "../docs/SETTINGS.md", "<!-- help -->\n```\n", "```\n<!-- end of help -->", out)
}

// between compares, or with -update rewrites, the part of a file between two marks.
func between(t *testing.T, path, from, to, want string) {
	t.Helper()
	text := expect.Value(os.ReadFile(path))(t)
	before, rest, ok := strings.Cut(string(text), from)
	got, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", path, from, to)
	}
	if got == want {
		return
	}
	if *update {
		write(t, path, before+from+want+to+after)
		return
	}
	t.Errorf("%s needs updating, run: make update\n%s", path, cmp.Diff(lines(got), lines(want)))
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	console = regexp.MustCompile("(?s)```console\n(.*?)```")
	shownID = regexp.MustCompile(`obs:[0-9a-z]{12}\b`)
	savedTo = regexp.MustCompile(`(?m)^saved to: .*/([a-z]+)_\d{8}T\d{6}_[0-9a-z]{12}\.`)
)

// printedID is printed in place of the random ID of a block's first observation.
const printedID = "k3v9q2m7x4ab"

// TestReadmeExamples runs the console blocks of the README and of docs, those of a page with one store, and holds them
// to what is printed. Observation IDs and places of the store differ at each run and are normalised.
func TestReadmeExamples(t *testing.T) {
	drivesOnly(t)
	found := map[string]int{}
	for _, page := range pages(t) {
		found[filepath.Base(page)] = replayPage(t, page)
	}
	for _, page := range []string{"README.md", "TOOLS.md"} {
		if found[page] == 0 {
			t.Errorf("%s has no console block", page)
		}
	}
}

// replayPage runs the console blocks of a page, with -update rewrites them, and returns how many there are.
func replayPage(t *testing.T, page string) int {
	t.Helper()
	text := expect.Value(os.ReadFile(page))(t)
	blocks := console.FindAllSubmatchIndex(text, -1)
	if len(blocks) == 0 {
		return 0
	}
	home := plainDir(t)
	env := append(environment(t), "HOME="+home, "XDG_STATE_HOME="+home+"/state")
	var fresh strings.Builder
	end := 0
	for _, m := range blocks {
		block := string(text[m[2]:m[3]])
		got := replay(t, env, block)
		if got != block && !*update {
			t.Errorf("%s needs updating, run: make update\n%s", page, cmp.Diff(lines(block), lines(got)))
		}
		fresh.Write(text[end:m[2]])
		fresh.WriteString(got)
		end = m[3]
	}
	fresh.Write(text[end:])
	if *update {
		write(t, page, fresh.String())
	}
	return len(blocks)
}

// replay runs a block's commands and writes it anew with their output.
func replay(t *testing.T, env []string, block string) string {
	t.Helper()
	var b strings.Builder
	real := ""
	commands := strings.Split(block, "\n")
	for i := 0; i < len(commands); i++ {
		command, ok := strings.CutPrefix(commands[i], "$ ")
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "$ %s\n", command)
		if real != "" {
			command = strings.ReplaceAll(command, "obs:"+printedID, real)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir, cmd.Env = "..", env
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, "%s\n%s", command, out)
		if real == "" {
			real = shownID.FindString(string(out))
		}
		b.WriteString(normalise(string(out), real))
	}
	return b.String()
}

func normalise(out, real string) string {
	out = savedTo.ReplaceAllString(
		out, "saved to: ~/.local/state/mcp-funnel/observations/${1}_20261120T143022_"+printedID+".",
	)
	if real != "" {
		out = strings.ReplaceAll(out, strings.TrimPrefix(real, "obs:"), printedID)
	}
	return out
}
