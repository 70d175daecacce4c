package intent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// Notes say what is unusual or was not checked; none of it makes a document invalid.
func TestNotes(t *testing.T) {
	doc := example(t, Intent)
	for _, test := range []struct {
		name, field, value string
		options            Options
		want               string
	}{
		{"no criteria", "successCriteria", `[]`, Options{}, "successCriteria: empty; nothing says when the work is finished"},
		{
			"long intent", "intent", fmt.Sprintf("%q", "Use data/q3.csv. "+strings.Repeat("And this. ", 200)), Options{},
			"intent: 2017 characters; one short paragraph is wanted",
		},
		{
			"short request", "primaryGoal", `"x"`, Options{Message: []byte(strings.Repeat("Do this. ", 100))},
			"normalizedRequest: 106 characters for a message of 899; it must leave nothing out",
		},
		{
			"very long message", "contextItems", `[{"source":"obs:k3v9q2m7x4ab","lines":"2-"}]`,
			Options{
				Message: []byte("Go.\n" + strings.Repeat("x\n", maxSearched/2)), Window: 1000,
				Known: func(string) bool { return true },
			},
			"intent: only the first 4 MiB of the message were searched for URLs and file names",
		},
		{
			"sources unknown", "contextItems", `[{"source":"obs:k3v9q2m7x4ab","lines":7}]`,
			Options{Message: []byte(strings.Repeat("m", 999)), Window: 1000},
			"contextItems[0].source not checked: the sources are unknown",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Check(Intent, with(t, doc, test.field, test.value), test.options)
			if len(r.Faults) > 0 || !slices.Equal(r.Notes, []string{test.want}) {
				t.Errorf("faults %q, notes %q, want %q", r.Faults, r.Notes, test.want)
			}
		})
	}
	if r := Check(Intent, doc, Options{}); len(r.Notes) > 0 { // the control
		t.Errorf("notes %q for the example", r.Notes)
	}
}

// A name that stands only in lines kept apart, or in copied data, need not stand in the intent.
func TestNamesKeptApart(t *testing.T) {
	doc := example(t, Intent)
	message := []byte(
		"Sum up data/q3.csv.\n" + strings.Repeat("https://a.example/raw.json is a row of the table\n", 50),
	)
	lost := "intent: https://a.example/raw.json of the message is missing; name it in the intent"
	for items, want := range map[string][]string{
		`[]`: {lost},
		`[{"source":"obs:k3v9q2m7x4ab","lines":"2-51"}]`:                           nil,
		`[{"source":"obs:k3v9q2m7x4ab","lines":"2-"}]`:                             nil,
		`[{"source":"obs:k3v9q2m7x4ab","lines":"2-50"}]`:                           {lost},
		`[{"source":"obs:k3v9q2m7x4ab","lines":2}]`:                                {lost},
		`[{"source":"obs:k3v9q2m7x4ab"}]`:                                          {lost},
		`[{"content":"` + strings.Repeat("https://a.example/raw.json ", 9) + `"}]`: nil,
	} {
		r := Check(Intent, with(t, doc, "contextItems", items), Options{
			Message: message, Window: 1000, Known: func(string) bool { return true },
		})
		expect.EqualList(t, r.Faults, want, "%s: faults", items)
	}
}

// Items that a fault names are counted all the same, and what they hold is not taken for nothing.
func TestFaultyItemsCount(t *testing.T) {
	doc := example(t, Intent)
	const items = `["obs:k3v9q2m7x4ab", {"title": "data"}]`
	for name, test := range map[string]struct {
		message []byte
		want    string
	}{
		"short message": {
			[]byte("Sum up data/q3.csv."),
			"contextItems: 2 items, but the message has 19 tokens, under 10 % of the window of 1000; leave the list empty",
		},
		"no message": {nil, ""},
	} {
		r := Check(Intent, with(t, doc, "contextItems", items), Options{Message: test.message, Window: 1000})
		got := slices.DeleteFunc(r.Faults, func(f string) bool { return !strings.HasPrefix(f, "contextItems:") })
		if strings.Join(got, "") != test.want || len(r.Notes) > 0 {
			t.Errorf("%s: %q, %q, want %q", name, got, r.Notes, test.want)
		}
	}
}

// What an intent does not state is not 0, and a format that stands twice is one.
func TestValuesThatAreNotStated(t *testing.T) {
	intent := example(t, Intent)
	for quality, want := range map[string]string{
		`{}`:                        "sum: accuracyThreshold 0.9; the intent names no accuracyThreshold",
		`{"accuracyThreshold": 0}`:  "sum: accuracyThreshold 0.9, not 0",
		`{"accuracyThreshold":0.9}`: "",
	} {
		tasks := `{"overview":"x","userMessage":"y","tasks":[{"id":"sum","objective":"z","expectedFormats":["pdf","pdf"],` +
			`"qualityRequirements":{"accuracyThreshold":0.9}}]}`
		of := with(t, with(t, intent, "qualityRequirements", quality), "expectedFormats", `["pdf"]`)
		r := Check(Tasks, []byte(tasks), Options{Intent: of})
		if len(r.Faults) > 0 || strings.Join(r.Notes, "; ") != want {
			t.Errorf("%s: %q, %q, want %q", quality, r.Faults, r.Notes, want)
		}
	}
}
