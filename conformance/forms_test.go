package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestIssueForms holds the forms of issues to what GitHub asks of them: it shows a broken one to nobody.
func TestIssueForms(t *testing.T) {
	type field struct {
		Type, ID   string
		Attributes struct {
			Label, Value, Render, Description, Placeholder string
		}
		Validations struct{ Required bool }
	}
	required := map[string]int{}
	forms := expect.Value(filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml"))(t)
	for _, file := range forms {
		name := filepath.Base(file)
		var form struct {
			Name, Description string
			Body              []field
		}
		if name == "config.yml" {
			continue
		}
		text := expect.Value(os.ReadFile(file))(t)
		expect.Must(t, strictly(text, &form), name)
		if form.Name == "" || form.Description == "" {
			t.Errorf("%s has no name or no description", name)
		}
		ids := map[string]bool{}
		for _, f := range form.Body {
			markdown := f.Type == "markdown"
			if !markdown && f.Type != "textarea" && f.Type != "input" || f.Type == "input" && f.Attributes.Render != "" {
				t.Errorf("%s: no field is a %s with this: %+v", name, f.Type, f)
			}
			if markdown == (f.Attributes.Value == "") || markdown == (f.Attributes.Label != "") || markdown == (f.ID != "") || ids[f.ID] {
				t.Errorf("%s: a field without its text, or with the ID of another: %+v", name, f)
			}
			if ids[f.ID] = true; f.Validations.Required {
				required[name+" "+f.ID]++
			}
		}
	}
	expect.Equal(t, len(forms), 3, "forms")
	for _, field := range []string{"bug.yml version", "bug.yml doctor", "bug.yml client", "bug.yml expected", "idea.yml problem"} {
		expect.Equal(t, required[field], 1, "%s is required", field)
	}
	var config struct {
		Blank bool                                `yaml:"blank_issues_enabled"`
		Links []struct{ Name, URL, About string } `yaml:"contact_links"`
	}
	expect.Must(t, strictly(expect.Value(os.ReadFile("../.github/ISSUE_TEMPLATE/config.yml"))(t), &config))
	expect.Equal(t, config.Links[0].URL, "https://"+module+"/security/advisories/new")
}

// strictly decodes YAML without unknown fields.
func strictly(text []byte, to any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	return d.Decode(to)
}
