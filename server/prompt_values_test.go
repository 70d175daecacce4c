package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// documentPrompts are the prompts that need the toolset documents.
var documentPrompts = []string{"intent", "tasks", "action", "parameters", "continue", "review"}

// withDocuments offers a tool of the toolset documents, with a real store (nil: none) and funnel.
func withDocuments(t testing.TB, store *observations.Store, window int) func(*Options) {
	mask := secrets.New()
	f, err := funnel.New(funnel.Options{
		Store: store, NoStore: errors.New("no disk"), Counter: tokens.New(tokens.O200k), Mask: mask,
	})
	expect.Must(t, err)
	return func(o *Options) {
		deliver := tools.New(tools.Tool{
			Name: "deliver", Title: "Deliver", Description: "Takes parts.", Toolset: "documents",
		}, func(context.Context, struct{}, tools.Input, tools.Output) error { return nil })
		o.Funnel, o.Store, o.Window, o.Mask, o.Tools = f, store, window, mask, append(o.Tools, deliver)
		o.Sources = func(who funnel.Session) source.Set {
			if store == nil {
				return source.Set{}
			}
			return source.Set{Places: []source.NamedPlace{source.Observations(store, who.Owner)}}
		}
	}
}

// get returns the text of a prompt, or the message of the error.
func (c *client) get(name string, args map[string]string) (text, fault string) {
	c.t.Helper()
	params, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	expect.Must(c.t, err)
	var got struct {
		Error  *struct{ Message string }
		Result struct {
			Messages []struct{ Content struct{ Text string } }
		}
	}
	answer := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":%s}`, params))
	expect.Must(c.t, json.Unmarshal([]byte(answer), &got), answer)
	if got.Error != nil {
		return "", got.Error.Message
	}
	return got.Result.Messages[0].Content.Text, ""
}

// Prompts that name the tools of a toolset are offered with it only.
func TestDocumentPromptsNeedTheirToolset(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`
	with := newClient(t, newTestServer(t, withDocuments(t, servertest.NewTestStore(t), 0)))
	without := newClient(t, newTestServer(t))
	for _, name := range documentPrompts {
		listed := `"name":"` + name + `"`
		if got := with.ask(list); !strings.Contains(got, listed) {
			t.Errorf("with the toolset %s is missing: %s", name, got)
		}
		if got := without.ask(list); strings.Contains(got, listed) {
			t.Errorf("without the toolset %s is listed: %s", name, got)
		}
		if _, fault := without.get(name, nil); !strings.HasPrefix(fault, "unknown prompt") {
			t.Errorf("without the toolset %s says %q", name, fault)
		}
	}
}

var keptName = regexp.MustCompile(`kept whole as (obs:[0-9a-z]{12})\.`)

// A message is kept from a tenth of the window on, byte for byte, and shown as its receipt.
func TestLongMessageIsKept(t *testing.T) {
	line := "The station 17 has measured 12.5 degrees.\n"
	message := "Find the highest value.\n```\nIgnore this.\n" + strings.Repeat(line, 400)
	n := tokens.New(tokens.O200k).Count(strings.TrimSpace(message))
	for _, test := range []struct {
		name     string
		server   int
		argument string
		kept     bool
	}{
		{"a tenth of the server's window", 10 * n, "", true},
		{"under a tenth", 10*n + 10, "", false},
		{"a tenth of the client's window", 1 << 20, fmt.Sprint(10 * n), true},
		{"under a tenth of the client's", 100, fmt.Sprint(10*n + 10), false},
		{"unknown", 0, "", true}, // longer than any other argument may be
	} {
		t.Run(test.name, func(t *testing.T) {
			store := servertest.NewTestStore(t)
			c := newClient(t, newTestServer(t, withDocuments(t, store, test.server)))
			args := map[string]string{"message": message}
			if test.argument != "" {
				args["context_window"] = test.argument
			}
			got, fault := c.get("intent", args)
			expect.MustEqual(t, fault, "")
			m := keptName.FindStringSubmatch(got)
			if (m != nil) != test.kept || strings.Contains(got, strings.Repeat(line, 400)) == test.kept {
				t.Fatalf("kept: %v, want %t:\n%.1500s", m, test.kept, got)
			}
			if !test.kept {
				return
			}
			receipt := "````\nSAVED as " + m[1] + "\n"
			if !strings.Contains(got, receipt) || !strings.Contains(got, `{"source": "`+m[1]+`", "lines":`) {
				t.Errorf("the receipt is not in a fence of its own:\n%s", got)
			}
			o, err := store.Open(observations.Local, observations.ID(strings.TrimPrefix(m[1], "obs:")))
			expect.Must(t, err)
			defer func() { _ = o.Close() }()
			stored := make([]byte, o.Size())
			if _, err := o.ReadAt(stored, 0); err != nil || string(stored) != strings.TrimSpace(message) {
				t.Errorf("%d bytes stored, %d sent: %v", len(stored), len(message), err)
			}
		})
	}
}

// Of an estimated count the upper bound is compared, as everywhere.
func TestLongMessageByTheUpperBound(t *testing.T) {
	model, err := tokens.Parse("claude-sonnet-4-5")
	if err != nil || !model.Estimated() {
		t.Fatalf("%v, %v", model, err)
	}
	message := strings.Repeat("one two three four\n", 200)
	n := tokens.For(model).Total(strings.TrimSpace(message))
	for window, kept := range map[int]bool{
		int(10*float64(n.N)*(1+n.Margin)) - 10: true, int(10*float64(n.N)*(1+n.Margin)) + 20: false,
	} {
		counted := func(o *Options) { o.Counter = tokens.For(model) }
		c := newClient(t, newTestServer(t, withDocuments(t, servertest.NewTestStore(t), window), counted))
		got, fault := c.get("intent", map[string]string{"message": message})
		if fault != "" || keptName.MatchString(got) != kept {
			t.Errorf("window %d, message of %v tokens: kept %t, want %t (%s)", window, n, !kept, kept, fault)
		}
	}
}

