package continuation

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// uniqueWords returns n different words.
func uniqueWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", i*i)
	}
	return strings.TrimSpace(b.String())
}

// TestRestartIsShort cuts documents off after long elements.
func TestRestartIsShort(t *testing.T) {
	long := uniqueWords(5000)
	for name, text := range map[string]string{
		"inside of it":           `{"a":["` + long,
		"after it":               `{"a":["` + long + `"`,
		"after it, with a comma": `{"a":["` + long + `",`,
		"in the next one":        `{"a":["` + long + `","x`,
		"in a member after it":   `{"a":[{"text":"` + long + `","n":1`,
		"in a name after it":     `{"a":[{"text":"` + long + `","n`,
		"in an object":           `{"title":"` + long + `","n":{"x":[`,
	} {
		d := New(Options{})
		add(t, d, text)
		restart := d.Restart()
		if n := len(restart); n > restartMax || strings.Count(text, restart) != 1 ||
			!strings.HasSuffix(text, restart) {
			t.Errorf("%s: %d bytes: %.200q", name, n, restart)
		}
		rest := restart + ` and more`
		if r := add(t, d, rest); name == "inside of it" &&
			(r.Join != "restart text" || string(d.Text()) != text+" and more") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	d := New(Options{})
	add(t, d, `{"a":["`+long)
	if r := add(t, d, `"`+d.Restart()+`"]}`); string(d.Text()) != `{"a":["`+long+`"]}` {
		t.Errorf("a writer who opens the string again: %+v", r)
	}
}

// TestRestartOfManyLevels cuts off documents of many levels, most of which begin alike.
func TestRestartOfManyLevels(t *testing.T) {
	const levels = 2000
	for name, c := range map[string]struct{ open, end string }{
		"arrays":           {"[", "]"},
		"numbered arrays":  {"[%d,", "]"},
		"objects":          {`{"a":`, "}"},
		"numbered members": {`{"n":%d,"a":`, "}"},
	} {
		var b strings.Builder
		for i := range levels {
			b.WriteString(strings.Replace(c.open, "%d", strconv.Itoa(i), 1))
		}
		d, cut := New(Options{}), b.String()
		add(t, d, cut)
		restart := d.Restart()
		if !strings.HasSuffix(cut, restart) || strings.Contains(c.open, "%d") && len(restart) > restartMax {
			t.Errorf("%s: %d bytes: %.200q", name, len(restart), restart)
		}
		rest := "1" + strings.Repeat(c.end, levels)
		if r := add(t, d, restart+rest); r.Verdict != Done || string(d.Text()) != cut+rest {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestRestartOfRepeatedText goes on with a text of which no end occurs once: the whole is sent again, and not shown.
func TestRestartOfRepeatedText(t *testing.T) {
	for _, text := range []string{strings.Repeat("a line as all others\n", 5000), strings.Repeat("`", 200_000)} {
		d := New(Options{Kind: Text})
		answer := d.Answer(add(t, d, text), Names{Call: "deliver"})
		if len(answer) > 500 || !strings.Contains(answer, "Send the document again from its beginning") {
			t.Errorf("%d bytes: %.300s", len(answer), answer)
		}
		if r := add(t, d, text+"and the end"); string(d.Text()) != text+"and the end" {
			t.Errorf("%+v", r)
		}
	}
}

// TestRestartIsNeverMasked has secrets where a restart text would be.
func TestRestartIsNeverMasked(t *testing.T) {
	shown := func(before, text string) bool {
		return !strings.Contains(text, "hidden") && !strings.HasSuffix(before, "secret ")
	}
	for _, tt := range []struct{ text, restart string }{
		{`{"items":["some words before","a hidden token","and some more words th`, `"and some more words th`},
		{`{"items":["` + uniqueWords(40) + ` hidden token and then some more words of it th`, "token and then some more words of it th"},
		{`{"items":["some words before","a hidden tok`, ""},
	} {
		d := New(Options{AsShown: shown})
		r := add(t, d, tt.text)
		answer := d.Answer(r, Names{Call: "deliver"})
		if tt.restart == "" {
			if !strings.Contains(answer, "Begin with the whole cut-off element, /items/1,") ||
				strings.Contains(answer, "```") {
				t.Errorf("%s", answer)
			}
			if r := add(t, d, `"a hidden token","end"]}`); r.Verdict != Done {
				t.Errorf("the element from its beginning: %+v", r)
			}
			continue
		}
		if d.Restart() != tt.restart || !strings.Contains(answer, "\n```\n"+tt.restart+"\n```\n") {
			t.Errorf("%q: %s", d.Restart(), answer)
		}
	}
}

// TestWhatFollowsTheRestartText has the words of the answer for each place at which a text may end.
func TestWhatFollowsTheRestartText(t *testing.T) {
	for text, says := range map[string]string{
		`{"a":["some words of it","more words",`:         "word for word, then add",
		`{"a":["some words of it","more wo`:              "complete it, then add",
		`{"some words of it":1,"more words":`:            "give its value, then add",
		`{"a":["some words of it","more words"`:          "word for word, then add",
		`{"a":["` + uniqueWords(80):                      "inside of a string; go on with it",
		`{"a":["some words of it","has a fence ` + "```": "\n````\n",
	} {
		d := New(Options{})
		r := add(t, d, text)
		expect.Contains(t, d.Answer(r, Names{}), says)
	}
	d := New(Options{})
	add(t, d, `{"a":["some words of it","a te`)
	expect.Contains(
		t, d.Answer(add(t, d, `xt","more"]}`), Names{}), "plain continuation; the restart text was not repeated.",
	)
	e := New(Options{})
	r := add(t, e, `{"sections":[{"id":"a","content_type":"paragraph","elements":[{"text":"x"}]},{"id":"l",`+
		`"content_type":"bullet_list","elements":[{"items":["one","tw`)
	if a := e.Answer(r, Names{}); !strings.Contains(a, `bullet_list "l" with 1 item (cut off)`+"\n") ||
		strings.Count(a, "(cut off)") != 1 {
		t.Error(a)
	}
}

// TestRestartOfOpened checks that a document that is opened again has the restart text that was shown.
func TestRestartOfOpened(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	docs := simulated(r)
	long := map[string]any{"sections": []any{}}
	for i := range 12 { // elements of over 300 bytes
		long["sections"] = append(long["sections"].([]any), map[string]any{
			"id": fmt.Sprint("p", i), "content_type": "paragraph",
			"elements": []any{map[string]any{"text": prose(r, 60)}, map[string]any{"text": prose(r, 80)}},
		})
	}
	docs["long paragraphs"], _ = json.Marshal(long)
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		doc, cuts := docs[name], 0
		for cut := 300 + r.IntN(50); cut < len(doc)-1; cut += 1 + r.IntN(60) {
			d := New(Options{})
			d.Add(doc[:cut/2])
			rest := doc[strings.Index(string(doc), d.Restart()):cut]
			if d.Add(rest).Join == "" {
				continue
			}
			cuts++
			expect.MustEqual(t, Open(d.Text(), nil, Options{}).Restart(), d.Restart(), "%s, cut at %d", name, cut)
		}
		if cuts < 3 {
			t.Errorf("%s: only %d cuts", name, cuts)
		}
	}
}
