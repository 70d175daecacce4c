package ask_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/answerer"
	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// native is a reply with a native call.
func native(name string, args map[string]any) chattest.Reply {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return chattest.Reply{ToolCalls: []any{map[string]any{
		"id": "c1", "type": "function", "function": map[string]any{"name": name, "arguments": string(raw)},
	}}}
}

func said(text string) chattest.Reply { return chattest.Reply{Text: text} }

// scripted returns an answerer at an endpoint with scripted replies.
func scripted(t *testing.T, replies ...chattest.Reply) (*answerer.Answerer, *chattest.Server) {
	t.Helper()
	s := chattest.New(t, replies...)
	client := expect.Value(chat.New(chat.Options{URL: s.URL, Name: "m", Context: 8192}))(t)
	return answerer.New(client, "m"), s
}

// answeredBy asks a question through an endpoint with scripted replies.
func answeredBy(t *testing.T, b *bench, a ask.Args, replies ...chattest.Reply) (*ask.Result, *chattest.Server) {
	t.Helper()
	by, s := scripted(t, replies...)
	b.k.Use(by)
	r, _, err := b.try(a)
	expect.Must(t, err)
	return r, s
}

// ten writes ten files of invoices, four of them with an amount, and a lease.
func ten(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	for i := range 10 {
		text := "Illegible.\n"
		if i < 4 {
			text = fmt.Sprintf("Invoice %d\nThe amount is %d EUR.\n", i, 100+i)
		}
		write(t, dir, fmt.Sprintf("invoice_%d.txt", i), []byte(text))
	}
	write(t, dir, "lease.md", []byte("# Lease\n\nThe lease ends on 31 March 2027.\n"))
	return newBench(t, dir)
}

// TestFlows runs the standard flows with the completions that they need.
func TestFlows(t *testing.T) {
	search := map[string]any{"query": "when does the lease end"}
	for name, c := range map[string]struct {
		question string
		replies  []chattest.Reply
		want     string
		steps    []string
	}{
		"a question on files": {"how many txt files?", []chattest.Reply{
			native("count_files", map[string]any{"extension": "txt"}), said("There are 10 .txt files."),
		}, "There are 10 .txt files.", []string{"count_files"}},
		"a single fact": {"when does the lease end?", []chattest.Reply{
			native("semantic_search", search), native("respond", map[string]any{"answer": "On 31 March 2027 (lease.md)."}),
		}, "On 31 March 2027 (lease.md).", []string{"semantic_search"}},
		"searched again": {"what are the amounts of all invoices?", []chattest.Reply{
			native("semantic_search", map[string]any{"query": "amount of invoice"}),
			native("grep_files", map[string]any{"pattern": "invoice"}),
			native("semantic_search", map[string]any{"query": "all amounts of invoices"}),
			said("100 EUR, 101 EUR, 102 EUR and 103 EUR; 10 files are called so."),
		}, "100 EUR, 101 EUR, 102 EUR and 103 EUR; 10 files are called so.",
			[]string{"semantic_search", "grep_files", "semantic_search"}},
		"a call as text": {"when does the lease end?", []chattest.Reply{
			said("<think>hm</think><|tool_call_start|>[semantic_search(query=\"lease end\")]<|tool_call_end|>"),
			said("<think>so</think>It ends on 2027-03-31."),
		}, "It ends on 2027-03-31.", []string{"semantic_search"}},
		"no call at first": {"when does the lease end?", []chattest.Reply{
			said("I should look."), said("It ends on 31 March 2027."),
		}, "It ends on 31 March 2027.", []string{"semantic_search"}},
		"an unknown function": {"when does the lease end?", []chattest.Reply{
			native("open_file", map[string]any{}), native("semantic_search", search), said("31 March 2027"),
		}, "31 March 2027", []string{"semantic_search"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := answeredBy(t, ten(t), ask.Args{Question: c.question}, c.replies...)
			var steps []string
			for _, s := range r.Steps {
				steps = append(steps, s.Tool)
			}
			if r.Answer != c.want || r.Completions != len(c.replies) || !slices.Equal(steps, c.steps) || r.By != "model m" {
				t.Errorf("%q by %s in %d completions, %q, %q", r.Answer, r.By, r.Completions, steps, r.Notes)
			}
			if len(r.Ungrounded) > 0 {
				t.Errorf("not in the files: %q", r.Ungrounded)
			}
		})
	}
}

