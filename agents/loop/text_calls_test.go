package loop

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

var toolNames = []string{
	"semantic_search", "count_files", "list_files", "file_metadata", "grep_files", "directory_tree", "respond",
}

// sections returns the sections of a file of testdata.
func sections(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	expect.Must(t, err)
	return strings.Split(strings.TrimPrefix(string(text), "###"), "\n###")
}

// shown returns calls as in testdata/calls.txt.
func shown(calls []chat.ToolCall) (lines []string) {
	for _, c := range calls {
		lines = append(lines, c.Function.Name+" "+c.Function.Arguments)
	}
	return lines
}

// sample is a section of testdata/calls.txt: its title, the text, the calls and, if given, the rest.
type sample struct {
	title, text string
	calls, rest []string
}

func samples(t testing.TB) (all []sample) {
	for _, s := range sections(t, "calls.txt") {
		var r sample
		var text []string
		for _, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			if call, ok := strings.CutPrefix(line, "=> "); ok {
				r.calls = append(r.calls, call)
			} else if rest, ok := strings.CutPrefix(line, "rest: "); ok {
				r.rest = append(r.rest, rest)
			} else {
				text = append(text, line)
			}
		}
		r.title, r.text = strings.TrimSpace(text[0]), strings.Join(text[1:], "\n")
		all = append(all, r)
	}
	return all
}

// TestTextCalls reads replies as small models write them. No reply may be read as a call of another tool.
func TestTextCalls(t *testing.T) {
	all := samples(t)
	formats, good := map[string]int{}, 0
	for _, r := range all {
		format, _, _ := strings.Cut(r.title, ":")
		formats[format]++
		calls, rest := TextCalls(r.text, toolNames)
		if !slices.Equal(shown(calls), r.calls) {
			t.Errorf("%s: got %q, want %q", r.title, shown(calls), r.calls)
			continue
		}
		if want := strings.Fields(strings.Join(r.rest, " ")); !slices.Equal(strings.Fields(rest), want) {
			t.Errorf("%s: the rest is %q, want %q", r.title, rest, want)
		}
		good++
	}
	t.Logf("%d of %d replies, formats: %v", good, len(all), formats)
	if len(all) < 48 || len(formats) < 6 {
		t.Errorf("%d replies in %d formats; at least 48 in 6 are needed", len(all), len(formats))
	}
}

// TestTextCallsOfAnswers checks that answers are returned as they are, but for their thoughts.
func TestTextCallsOfAnswers(t *testing.T) {
	all := sections(t, "answers.txt")
	for _, text := range all {
		text = strings.TrimSpace(text)
		calls, rest := TextCalls(text, toolNames)
		if len(calls) > 0 {
			t.Errorf("%q: %q", text, shown(calls))
		}
		if !strings.Contains(text, "<think>") && rest != text || strings.Contains(rest, "think") {
			t.Errorf("%q: the rest is %q", text, rest)
		}
	}
	t.Logf("%d answers", len(all))
	if len(all) < 30 {
		t.Errorf("%d answers; at least 30 are needed", len(all))
	}
}

// TestTextCallsLimit checks that at most 16 calls are returned, and none without tools.
func TestTextCallsLimit(t *testing.T) {
	many := strings.Repeat(`{"name": "count_files", "arguments": {}}`+"\n", 40)
	if calls, rest := TextCalls(many, toolNames); len(calls) != maxCalls || rest != "" {
		t.Errorf("%d calls, rest %.40q", len(calls), rest)
	}
	if calls, rest := TextCalls("", nil); calls != nil || rest != "" {
		t.Errorf("%v, %q", calls, rest)
	}
	if calls, rest := TextCalls("count_files()", nil); calls != nil || rest != "count_files()" {
		t.Errorf("%v, %q", calls, rest)
	}
}

// TestTextCallsDamaged damages every reply at random: a byte is deleted or doubled, or the end is cut. The tool of a
// call that is read must be one of the undamaged reply.
func TestTextCallsDamaged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	read, wrong, total := 0, 0, 0
	for _, r := range samples(t) {
		for range 50 {
			at := random.IntN(len(r.text))
			damaged := r.text[:at] + r.text[min(len(r.text), at+1+random.IntN(2)):]
			switch random.IntN(3) {
			case 0:
				damaged = r.text[:at]
			case 1:
				damaged = r.text[:at+1] + r.text[at:]
			}
			calls, _ := TextCalls(damaged, toolNames)
			total++
			if len(calls) > 0 {
				read++
			}
			for _, c := range calls {
				name := c.Function.Name
				if slices.Contains(toolNames, name) && !strings.Contains(r.text, name) && !strings.Contains(r.text, `\_`) {
					wrong++
					t.Errorf("%q became a call of %s", damaged, name)
				}
			}
		}
	}
	t.Logf("%d of %d damaged replies have calls, %d wrong tools", read, total, wrong)
}

// hard are texts whose beginnings repeat.
var hard = []string{
	"{", "[", `{"`, `{"name":`, `{"name":"a","arguments":`, `{a:1` + "\n\"", "[{'", "<tool_call>", "<think>", "</think>",
	"<tool_call>{", "count_files(", "count_files(a=", "count_files(a=\"\n", "[count_files(", "\"",
	"{\\", "{'\\u", "`", "```json\n{",
	"\n ", "{\"a\":\"  ", "\xff{", "“", "{“", "<|tool_call_start|>[f(", "{a:1\n\"{a:1\n\"", "[[],", "{},", "a(b(c(",
	"<tool_call>a", "{\"a\":[{\"name\":\"b\",\"arguments\":{}},", "<think>a</think>",
}

// TestTextCallsTime reads replies of 64 KB: no time grows with the square of their size.
func TestTextCallsTime(t *testing.T) {
	for _, h := range hard {
		for _, end := range []string{"", `",}`} {
			text := strings.Repeat(h, 1<<16/len(h)) + end
			promise.Ends(t, func() { TextCalls(text, toolNames) }, "%q and %q", h, end)
		}
	}
}

func FuzzTextCalls(f *testing.F) {
	for _, r := range samples(f) {
		f.Add(r.text)
	}
	for _, h := range hard {
		f.Add(strings.Repeat(h, 9))
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, rest := TextCalls(text, toolNames)
		if len(calls) > maxCalls || len(rest) > len(text) {
			t.Fatalf("%d calls, rest %q", len(calls), rest)
		}
		if utf8.ValidString(text) && !utf8.ValidString(rest) {
			t.Fatalf("rest %q", rest)
		}
	})
}
