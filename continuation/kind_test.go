package continuation

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestKinds has first parts of which a fenced block is all, and others of which it is an example.
func TestKinds(t *testing.T) {
	const block = "```json\n{\"a\": 1}\n```\n"
	lines := func(n int) string { return strings.Repeat("Some words.\n", n) }
	for _, tt := range []struct {
		name, part string
		kind       Kind
		want       State
		bytes      int // of the text that is kept; 0: all of it
	}{
		{"a block", block, Any, Whole, 9},
		{"a preface", lines(3) + block, Any, Whole, 9},
		{"a preface with blank lines", "Sure!\n\nHere it is:\n\n" + block, Any, Whole, 9},
		{"prose before it", lines(4) + block, Any, NotJSON, 0},
		{"prose far before it", lines(1000) + block, Any, NotJSON, 0},
		{"words after it", block + lines(1), Any, NotJSON, 0},
		{"words around it", "# Title\n" + block + "Done.\n", Any, NotJSON, 0},
		{"words around it, JSON expected", "# Title\n" + block + "Done.\n", JSON, Whole, 9},
		{"words in brackets around it", "[a](b)\n" + block + "Done.\n", Any, NotJSON, 0},
		{"a number before it", "2026 was good.\n" + block + "Done.\n", Any, NotJSON, 0},
		{"two blocks in prose", lines(2) + block + lines(2) + block, Any, NotJSON, 0},
		{"two blocks", block + "\n" + block, Any, Empty, 0},
		{"two blocks as text", block + "\n" + block, Text, NotJSON, 0},
		{"a block in a longer one", "# T\n\n````md\n" + block + "````\n" + lines(4), Any, NotJSON, 0},
		{"a block of commands", "Run\n```\nmake\n```\n", Any, NotJSON, 0},
		{"a block that is not closed", "Here:\n```json\n{\"a\": ", Any, Cut, 6},
		{"the end of a block", "[1, 2]\n```\n", Any, Whole, 7},
		{"the end of a block after an object", "{\"a\": 2}\n```\n", Any, Whole, 9},
		{"the end of a block of text", "Some words.\n```\n", Text, NotJSON, 0},
		{"JSON as text", `{"a": 1}`, Text, NotJSON, 0},
		{"a template", "{% if x %}", Text, NotJSON, 0},
		{"a bracket", "[draft] some words", Text, NotJSON, 0},
		{"prose", lines(2), Any, Broken, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{Kind: tt.kind})
			r := add(t, d, tt.part)
			want := tt.bytes
			if want == 0 && tt.want != Empty {
				want = len(tt.part)
			}
			if r.State != tt.want || len(d.Text()) != want {
				t.Errorf("%+v, %d bytes: %q", r, len(d.Text()), d.Text())
			}
			expect.Equal(t, Open(d.Text(), d.Stored(), Options{}).State(), tt.want, "opened again it")
		})
	}
}

// TestPlainRestart continues a text whose last lines are alike, with words before the restart text.
func TestPlainRestart(t *testing.T) {
	const text = "# Rows\n\n| one | two |\n| --- | --- |\n| a | b |\n| a | b |\n| a | b |\n"
	for _, before := range []string{"", "(continued)\n", "Here is the rest:\n\n"} {
		d := New(Options{Kind: Text})
		add(t, d, text)
		restart := d.Restart()
		if !occursOnce([]byte(text), []byte(restart)) {
			t.Fatalf("%q does not occur once", restart)
		}
		r := add(t, d, before+restart+"\n| c | d |\n")
		if string(d.Text()) != text+"| c | d |\n" || r.Dropped != strings.TrimSpace(before) {
			t.Errorf("%q: %+v, %q", before, r, d.Text())
		}
	}
	d := New(Options{Kind: Text})
	add(t, d, text)
	if r := add(t, d, "| a | b |\n| c | d |\n"); r.Join != "" {
		t.Errorf("a row that occurs three times: %+v", r)
	}
}