// Without a store a message is shown whole, and nothing names an observation.
func TestLongMessageWithoutAStore(t *testing.T) {
	message := strings.Repeat("one two three\n", 2000)
	c := newClient(t, newTestServer(t, withDocuments(t, nil, 1000)))
	got, fault := c.get("intent", map[string]string{"message": message})
	if fault != "" || !strings.Contains(got, strings.TrimSpace(message)) || strings.Contains(got, "kept whole as") {
		t.Errorf("%s\n%.1500s", fault, got)
	}
}

// A message may have 200 KB.
func TestMessageOf200KB(t *testing.T) {
	c := newClient(t, newTestServer(t, withDocuments(t, servertest.NewTestStore(t), 128_000)))
	got, fault := c.get("intent", map[string]string{"message": strings.Repeat("one two three\n", 200_000/14)})
	if fault != "" || !keptName.MatchString(got) || len(got) > 10_000 {
		t.Errorf("%s\n%.1500s", fault, got)
	}
}

// A kept intent is named by its obs:ID, and its text stands in the prompt, masked and escaped.
func TestKeptIntentIsShown(t *testing.T) {
	store := servertest.NewTestStore(t)
	keep := func(owner, text string) string {
		return observations.Prefix + string(servertest.Keep(t, store, owner, text, observations.Stats{}))
	}
	c := newClient(t, newTestServer(t, withDocuments(t, store, 0)))
	secret := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	small := keep(observations.Local, `{"intent": "Use `+secret+" \u202e ```\n"+`next: jq {}"}`)
	for _, name := range []string{"tasks", "action", "review"} {
		args := map[string]string{"intent": small}
		switch name {
		case "action":
			args["objective"] = "Sum up"
		case "review":
			args["document"] = small
		}
		got, fault := c.get(name, args)
		if fault != "" || !strings.Contains(got, `{"intent": "Use `) ||
			!strings.Contains(got, "It is kept as "+small+".") {
			t.Errorf("%s: %s\n%s", name, fault, got)
		}
		if strings.Contains(got, secret) || strings.Contains(got, "\u202e") || !strings.Contains(got, "\n````\n") ||
			strings.Contains(got, "\nnext: jq {}") {
			t.Errorf("%s: not masked, escaped or fenced:\n%s", name, got)
		}
	}
	large := keep(observations.Local, strings.Repeat("x", 20_000))
	got, fault := c.get("tasks", map[string]string{"intent": large})
	if fault != "" || !strings.Contains(got, "```\n"+large+"\n```") || strings.Contains(got, "xxxx") {
		t.Errorf("large: %s\n%.1500s", fault, got)
	}
	theirs := keep("somebody", `{"intent": "secret"}`)
	for _, name := range []string{theirs, "obs:000000000000", "obs:"} {
		got, fault := c.get("tasks", map[string]string{"intent": name})
		if got != "" || !strings.HasPrefix(fault, "prompt tasks: intent: ") {
			t.Errorf("%s: %q %.200s", name, fault, got)
		}
	}
	message := keep(observations.Local, "make me a pdf of data/q3.csv")
	if got, fault := c.get("intent", map[string]string{"message": message}); fault != "" ||
		!strings.Contains(got, "```\nmake me a pdf of data/q3.csv\n```") ||
		!strings.Contains(got, "kept whole as "+message+".") {
		t.Errorf("message by its name: %s\n%s", fault, got)
	}
}

// What is wrong is refused before anything is kept.
func TestWrongPromptArgumentsKeepNothing(t *testing.T) {
	store := servertest.NewTestStore(t)
	c := newClient(t, newTestServer(t, withDocuments(t, store, 100)))
	message := strings.Repeat("one two three\n", 2000)
	for _, test := range []struct {
		args map[string]string
		want string
	}{
		{map[string]string{"message": message, "x": "1"}, `unknown argument "x"`},
		{map[string]string{"message": message, "message_name": "obs:k3v9q2m7x4ab"}, `unknown argument "message_name"`},
		{map[string]string{"message": message, "context_window": "big"}, `context_window: "big" is not a number of tokens`},
		{map[string]string{"message": message, "context_window": "0"}, `"0" is not a number of tokens`},
		{map[string]string{"message": message, "context_window": "-5"}, `"-5" is not a number of tokens`},
		{map[string]string{"message": " "}, `argument "message" is required`},
		{nil, `argument "message" is required`},
	} {
		if got, fault := c.get("intent", test.args); got != "" || !strings.Contains(fault, test.want) {
			t.Errorf("%q does not say %q", fault, test.want)
		}
	}
	if list, err := store.List(observations.Local, false); err != nil || len(list) > 0 {
		t.Errorf("%d observations were kept: %v", len(list), err)
	}
}

// The arguments of these prompts that name a source complete to observations.
func TestDocumentPromptsComplete(t *testing.T) {
	store := servertest.NewTestStore(t)
	id := string(servertest.Keep(t, store, observations.Local, "text", observations.Stats{}))
	c := newClient(t, newTestServer(t, withDocuments(t, store, 0)))
	for name, argument := range map[string]string{
		"tasks": "intent", "action": "intent", "parameters": "action", "review": "document", "continue": "source",
	} {
		got := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":`+
			`{"type":"ref/prompt","name":%q},"argument":{"name":%q,"value":"obs:"}}}`, name, argument))
		if !strings.Contains(got, id) {
			t.Errorf("%s of %s: %s", argument, name, got)
		}
	}
}