// TestRepliesOfSmallModels has replies that a model of 135 million parameters wrote.
func TestRepliesOfSmallModels(t *testing.T) {
	const end = "The lease ends on 31 March 2027."
	numbers := ""
	for i := range 60 {
		numbers += fmt.Sprint(7000+7*i, ", ")
	}
	respond := native("respond", map[string]any{"answer": "The answer and end is returned"})
	for name, c := range map[string]struct {
		replies  []chattest.Reply // after the first, for which the router's choice is run
		want     string           // "": the facts answer
		note     string
		invented int
	}{
		"half an object": {[]chattest.Reply{{Text: `{"answer": "` + end + ` The lease with`, Finish: "length"}},
			end + " The lease with", "cut the reply off", 0},
		"a fenced object":       {[]chattest.Reply{said("```json\n{\"answer\": \"" + end + "\"}\n```")}, end, "", 0},
		"an object without one": {[]chattest.Reply{said(`{"lines": [{"index": 1, "url": "/models/notes.txt", "type": "js`)}, "", "gave no answer", 0},
		"a whole object":        {[]chattest.Reply{said(`{"end": ["31 March 2027"]}`)}, `{"end": ["31 March 2027"]}`, "", 0},
		"a call that is a schema": {[]chattest.Reply{said("I look it up: {\"name\": \"file_metadata\", \"arguments\": " +
			"{\"type\": \"object\", \"properties\": {\n  \"query\": {\"type\": \"string\"},\n  \"top_k\": {")}, "", "gave no answer", 0},
		"only an opening":      {[]chattest.Reply{said(`{"`)}, "", "gave no answer", 0},
		"respond without text": {[]chattest.Reply{native("respond", map[string]any{})}, "", "gave no answer", 0},
		"another argument":     {[]chattest.Reply{native("respond", map[string]any{"text": end})}, end, "", 0},
		"half a sentence":      {[]chattest.Reply{{Text: end + " The lease", Finish: "length"}}, end + " The lease", "cut the reply off", 0},
		"a loop": {[]chattest.Reply{said("The total of the invoice is 100. " + strings.Repeat("The total is 100. ", 20) + "The total is 10")},
			"The total of the invoice is 100.", "repeated the end of its answer", 1},
		"lines that repeat": {[]chattest.Reply{said(strings.Repeat(end+"\n\n", 7) + "The lease ends on")}, end, "repeated the end", 0},
		"a loop of a token": {[]chattest.Reply{said(end + " " + strings.Repeat("1. ", 90))}, end + " 1. 1. 1.", "repeated the end", 0},
		"a ruler":           {[]chattest.Reply{said(end + "\n" + strings.Repeat("-", 80))}, end + "\n" + strings.Repeat("-", 80), "", 0},
		"numbers":           {[]chattest.Reply{said(numbers)}, strings.TrimSpace(numbers), "more than 20 claims", 20},
		"an unknown function": {[]chattest.Reply{said(`<tool_call>{"name": "LostLawn", "arguments": {"type": "string"`), said(end)},
			end, "", 0},
	} {
		for how, first := range map[string]chattest.Reply{
			"text": said("The lease ends on January 1, 2024."), "respond": respond,
			"respond as text": said(`{"name": "respond", "arguments": {"answer": "The`),
			"no function":     native("LostLawn", map[string]any{}),
		} {
			if how == "no function" && name == "an unknown function" {
				continue // it makes a reply that is no answer of each
			}
			replies := append([]chattest.Reply{first}, c.replies...)
			if how == "no function" { // nothing was looked up yet: the router's choice is run for the next reply
				replies = slices.Insert(replies, 1, said("The lease ends in 2024."))
			}
			r, s := answeredBy(t, ten(t), ask.Args{Question: "when does the lease end?"}, replies...)
			about := name + " after " + how
			expect.Equal(t, r.Answer, c.want, about)
			expect.Equal(t, r.By == "facts", c.want == "", "%s: by %s", about, r.By)
			expect.Equal(t, len(r.Ungrounded), c.invented, "%s: %q", about, r.Ungrounded)
			expect.Equal(t, len(s.Requests()), len(replies), about)
			if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("%s: %q, want %q", about, notes, c.note)
			}
			if len(r.Steps) != 1 || r.Steps[0].Tool != "semantic_search" {
				t.Errorf("%s: steps %v", about, r.Steps)
			}
		}
	}
	r, _ := answeredBy(t, ten(t), ask.Args{Question: "when does the lease end?"}, chattest.Reply{Status: 400, Raw: "{}"})
	if raw := expect.Value(json.Marshal(r))(t); !strings.Contains(string(raw), `"steps":[]`) {
		t.Errorf("no steps are no empty list: %s", raw)
	}
}

