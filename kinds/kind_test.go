package kinds

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Every descriptor is complete, and no two have the same name or extension.
func TestDescriptorsAreComplete(t *testing.T) {
	names, exts := map[content.Kind]bool{}, map[string]bool{}
	for _, k := range All {
		v := reflect.ValueOf(*k)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name == "RecordNote" || name == "Numbered" || name == "Values" || name == "Objects" && (k == Binary || k == JSON || k == NDJSON) {
				continue
			}
			if v.Field(i).IsZero() {
				t.Errorf("%s: %s is not set", k.Name, v.Type().Field(i).Name)
			}
		}
		if names[k.Name] || exts[k.Ext] {
			t.Errorf("%s (%s) is there twice", k.Name, k.Ext)
		}
		names[k.Name], exts[k.Ext] = true, true
	}
}

// Names, extensions and types are on the wire and in stores; the order decides between kinds.
func TestKindsInOrder(t *testing.T) {
	want := [][]string{
		{"binary", "bin", "application/octet-stream"},
		{"json", "json", "application/json"},
		{"ndjson", "ndjson", "application/x-ndjson"},
		{"diff", "diff", "text/x-diff"},
		{"gitlog", "gitlog", "text/plain"},
		{"log", "log", "text/plain"},
		{"table", "csv", "text/csv"},
		{"junit", "junit", "application/xml"},
		{"xml", "xml", "application/xml"},
		{"toml", "toml", "application/toml"},
		{"ini", "ini", "text/plain"},
		{"properties", "properties", "text/plain"},
		{"env", "env", "text/plain"},
		{"yaml", "yaml", "application/yaml"},
		{"template", "tpl", "text/plain"},
		{"markdown", "md", "text/markdown"},
		{"text", "txt", "text/plain"},
	}
	var got [][]string
	for _, k := range All {
		got = append(got, []string{string(k.Name), k.Ext, k.MIME(nil)})
	}
	expect.Same(t, got, want)
	expect.Equal(t, Of("other"), Text, "an unknown kind is not text")
}

// Shares are those that receipts have had from the start.
func TestShares(t *testing.T) {
	want := map[content.Kind]Shares{
		content.Binary: {
			0.3,
			0.3,
			0.5,
		}, content.JSON: {0.3, 0.45, 0.6}, content.NDJSON: {0.3, 0.4, 0.35}, content.Diff: {0.35, 0, 0.7},
		content.GitLog: {
			0.3,
			0,
			0.7,
		}, content.Log: {0.5, 0.2, 0.45}, content.Table: {0.3, 0.4, 0.3}, content.YAML: {0.3, 0.45, 0.6}, content.XML: {0.3, 0.45, 0.6}, content.JUnit: {0.3, 0.45, 0.6}, content.TOML: {0.3, 0.45, 0.6}, content.INI: {0.3, 0.45, 0.6}, content.Properties: {0.3, 0.45, 0.6}, content.Env: {0.3, 0.45, 0.6}, content.Template: {0.3, 0.3, 0.5}, content.Markdown: {0.3, 0.2, 0.7}, content.Text: {0.3, 0.3, 0.5},
	}
	got := map[content.Kind]Shares{}
	for _, k := range All {
		got[k.Name] = k.Shares
	}
	expect.Same(t, got, want)
}

func TestNoRecords(t *testing.T) {
	const want = "a binary has no records"
	err := Records(
		t.Context(),
		strings.NewReader("a\nb\n"),
		content.Binary,
		func(int64, content.Span) bool { return true },
	)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
