package continuation

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestPrefaces has words before and after the restart text and the rest.
func TestPrefaces(t *testing.T) {
	const kept = `{"items":[{"text":"Each berth is swept"},{"text":"Each crane is oiled and`
	inString := `{"text":"` + uniqueWords(60)
	for _, tt := range []struct {
		name, kept, before, after string
		joined                    bool
	}{
		{"nothing", kept, "", ` shut"}]}`, true},
		{"a remark", kept, "(continued) ", ` shut"}]}`, true},
		{"a remark in brackets", kept, "[continued] ", ` shut"}]}`, true},
		{"a remark in brackets with a literal", kept, "[null and so on] ", ` shut"}]}`, true},
		{"a sentence", kept, "Sure, here is the rest: ", ` shut"}]}`, true},
		{"a line", kept, "Sure, here is the rest:\n\n", ` shut"}]}`, true},
		{"some lines", kept, "Okay.\nI go on now.\n\n", ` shut"}]}`, true},
		{"words of another language", kept, "Hier ist der Rest: ", ` shut"}]}`, true},
		{"199 characters", kept, strings.Repeat("ü", 198) + " ", ` shut"}]}`, true},
		{"a long preface", kept, strings.Repeat("some words ", 30), ` shut"}]}`, false},
		{"another element", kept, `{"text":"Each door is shut"},`, ` shut"}]}`, false},
		{"another title", kept, `{"title":"x","items":[`, ` shut"}]}`, false},
		{"a remark in a string", inString, "(continued) ", ` and so on"}`, true},
		{"a line in a string", inString, "Here it is:\n", ` and so on"}`, true},
		{"words after it", kept, "", " shut\"}]}\n\nnote that this is all.", false},
		{"a list after it", kept, "", " shut\"}]}\n- item", false},
		{"a ruler after it", kept, "", " shut\"}]}\n---\n", false},
		{"the same line after it", kept, "", ` shut"}]} Done.`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			add(t, d, tt.kept)
			restart := d.Restart()
			r := add(t, d, tt.before+restart+tt.after)
			want := tt.kept
			if tt.joined {
				want += tt.after
			}
			expect.Equal(t, string(d.Text()), want, r)
			if tt.joined && r.Dropped != strings.TrimSpace(tt.before) {
				t.Errorf("left out: %q", r.Dropped)
			}
			answer := d.Answer(r, Names{Kept: "obs:0", Call: "deliver after=obs:0"})
			if !tt.joined && (r.Verdict != Refused || !strings.Contains(answer, "after=obs:0")) {
				t.Errorf("%+v: %s", r, answer)
			}
		})
	}
	d := New(Options{})
	add(t, d, kept)
	if r := add(t, d, "Sure, here is the rest:\n"); r.Join != "" {
		t.Errorf("a line alone: %+v", r)
	}
	if r := add(t, d, "Sure, here is the rest:\n\n shut\"}]}"); string(d.Text()) != kept+` shut"}]}` {
		t.Errorf("a line before the rest alone: %+v %s", r, d.Text())
	}
}

// TestTrailing has text after a whole document, whatever it begins with.
func TestTrailing(t *testing.T) {
	for _, after := range []string{
		"note that", "- item", "---", "true to say", "1. item", "2026 was", "[Note: x]", "{% x %}", "{note}", "* item",
		"\"This\" is all.", "falsehoods", "nothing", "-", "```", "t",
	} {
		for _, between := range []string{" ", "\n", "\n\n"} {
			d := New(Options{})
			text := `{"a": [1, true]}` + between + after + "\n"
			r := add(t, d, text)
			if after == "-" || after == "t" || after == "```" { // more may follow, or it ends a block
				continue
			}
			expect.Equal(t, r.State, Trailing, "%q: %+v", text, r)
		}
	}
	for _, text := range []string{"{\"a\": 1}\n{\"a\": 2,}", "{\"a\": 1}\n{\"a\" 2}", "{\"a\": 1}\n[1 2]"} {
		if r := add(t, New(Options{}), text); r.State != Broken {
			t.Errorf("a broken line, %q: %+v", text, r)
		}
	}
}

// TestLineEndAfterCut has line ends and the ends of blocks after what is cut off: it can go on.
func TestLineEndAfterCut(t *testing.T) {
	for text, rest := range map[string]string{
		`{"names": ["some of them", true, fals`:  `{"names": ["some of them", true, false]}`,
		`{"names": ["some of them", 1.`:          `{"names": ["some of them", 1.5]}`,
		`{"names": ["some of them", -`:           `{"names": ["some of them", -1]}`,
		`{"names": ["some of them", 1e`:          `{"names": ["some of them", 1e3]}`,
		`{"names": ["some of them", n`:           `{"names": ["some of them", null]}`,
		`{"names": ["some of them", "some wor`:   `{"names": ["some of them", "some words"]}`,
		`{"names": ["some of them"], "and so on`: `{"names": ["some of them"], "and so on": 1}`,
	} {
		for _, end := range []string{"", "\n", "\r\n", "\n\n", "\n```\n", "\n```"} {
			for _, begin := range []string{"", "```json\n"} {
				d := New(Options{})
				r := add(t, d, begin+text+end)
				if r.State != Cut || string(d.Text()) != text {
					t.Errorf("%q: %+v %q", begin+text+end, r, d.Text())
				}
				if r := add(t, d, rest); r.State != Whole || string(d.Text()) != rest {
					t.Errorf("%q, went on: %+v %q", begin+text+end, r, d.Text())
				}
			}
		}
	}
}
