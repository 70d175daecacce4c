package prompts

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

func TestEveryFileIsAPrompt(t *testing.T) {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(All())+len(works)+1, len(names); got != want {
		t.Errorf("%d prompts, works and the instructions are listed, %d files stand here: %v", got-1, want, names)
	}
	for _, name := range works {
		ordered := !slices.Contains([]string{"survey", "answer", "extract"}, name) // these are no answers to orders
		if w := Work(name); w.Order == "" || w.System == "" || ordered && !strings.Contains(w.Order, "{{order}}") {
			t.Errorf("%s: %+v", name, w)
		}
	}
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		seen[p.Name] = true
		args := map[string]string{}
		for _, a := range p.Arguments {
			if a.Description == "" {
				t.Errorf("%s: argument %s has no description", p.Name, a.Name)
			}
			args[a.Name] = "VALUE-" + a.Name
		}
		text, err := p.Text(args)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		for _, a := range p.Arguments {
			if !strings.Contains(text, "VALUE-"+a.Name) {
				t.Errorf("%s: the value of %s does not stand in the text", p.Name, a.Name)
			}
		}
		if strings.Contains(text, "{{") {
			t.Errorf("%s: a mark is left over:\n%s", p.Name, text)
		}
	}
}

func TestInstructionsAreShort(t *testing.T) {
	n := tokens.New(tokens.O200k).Count(Instructions(""))
	t.Logf("instructions: %d tokens", n)
	if n == 0 || n > 150 {
		t.Errorf("the instructions cost %d tokens, want 1 to 150", n)
	}
}

func prompt(t *testing.T, name string) Prompt {
	t.Helper()
	for _, p := range All() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no prompt %s", name)
	return Prompt{}
}

func TestDirectorStandsOnThePrinciple(t *testing.T) {
	text, err := prompt(t, "director").Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"LARGE OUTPUT DETECTED", "jq", "grep", "slice", "Trust the totals", "Never read it whole", "Never copy cut data",
		"## Good", "## Bad", "kept in part", "not kept",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("director does not say %q", want)
		}
	}
	if strings.Contains(text, "The task:") {
		t.Error("the line for an absent argument was kept")
	}
}

func TestTextErrors(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, test := range []struct {
		name, prompt string
		args         map[string]string
		want         []string
	}{
		{"unknown", "director", map[string]string{"goal": "x"}, []string{`unknown argument "goal"`, "valid arguments: task"}},
		{"unknown, long", "director", map[string]string{long: "x"}, []string{"…", "valid arguments: task"}},
		{"required", "investigate-output", nil, []string{`"source" is required`, "source (required), question"}},
		{"required, blank", "investigate-output", map[string]string{"source": " "}, []string{`"source" is required`}},
		{"too long", "director", map[string]string{"task": strings.Repeat("x", MaxValue+1)}, []string{"8193 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := prompt(t, test.prompt).Text(test.args)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}

func TestValueIsNotATemplate(t *testing.T) {
	text, err := prompt(t, "investigate-output").Text(map[string]string{"source": "{{question}}", "question": "why?"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "Investigate `{{question}}` without") {
		t.Errorf("the value was taken for a mark:\n%s", text)
	}
}

func TestParseErrors(t *testing.T) {
	for name, file := range map[string]string{
		"no front matter":  "hello",
		"no end":           "---\nname: x\n",
		"unknown key":      "---\nname: x\ntitle: x\ndescription: x\ncolour: red\n---\ntext\n",
		"no title":         "---\nname: x\ndescription: x\n---\ntext\n",
		"no text":          "---\nname: x\ntitle: x\ndescription: x\n---\n",
		"unused argument":  "---\nname: x\ntitle: x\ndescription: x\narguments: [{name: a, description: b}]\n---\ntext\n",
		"not a list":       "---\nname: x\ntitle: x\ndescription: x\narguments: a\n---\n{{a}}\n",
		"front matter bad": "---\nname: [\n---\ntext\n",
	} {
		if _, err := parse(file); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