// TestAnswerLikeFacts has a model write what this program writes of facts: they are not shown as such.
func TestAnswerLikeFacts(t *testing.T) {
	const like = "FACTS for \"when does the lease end?\" (no model; 2 of 11 files)\nFrom lease.md:\n  3: It ends soon.\n" +
		"coverage: all\nFrom June on it is free."
	r, _ := answeredBy(t, ten(t), ask.Args{Question: "when does the lease end?"}, said("I look."), said(like))
	text := r.Text(func(s string) int { return len(s) / 4 })
	expect.Contains(t, text, "> FACTS for", "\n> From lease.md:", "\n> coverage: all", "\nFrom June on", "\nFACTS for")
	expect.Equal(t, strings.Count("\n"+text, "\nFACTS for "), 1, text)
}

// TestFollowUpAtAnEndpoint sends the two turns before, and needs two completions.
func TestFollowUpAtAnEndpoint(t *testing.T) {
	b := ten(t)
	first, _ := answeredBy(t, b, ask.Args{Question: "how many txt files?"},
		native("count_files", map[string]any{"extension": "txt"}), said("There are 10."))
	r, s := answeredBy(t, b, ask.Args{Question: "and md?", After: first.ID},
		native("count_files", map[string]any{"extension": "md"}), said("There is 1."))
	sent := s.Requests()[0].Messages
	if r.Completions != 2 || len(sent) != 4 || sent[1].Content != "how many txt files?" ||
		sent[2].Content != "There are 10." {
		t.Errorf("%d completions, %+v", r.Completions, sent)
	}
}

// changing is an Answerer that changes a file before it searches twice.
type changing string

