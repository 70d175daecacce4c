package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
)

// plan is a document with a section of each kind.
func plan(rows int) string {
	var table []string
	for i := range rows {
		table = append(table, fmt.Sprintf(`["2026-03-%02d","item %d",%d]`, i%28+1, i, 90_000+500*i))
	}
	return `{"sections":[{"id":"intro","content_type":"heading","elements":[{"level":1,"text":"Overview"}]},` +
		`{"id":"why","content_type":"paragraph","elements":[{"text":"Costs rose."},{"text":"They will fall."}]},` +
		`{"id":"todo","content_type":"bullet_list","elements":[{"items":["count","compare"]}]},` +
		`{"id":"costs","content_type":"table","elements":[{"headers":["date","name","sum"],"rows":[` +
		strings.Join(table, ",") + `]}]},` +
		`{"id":"install","content_type":"code_block","elements":[{"language":"sh","code":"make\n\nmake install\n"}]}]}`
}

// delivered is what a program reads of an answer.
type delivered struct {
	State, Verdict, Kept, Part, Join, Restart, Reason string
	Parts, Bytes                                      int
}

func (a answer) delivered(t testing.TB) (d delivered, shownTokens int) {
	t.Helper()
	var r struct {
		Meta struct {
			Deliver delivered `json:"funnel/deliver"`
			Receipt struct {
				Shown int `json:"shown_tokens"`
			} `json:"funnel/receipt"`
		} `json:"_meta"`
	}
	expect.Must(t, json.Unmarshal(a.result, &r), "%s", a.result)
	return r.Meta.Deliver, r.Meta.Receipt.Shown
}

// deliver calls deliver, and returns its answer and what a program reads of it: nothing if the call failed.
func (c *stdioClient) deliver(t testing.TB, args object) (a answer, d delivered) {
	t.Helper()
	a = expect.Value(c.call("deliver", args))(t)
	if !a.failed {
		d, _ = a.delivered(t)
	}
	return a, d
}

var anyID = regexp.MustCompile(`obs:[0-9a-z]{12}`)

// TestDeliver delivers documents through the server, and writes its answers to docs/CONTINUATION.md.
func TestDeliver(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	call := func(args object) (answer, delivered) {
		t.Helper()
		a, d := c.deliver(t, args)
		if _, shown := a.delivered(t); shown > 320 {
			t.Errorf("an answer of %d tokens: %s", shown, a.text())
		}
		return a, d
	}
	var page strings.Builder
	sample := func(title string, a answer) {
		ids := map[string]string{}
		text := anyID.ReplaceAllStringFunc(a.text(), func(id string) string {
			if ids[id] == "" {
				ids[id] = []string{"obs:x7m2k9q4b3va", "obs:k3v9q2m7x4ab", "obs:5x08yf282ac9"}[len(ids)]
			}
			return ids[id]
		})
		fmt.Fprintf(&page, "%s:\n\n````\n%s\n````\n\n", title, strings.TrimSpace(text))
	}
	doc := plan(120)
	cut := strings.Index(doc, "item 111") + 5
	first, d1 := call(object{"part": doc[:cut]})
	sample("Cut off", first)
	if d1.Verdict != "continue" || d1.State != "cut" || !strings.Contains(doc, d1.Restart) {
		t.Fatalf("%+v", d1)
	}
	refused, d2 := call(object{"part": "I am sorry, I cannot go on.", "after": d1.Kept})
	sample("A part that is refused", refused)
	if d2.Join != "" || d2.Kept != d1.Kept || d2.Restart != d1.Restart {
		t.Errorf("%+v", d2)
	}
	missing, d3 := call(object{"after": d1.Kept})
	sample("A call whose part was lost", missing)
	expect.Equal(t, d3.Restart, d1.Restart, "%+v", d3)
	stuck, _ := call(object{"part": doc[:cut], "after": d1.Kept})
	sample("Stuck", stuck)
	last, d4 := call(object{"part": doc[strings.Index(doc, d1.Restart):], "after": d1.Kept})
	sample("Whole", last)
	if d4.Verdict != "done" || d4.Join != "restart text" || d4.Bytes != len(doc) {
		t.Errorf("%+v", d4)
	}
	broken, _ := call(object{"part": "{\"sections\": [\n  {\"id\": \"a\" \"content_type\": \"heading\"}\n]}"})
	sample("Broken", broken)
	for part, want := range map[string]string{d4.Kept: doc, d2.Part: "I am sorry, I cannot go on."} {
		if got, err := c.call("read", object{"path": part}); err != nil ||
			!strings.Contains(got.text(), want[:20]) {
			t.Errorf("%s: %v %s", part, err, got.text())
		}
	}
	between(t, "../docs/CONTINUATION.md", "<!-- answers -->\n", "<!-- end of answers -->", page.String())
}

