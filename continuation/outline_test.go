package continuation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func delivered(text string, o Options) string {
	d := New(o)
	return d.Answer(d.Add([]byte(text)), Names{})
}

// TestOutline compares the lines of what was delivered.
func TestOutline(t *testing.T) {
	for _, tt := range expect.Table[struct{ Name, Text, Want string }](t, "testdata/outline.tsv") {
		got := ""
		for l := range strings.Lines(delivered(tt.Text, Options{})) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(l), "- "); ok {
				got += "|" + line
			}
		}
		if got = strings.TrimPrefix(got, "|"); got != tt.Want {
			t.Errorf("%s:\n got %s\nwant %s", tt.Name, got, tt.Want)
		}
	}
}

// TestLongOutlines shows as many first as last lines as fit, at most 100 of each, and the number left out.
func TestLongOutlines(t *testing.T) {
	long := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"id":"s%d","content_type":"table","elements":[{"rows":[[1]]}]}`, i))
		}
		return `{"sections":[` + strings.Join(list, ",") + `]}`
	}
	for _, tt := range []struct {
		sections, tokens   int
		lines, left, first int // dashes, lines left out, of them before the number
	}{
		{200, 1 << 20, 200, 0, 200},
		{201, 1 << 20, 200, 1, 100},
		{5000, 1 << 20, 200, 4800, 100},
		{5000, 150, 0, 0, 0},
		{50, 150, 0, 0, 0},
	} {
		text := delivered(long(tt.sections), Options{OutlineTokens: tt.tokens})
		lines := strings.Count(text, "\n- ")
		before, after, cut := strings.Cut(text, "… ")
		left := 0
		if cut {
			fmt.Sscan(after, &left)
		}
		if lines+left != tt.sections {
			t.Errorf("%d sections, %d tokens: %d lines and %d left out", tt.sections, tt.tokens, lines, left)
		}
		if tt.lines > 0 && (lines != tt.lines || left != tt.left || strings.Count(before, "\n- ") != tt.first) {
			t.Errorf(
				"%d sections: %d lines, %d left out, %d first",
				tt.sections,
				lines,
				left,
				strings.Count(before, "\n- "),
			)
		}
		if tt.tokens == 150 {
			part := text[strings.Index(text, "- "):strings.LastIndex(text, "\n")]
			if first := strings.Count(before, "\n- "); len(part)/4 > 160 || lines-first != first || first < 5 {
				t.Errorf(
					"%d sections in 150 tokens: %d first, %d lines, %d bytes",
					tt.sections,
					first,
					lines,
					len(part),
				)
			}
		}
		d := New(Options{})
		d.Add([]byte(long(tt.sections)))
		if all, abridged := d.Outline(); len(all) != tt.sections ||
			all[tt.sections/2] != fmt.Sprintf(`table "s%d" with 1 row`, tt.sections/2) || !abridged {
			t.Errorf("the whole outline has %d lines", len(all))
		}
	}
}

// TestCutOffElement compares the last complete element and the cut-off one, which is shown as it is.
func TestCutOffElement(t *testing.T) {
	for _, tt := range []struct{ name, text, where, last, piece string }{
		{"mid-string", `{"items": ["first", "second", "thi`, "/items/2, inside a string", `"second"`, `"thi`},
		{"mid-number", `{"items": [10, 20, 3`, "/items/2, inside a number", "20", "3"},
		{"mid-literal", `{"items": [true, fal`, "/items/1, inside a literal", "true", "fal"},
		{"first element", `{"items": ["fir`, "/items/0, inside a string", "", `"fir`},
		{"after a comma", `{"items": [1, 2,`, "/items/1, after a comma", "2", ""},
		{"a row", `{"rows": [["a", 1], ["b", 2], ["c", `, "/rows/2, after a comma", `["b", 2]`, `["c",`},
		{"nested", `{"a": {"b": [{"c": 1}, {"d": [{"e": 2}, {"f": "g`, "/a/b/1/d/1, inside a string", `{"e": 2}`, `{"f": "g`},
		{"no array", `{"a": 1, "b": {"c": "d`, "/b/c, inside a string", "", `"c": "d`},
		{"in a key", `{"a": 1, "bc`, "", `"a": 1`, `"bc`},
		{"half an escape", `["a", "b\u00`, "/1, inside a string", `"a"`, `"b`},
	} {
		text := delivered(tt.text, Options{})
		for _, want := range []string{tt.where, "Last complete element before cut-off: " + tt.last + "\n",
			"Cut-off element (incomplete): " + tt.piece + "\n"} {
			if shown := strings.Contains(text, want); shown == strings.HasSuffix(want, ": \n") {
				t.Errorf("%s: %q is %v in %s", tt.name, want, shown, text)
			}
		}
	}
}

// TestLongIDsDiffer has ids that differ only behind what an outline shows.
func TestLongIDsDiffer(t *testing.T) {
	id := strings.Repeat("x", 2*maxWord)
	for last, doubled := range map[string]bool{"b": false, "a": true} {
		d := New(Options{})
		d.Add(
			[]byte(
				`{"sections": [{"id": "` + id + `a", "elements": [{}]}, {"id": "` + id + last + `", "elements": [{}]}]}`,
			),
		)
		if got := strings.Contains(strings.Join(d.Review(), ""), "occur twice"); got != doubled {
			t.Errorf("ids that end with a and %s are doubled: %v", last, got)
		}
	}
}

// TestMaskedTextIsNoRestartText has a secret where the text is cut off.
func TestMaskedTextIsNoRestartText(t *testing.T) {
	shown := func(s string) bool { return !strings.Contains(s, "hidden") }
	d := New(Options{AsShown: func(_, s string) bool { return shown(s) }})
	d.Add(
		[]byte(
			`{"items": ["some words before it", "more words before it", "hidden token", "and then some more words`,
		),
	)
	if s := d.Restart(); !shown(s) || !strings.HasPrefix(s, `"and then`) {
		t.Errorf("%q", s)
	}
}