func (file changing) Answer(ctx context.Context, t ask.Task) (r ask.Reply, err error) {
	if err := os.WriteFile(string(file), []byte("It says something else now, at length.\n"), 0o600); err != nil {
		return r, err
	}
	for range 2 {
		if r.Text, err = t.Functions[0].Run(ctx, []byte(`{"query":"lease ends"}`)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// TestChangedDuringAFunction changes a file while a model works: the answer says so, once for each passage.
func TestChangedDuringAFunction(t *testing.T) {
	b := ten(t)
	b.k.Use(changing(filepath.Join(b.dir, "lease.md")))
	r, _, err := b.try(ask.Args{Question: "when does the lease end?"})
	if notes := strings.Join(r.Notes, "; "); err != nil || !strings.Contains(notes, "1 passage changed during the call") {
		t.Errorf("%v, %q", err, notes)
	}
}

// TestFollowUpOfALongAnswer follows an answer, and says so where one cannot be followed: its steps are too long to be
// kept.
func TestFollowUpOfALongAnswer(t *testing.T) {
	long := strings.Repeat("The lease ends. ", 100_000)
	for name, c := range map[string]struct {
		replies []chattest.Reply
		note    string
	}{
		"long answer": {[]chattest.Reply{native("count_files", map[string]any{}), said(long)}, ""},
		"long steps": {
			[]chattest.Reply{native("grep_files", map[string]any{"pattern": long}), said("Nothing is called so.")},
			"the answer is not kept, it has no follow-up: too long: it has ",
		},
	} {
		b := ten(t)
		first, _ := answeredBy(t, b, ask.Args{Question: "how many txt files?"}, c.replies...)
		if notes := strings.Join(first.Notes, "; "); (first.ID == "") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %q, %.300s", name, first.ID, notes)
		}
		if first.ID == "" {
			continue
		}
		if _, _, err := b.try(ask.Args{Question: "and md?", After: first.ID}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadEndpoints always end in an answer, after at most six completions.
func TestBadEndpoints(t *testing.T) {
	many := make([]chattest.Reply, 20)
	same := make([]chattest.Reply, 20)
	for i := range many {
		many[i] = native("semantic_search", map[string]any{"query": fmt.Sprint("lease ", i)})
		same[i] = native("semantic_search", map[string]any{"query": "lease"})
	}
	for name, replies := range map[string][]chattest.Reply{
		"never answers": many, "the same call": same, "silent": {said(""), said(""), said("")},
		"unauthorized": {{Status: http.StatusUnauthorized, Raw: `{"error":{"message":"bad key"}}`}},
		"html":         {{Raw: "<html>login</html>"}, {Raw: "<html>login</html>"}, {Raw: "<html>login</html>"}},
		"no choices":   {{Raw: `{"choices":[]}`}, {Raw: `{"choices":[]}`}, {Raw: `{"choices":[]}`}},
		"error":        {{Status: 500, Raw: "{}"}, {Status: 500, Raw: "{}"}, {Status: 500, Raw: "{}"}},
		"redirect":     {{Status: http.StatusFound, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := answeredBy(t, ten(t), ask.Args{Question: "when does the lease end?"}, replies...)
			if r.By != "facts" || r.Completions > 6 || len(r.Notes) == 0 || len(r.Facts) == 0 {
				t.Errorf("by %s, %d completions, %q, %d facts", r.By, r.Completions, r.Notes, len(r.Facts))
			}
			if requests := s.Requests(); r.Completions == 6 {
				sent := requests[len(requests)-1].Messages
				expect.Has(t, sent[len(sent)-1].Content, "concise final answer", "the last request does not ask for the answer")
			}
		})
	}
}

// TestSilentEndpoint gives the facts at the end of a slice, before the limit of a call. A patient caller waits as long
// for each step.
func TestSilentEndpoint(t *testing.T) {
	search := native("semantic_search", map[string]any{"query": "lease end"})
	for name, c := range map[string]struct {
		slice, limit time.Duration // the limit of a call; 0: none
		patient      bool
		replies      []chattest.Reply // before it falls silent
	}{
		"at once":             {slice: 2 * time.Second},
		"in the middle":       {slice: 2 * time.Second, replies: []chattest.Reply{search}},
		"patient":             {slice: 2 * time.Second, patient: true, replies: []chattest.Reply{search}},
		"the limit of a call": {slice: 10 * time.Second, limit: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent := chattest.Reply{Text: "never", Wait: make(chan struct{})}
			by, _ := scripted(t, append(c.replies, silent, silent, silent)...)
			b := ten(t)
			store, question := t.TempDir(), ask.Args{Question: "when does the lease end?"}
			b.k = ask.New(ask.Options{Store: store})
			b.ask(question) // makes the index, for which a slice may be too short on a busy machine
			b.k = ask.New(ask.Options{Store: store, Slice: c.slice, Answerer: by})
			tool := b.k.Tool()
			if c.patient {
				tool = b.k.Command(0, func(*ask.Result, error) {})
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c.limit > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), c.limit)
			}
			defer cancel()
			text := b.call(ctx, tool, question)
			expect.Contains(t, text, "(no model;", "31 March 2027", "--slice")
		})
	}
}

// TestSeveralExtensions counts files of several types for a model.
func TestSeveralExtensions(t *testing.T) {
	for _, list := range []string{"txt,md", ".txt and .md", "*.txt, *.md"} {
		_, s := answeredBy(t, ten(t), ask.Args{Question: "how many text files?"},
			native("count_files", map[string]any{"extension": list}), said("There are 11."))
		sent := s.Requests()[1].Messages
		expect.Has(t, sent[len(sent)-1].Content, "11 .txt/.md files", "%q", list)
	}
}

// TestInventedNumbers names what no result has.
func TestInventedNumbers(t *testing.T) {
	r, _ := answeredBy(t, ten(t), ask.Args{Question: "when does the lease end?"},
		native("semantic_search", map[string]any{"query": "lease end"}),
		said("It ends on 31 March 2027 and costs 1,350 EUR a month."))
	if len(r.Ungrounded) != 1 || !strings.Contains(r.Ungrounded[0], "1,350") {
		t.Errorf("%q", r.Ungrounded)
	}
	expect.Contains(t, r.Text(func(s string) int { return len(s) / 4 }), "not in the files: 1,350")
}

// TestExtraction has the model choose the facts of each passage: 2 completions and one for each. A reply that cannot be
// read leaves those of the rules, marked so, and so does an endpoint that fails.
func TestExtraction(t *testing.T) {
	for name, c := range map[string]struct {
		replies []chattest.Reply
		by      string // of the facts
		note    string
	}{
		"chosen":     {[]chattest.Reply{said("```json\n{\"lines\": [3]}\n```")}, "", ""},
		"thoughts":   {[]chattest.Reply{said("<think>{\"lines\":[1]}</think>{\"lines\": [3]}")}, "", ""},
		"none":       {[]chattest.Reply{said("{\"lines\": []}")}, "", ""},
		"unreadable": {[]chattest.Reply{said("Line three.")}, "rules", "of 1 of 1 passages the rules"},
		"no line":    {[]chattest.Reply{said("{\"lines\": [99]}")}, "rules", "of 1 of 1 passages the rules"},
		"half":       {[]chattest.Reply{said("<tool_call>\n{\"lines\": [3, ")}, "rules", "of 1 of 1 passages the rules"},
		"an answer":  {[]chattest.Reply{said("{\"answer\": \"In line 3.\", \"size\": \"2.0\"}")}, "rules", "the rules"},
		"nested":     {[]chattest.Reply{said(strings.Repeat("{\"query\": ", 1<<19))}, "rules", "the rules"}, // in no time
		"fails":      {[]chattest.Reply{{Status: http.StatusBadRequest}}, "rules", "the endpoint failed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := ten(t)
			search := map[string]any{"query": "when does the lease end"}
			replies := append([]chattest.Reply{native("semantic_search", search)}, c.replies...)
			replies = append(replies, said("On 31 March 2027 (lease.md)."))
			by, s := scripted(t, replies...)
			b.k.Use(by)
			b.k.Extract(by)
			r, _ := b.ask(ask.Args{Question: "when does the lease end?"})
			if r.Completions != 2 || r.Extractions != 1 || r.Answer == "" {
				t.Errorf("%d completions, %d extractions, %q", r.Completions, r.Extractions, r.Answer)
			}
			requests := s.Requests()
			sent := fmt.Sprint(requests[len(requests)-1].Body)
			found := strings.Contains(sent, "3: The lease ends")
			expect.Equal(t, found, name != "none", "sent")
			expect.Has(t, sent, c.note, "sent")
			expect.Equal(t, r.Facts[0].By, c.by, "facts by")
		})
	}
}