// TestDeliverKeepsTheOutline checks that an answer that shows a part of the outline names the whole of it, while parts
// arrive and at the end.
func TestDeliverKeepsTheOutline(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	var sections []string
	for i := range 90 {
		sections = append(
			sections,
			fmt.Sprintf(
				`{"id":"s%d","content_type":"heading","elements":[{"level":2,"text":"Chapter %d"}]}`,
				i,
				i,
			),
		)
	}
	doc := `{"sections":[` + strings.Join(sections, ",") + `]}`
	cut := strings.Index(doc, `"Chapter 80`) + 5
	first, d := c.deliver(t, object{"part": doc[:cut]})
	last, _ := c.deliver(t, object{"part": doc[strings.Index(doc, d.Restart):], "after": d.Kept})
	named := regexp.MustCompile(`… \d+ more; the whole list: (obs:[0-9a-z]{12}) …`)
	for lines, answer := range map[int]answer{80: first, 90: last} {
		id := named.FindStringSubmatch(answer.text())
		if id == nil {
			t.Errorf("no outline is named: %s", answer.text())
			continue
		}
		got, err := c.call(
			"grep",
			object{"source": id[1], "pattern": fmt.Sprintf("Chapter (0|45|%d)$", lines-1)},
		)
		if err != nil || strings.Count(got.text(), "2 Chapter ") != 3 {
			t.Errorf("%v: not %d lines: %s", err, lines, got.text())
		}
	}
	expect.Has(t, first.text(), `(section "s80")`, "the section that is cut off is not named")
}

// longPart returns text of words that do not repeat themselves.
func longPart(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "word %d and ", i*i)
	}
	return b.String()
}

// exampleInProse is Markdown in which JSON is only an example.
const exampleInProse = "# Settings\n\nWrite them to a file:\n\n```json\n{\"port\": 8080}\n```\n\nThen start again.\n"

// TestDeliverText continues texts of which nothing is parsed: they stay text, and lose no fence and no word.
func TestDeliverText(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	for _, as := range []string{"document", "markdown", "text", "code"} {
		begin := exampleInProse
		if as == "text" || as == "code" {
			begin = "[1, 2, and more words of this text"
		}
		rest := "\n\n```json\n{\"port\": 9090}\n```\n\n```json\n{}\n```\n"
		a, d := c.deliver(t, object{"part": begin, "as": as})
		if !strings.Contains(a.text(), "after="+d.Kept) || d.State != "not JSON" {
			t.Fatalf("%q: %s", as, a.text())
		}
		last := begin[strings.LastIndex(strings.TrimSpace(begin), "\n")+1:]
		a, d = c.deliver(t, object{"part": "(continued) " + last + rest, "after": d.Kept})
		expect.Equal(t, d.Join, "restart text", "%q: %+v %s", as, d, a.text())
		expect.Equal(t, d.Bytes, len(begin+rest), "%q: %+v %s", as, d, a.text())
	}
}

// TestDeliverInputsExist has an action that needs an observation which is there, and others that are not.
func TestDeliverInputsExist(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	_, d := c.deliver(t, object{"part": `{"a":1}`})
	for name, there := range map[string]bool{
		d.Kept: true, "obs:000000000000": false, "obs:": false, "nothing.csv": false,
	} {
		var action object
		expect.Must(t, json.Unmarshal([]byte(example(t, intent.Action)), &action))
		action["requiredInputDocuments"] = []string{name}
		part, _ := json.Marshal(action)
		a, _ := c.deliver(t, object{"part": string(part), "as": "action"})
		if missing := strings.Contains(a.text(), `"`+name+`" was not found`); missing == there {
			t.Errorf("%s: %s", name, a.text())
		}
	}
}

// TestDeliverBadInput has an answer for each bad input, and the server goes on.
func TestDeliverBadInput(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	call := func(args object) (string, delivered) {
		t.Helper()
		a, d := c.deliver(t, args)
		return a.text(), d
	}
	doc := plan(20)
	_, begun := call(object{"part": doc[:900]})
	_, whole := call(object{"part": doc})
	fill := strings.NewReplacer("$BEGUN", begun.Kept, "$WHOLE", whole.Kept, "$DEEP", strings.Repeat("[", 100_000),
		"$LONG", longPart(200_000), "$EXAMPLE", exampleInProse)
	for _, c := range corpus.Rows[struct {
		Name, Says string
		Args       object
	}](t, "deliver.ndjson") {
		for name, v := range c.Args {
			if text, ok := v.(string); ok {
				c.Args[name] = fill.Replace(text)
			}
		}
		t.Run(c.Name, func(t *testing.T) {
			if text, _ := call(c.Args); !strings.Contains(text, c.Says) {
				t.Errorf("%q is not in %s", c.Says, text)
			}
		})
	}
	t.Run("the same part 20 times", func(t *testing.T) {
		after, stopped := begun.Kept, 0
		for range 20 {
			text, d := call(object{"after": after, "part": `"item`})
			if strings.Contains(text, "STUCK") {
				stopped++
			}
			if d.Join != "" {
				after = d.Kept
			}
		}
		if stopped != 19 {
			t.Errorf("%d of 20 answers say that it is stuck, want 19", stopped)
		}
		if text, _ := call(object{"after": begun.Kept, "part": doc[:900]}); !strings.Contains(text, "STUCK") {
			t.Errorf("the first part again: %s", text)
		}
	})
	t.Run("two callers on one document", func(t *testing.T) {
		rest := doc[strings.Index(doc, begun.Restart):]
		one, a := call(object{"after": begun.Kept, "part": rest})
		two, b := call(object{"after": begun.Kept, "part": rest})
		if a.Kept == b.Kept || strings.Contains(one, "second branch") ||
			!strings.Contains(two, "second branch") {
			t.Errorf("%s\n%s", one, two)
		}
	})
}
