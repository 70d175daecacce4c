package cases

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestWords searches 8 MB for lists of words, of which all but one line has only beginnings. An automaton with fewer
// states than these took a minute for 200 words.
func TestWords(t *testing.T) {
	list := expect.Value(os.ReadFile(filepath.Join(work, "inputs", "speed", "words200.pattern")))(t)
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Split(strings.TrimSpace(string(list)), "|")
	var text strings.Builder
	for n := 0; text.Len() < 8<<20; n++ {
		for range 12 {
			word := words[random.IntN(len(words))]
			text.WriteString(word[:1+random.IntN(len(word)-1)] + " ")
		}
		if n == 50_000 {
			text.WriteString("K-" + words[77])
		}
		text.WriteString("\n")
	}
	dir := filepath.Join(work, "inputs", "lists")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // test data
		t.Fatal(err)
	}
	for name, lines := range map[string]string{
		"lines.log": text.String(), "line.log": strings.ReplaceAll(text.String(), "\n", " "),
	} {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600))
	}
	for i := range 4800 {
		words = append(words, fmt.Sprintf("id-%07d-%d", random.IntN(1e7), i))
	}
	few, many := "pattern="+strings.Join(words[:201], "|"), "pattern="+strings.Join(words, "|")
	whole := `pattern=\b(?:` + strings.Join(words, "|") + `)\b`
	mixed := `pattern=(?:^|[0-9]|-)(?:` + strings.Join(words[:150], "|") + `)(?:,|$)`
	const found = "1 match"
	try(t, []one{
		{dir: "lists", args: call("grep", "source=lines.log", few, "show=count"), has: []string{found}},
		{dir: "lists", args: call("grep", "source=lines.log", many, "show=count"), has: []string{found}},
		{dir: "lists", args: call("grep", "source=lines.log", many, "ignore_case=true"), has: []string{"50001:", words[77]}},
		{dir: "lists", args: call("grep", "source=lines.log", whole, "show=count"), has: []string{found}},
		{dir: "lists", args: call("grep", "source=line.log", whole), has: []string{"K-" + words[77]}},
		{dir: "lists", args: call("search", "glob=lines.log", many), has: []string{`"line":50001`, words[77]}},
		{dir: "lists", args: call("grep", "source=lines.log", mixed, "show=count"), has: []string{found}},
	})
}
