package intent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// with returns the document with one field replaced; value "" removes it.
func with(t testing.TB, doc []byte, name, value string) []byte {
	t.Helper()
	var o object
	expect.Must(t, json.Unmarshal(doc, &o))
	if delete(o, name); value != "" {
		o[name] = []byte(value)
	}
	out, err := json.Marshal(o)
	expect.Must(t, err)
	return out
}

// Each field of an intent and an action that is missing or null is named: nothing is inherited.
func TestFieldsMustBeThere(t *testing.T) {
	for level, fields := range map[Level][]field{Intent: intentFields, Action: actionFields} {
		expect.MustEqual(t, len(fields), map[Level]int{Intent: 9, Action: 11}[level], "%s, fields", level)
		for _, f := range fields {
			for value, want := range map[string]string{
				"":     f.name + ": missing; give " + f.allowed,
				"null": f.name + ": null is not " + f.allowed,
			} {
				doc := with(t, example(t, level), f.name, value)
				for _, o := range []Options{{}, {Intent: example(t, Intent)}} {
					if got := Check(level, doc, o); !slices.Contains(got.Faults, want) {
						t.Errorf("%s: %q is not among the faults %q", level, want, got.Faults)
					}
				}
			}
		}
	}
}

// A task overrides single values of the workflow and inherits the others.
func TestTaskOverride(t *testing.T) {
	workflow := example(t, Intent) // documents, pdf, 0.95, 1
	for _, test := range []struct {
		name, task string
		want       []string
	}{
		{"inherits all", `{}`, nil},
		{"same values", `{"dataType":"documents","expectedFormats":["pdf"]}`, nil},
		{"format", `{"expectedFormats":["csv"]}`, []string{"task_2: csv, not pdf"}},
		{"two formats", `{"expectedFormats":["xlsx","csv"]}`, []string{"task_2: csv, xlsx, not pdf"}},
		{"type", `{"dataType":"numbers"}`, []string{"task_2: numbers, not documents"}},
		{
			"one threshold", `{"qualityRequirements":{"accuracyThreshold":0.5}}`,
			[]string{"task_2: accuracyThreshold 0.5, not 0.95"},
		},
		{
			"threshold 0", `{"qualityRequirements":{"completenessThreshold":0,"accuracyThreshold":null}}`,
			[]string{"task_2: completenessThreshold 0, not 1"},
		},
		{"unclear states nothing", `{"dataType":"unknown","expectedFormats":[],"qualityRequirements":null}`, nil},
		{
			"all", `{"dataType":"code","expectedFormats":["py"],"qualityRequirements":{"accuracyThreshold":1}}`,
			[]string{"task_2: code, not documents", "task_2: py, not pdf", "task_2: accuracyThreshold 1, not 0.95"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			task := with(t, with(t, []byte(test.task), "id", `"task_2"`), "objective", `"Sum up"`)
			plan := fmt.Sprintf(
				`{"overview":"o","userMessage":"u","tasks":[{"id":"task_1","objective":"Read"},%s]}`, task,
			)
			r := Check(Tasks, []byte(plan), Options{Intent: workflow})
			if len(r.Faults) > 0 || !slices.Equal(r.Notes, test.want) {
				t.Errorf("faults %q, notes %q, want notes %q", r.Faults, r.Notes, test.want)
			}
		})
	}
	part := Check(Tasks, []byte(`{"overview":"o","userMessage":"u","tasks":[`+
		`{"id":"task_1","objective":"Write","expectedFormats":["pdf"]}]}`),
		Options{Intent: with(t, workflow, "expectedFormats", `["pdf","xlsx"]`)})
	expect.EqualList(t, part.Notes, []string{"task_1: only pdf of pdf, xlsx"}, "one of two formats: notes")
	r := Check(Tasks, example(t, Tasks), Options{})
	if want := "tasks not compared with the intent: it is unknown"; !slices.Equal(r.Notes, []string{want}) {
		t.Errorf("without the intent: notes %q, want %q", r.Notes, want)
	}
}

// The lists and inputs of an action are checked.
func TestActionLevel(t *testing.T) {
	doc := example(t, Action)
	for _, test := range []struct{ field, value, fault string }{
		{"learnings", `"one"`, `learnings: "one" is not a list of texts, [] for none`},
		{"learnings", `["a", 1]`, `learnings[1]: 1 is not a text that is not empty`},
		{"requiredInputDocuments", `{}`, `requiredInputDocuments: an object is not a list of names (obs:ID or a path), [] for none`},
		{"requiredConnection", `[]`, `requiredConnection: a list is not a text, "" for none`},
		{"userMessage", `["Hello"]`, `userMessage: a list is not a text that is not empty`},
		{"parametersContext", `{"a":1}`, `parametersContext: an object is not a text, "" for none`},
		{"action", `""`, `action: "" is not a text that is not empty`},
		{"dataType", `"Numbers"`, `dataType: "Numbers" is not one of numbers, text, documents, analysis, code, unknown`},
	} {
		r := Check(Action, with(t, doc, test.field, test.value), Options{Known: func(string) bool { return true }})
		expect.EqualList(t, r.Faults, []string{test.fault}, "%s = %s: faults, %q", test.field, test.value, test.fault)
	}
	for _, test := range []struct {
		name, objective string
		faults          int
	}{
		{"copied from the workflow", "Save the sums as csv", 1},
		{"its own", "Save the report as pdf", 0},
		{"only an input is named", "Read the CSV file and write the report", 0},
	} {
		changed := with(
			t,
			with(t, doc, "expectedFormats", `["pdf"]`),
			"actionObjective",
			fmt.Sprintf("%q", test.objective),
		)
		r := Check(Action, changed, Options{Intent: example(t, Intent), Known: func(string) bool { return true }})
		expect.Equal(t, len(r.Faults), test.faults, "%s: faults %q", test.name, r.Faults)
	}
	r := Check(Action, doc, Options{})
	if want := "requiredInputDocuments not checked: the sources are unknown"; !slices.Equal(r.Notes, []string{want}) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
}

// A document that belongs to an intent names one: another document in its place is a fault.
func TestNamedIntentIsNone(t *testing.T) {
	for name, intent := range map[string]string{
		"a plan":   string(example(t, Tasks)),
		"no JSON":  "LARGE OUTPUT",
		"empty":    "",
		"a number": "12",
	} {
		for _, level := range []Level{Tasks, Action} {
			r := Check(level, example(t, level), Options{
				Intent: []byte(intent), Known: func(string) bool { return true },
			})
			if len(r.Faults) != 1 ||
				!strings.HasPrefix(r.Faults[0], "intent: the document that was named is not an intent (") {
				t.Errorf("%s, %s: faults %q", level, name, r.Faults)
			}
		}
	}
}

// Data is taken out of a message from a tenth of the window on.
func TestContextItemsFromATenth(t *testing.T) {
	tokens := func(text []byte) int64 { return int64(len(text)) }
	known := func(name string) bool { return name == "obs:k3v9q2m7x4ab" }
	byName := `[{"source":"obs:k3v9q2m7x4ab","lines":"2-30"}]`
	copied := `[{"content":"` + strings.Repeat("x", 400) + `"}]`
	const few = "contextItems: 1 item, but the message has 999 tokens, under 10 % of the window of 10000; leave the list empty"
	for _, test := range []struct {
		name, items   string
		message       int // tokens; -1: unknown
		window        int64
		faults, notes []string
	}{
		{"none", `[]`, 999, 10000, nil, nil},
		{"none of a long message", `[]`, 5000, 10000, nil, nil},
		{"none, window unknown", `[]`, 999, 0, nil, nil},
		{"below", byName, 999, 10000, []string{few}, nil},
		{"a tenth", byName, 1000, 10000, nil, nil},
		{
			"a tenth of 10001", byName, 1000, 10001,
			[]string{strings.NewReplacer("999", "1000", "10000", "10001").Replace(few)}, nil,
		},
		{"copied, a tenth", copied, 1000, 10000, nil, nil},
		{"window unknown", byName, 999, 0, nil, []string{"contextItems not checked: the window is unknown"}},
		{"message unknown", byName, -1, 10000, nil, []string{"contextItems not checked: the message is unknown"}},
		{
			"message unknown, all copied", copied, -1, 10000,
			[]string{"contextItems: 1 item, but all of it has 400 tokens, under 10 % of the window of 10000; leave the list empty"}, nil,
		},
		{
			"no such source", `[{"source":"obs:000000000000"}]`, 1000, 10000,
			[]string{`contextItems[0].source: "obs:000000000000" was not found: no such observation, and no such file below a root`}, nil,
		},
		{
			"lines of none", `[{"source":"obs:k3v9q2m7x4ab","lines":"0-3"}]`, 1000, 10000,
			[]string{`contextItems[0].lines: "0-3" is not lines of the source, such as "10-250"`}, nil,
		},
		{
			"a name in a text", `["obs:k3v9q2m7x4ab lines 2-30"]`, 1000, 10000,
			[]string{
				`contextItems[0]: "obs:k3v9q2m7x4ab lines 2-30" is not {"source": "obs:ID", "lines": "10-250"}; write a name so`,
			}, nil,
		},
		{
			"a number", `[7]`, 1000, 10000,
			[]string{`contextItems[0]: 7 is not {"source": "obs:ID", "lines": "10-250"}, {"content": …} or a text`}, nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{Tokens: tokens, Window: test.window, Known: known}
			if test.message >= 0 {
				o.Message = []byte(strings.Repeat("m", test.message))
			}
			r := Check(Intent, with(t, example(t, Intent), "contextItems", test.items), o)
			r.Notes = slices.DeleteFunc(
				r.Notes,
				func(n string) bool { return strings.HasPrefix(n, "normalizedRequest") },
			)
			if !slices.Equal(r.Faults, test.faults) || !slices.Equal(r.Notes, test.notes) {
				t.Errorf("faults %q, notes %q\nwant %q, %q", r.Faults, r.Notes, test.faults, test.notes)
			}
		})
	}
}

// A report is bounded, whatever is sent, and shows nothing hidden.
func TestReportIsBounded(t *testing.T) {
	long := `"` + strings.Repeat("x", 100_000) + "\u202e" + `"`
	many := "[" + strings.Repeat("1,", 100_000) + "1]"
	for name, doc := range map[string]string{
		"long value":  string(with(t, example(t, Intent), "dataType", long)),
		"long name":   "{" + long + ":1}",
		"many faults": string(with(t, example(t, Intent), "successCriteria", many)),
		"deep":        strings.Repeat("[", 100_000),
		"many items":  string(with(t, example(t, Intent), "contextItems", many)),
	} {
		r := Check(Intent, []byte(doc), Options{})
		all := strings.Join(r.Faults, "\n") + strings.Join(r.Notes, "\n")
		if len(r.Faults) == 0 || len(r.Faults) > maxFaults+1 || len(all) > 8000 || strings.Contains(all, "\u202e") {
			t.Errorf("%s: %d faults in %d bytes: %.300s", name, len(r.Faults), len(all), all)
		}
	}
	r := Check(Intent, with(t, example(t, Intent), "successCriteria", many), Options{})
	expect.Equal(t, r.Faults[len(r.Faults)-1], "99981 more faults", "last fault")
}

func TestUnknownLevel(t *testing.T) {
	r := Check("workflow", []byte("{}"), Options{})
	if want := `level: "workflow" is not one of intent, tasks, action`; !slices.Equal(r.Faults, []string{want}) {
		t.Errorf("faults %q, want %q", r.Faults, want)
	}
}

// The codes are those of ISO 639-1: sorted, of two letters, each once.
func TestLanguages(t *testing.T) {
	all := strings.Fields(languages)
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all) < 183 || len(all) > 190 {
		t.Errorf("%d codes, sorted: %t", len(all), slices.IsSorted(all))
	}
	for _, code := range slices.Concat(all, slices.Collect(maps.Keys(commonWords)), slices.Collect(maps.Keys(scripts))) {
		if !isLanguage(code) {
			t.Errorf("%q is not a code", code)
		}
	}
	for _, code := range []string{"", "d", "d ", " d", "deu", "EN", "xx", "e n"} {
		if isLanguage(code) {
			t.Errorf("%q is a code", code)
		}
	}
}

// FuzzCheck checks that no document makes a check panic, that invalid JSON has a fault, and that a report is the same
// each time.
func FuzzCheck(f *testing.F) {
	levels := []Level{Intent, Tasks, Action, ""}
	all, _ := corpus(f)
	for _, r := range all {
		f.Add(uint8(slices.Index(levels, r.level)), []byte(r.parts["reply"]), []byte(r.parts["message"]), int64(1000))
	}
	f.Add(uint8(0), []byte(`{"intent":"\ud800"}`), []byte("C:\\a.txt"), int64(-1))
	f.Fuzz(func(t *testing.T, at uint8, doc, message []byte, window int64) {
		level := levels[int(at)%len(levels)]
		for _, known := range []func(string) bool{nil, func(name string) bool { return name != "" }} {
			o := Options{Message: message, Window: window, Known: known, Intent: message}
			got := Check(level, doc, o)
			if _, fault := parse(doc); fault != "" && len(got.Faults) == 0 {
				t.Fatalf("no fault: %s", fault)
			}
			var v any
			inner := unfence([]byte(strings.TrimPrefix(string(doc), "\xef\xbb\xbf")))
			if json.Unmarshal(inner, &v) != nil && len(got.Faults) == 0 {
				t.Fatal("invalid JSON has no fault")
			}
			if again := Check(level, doc, o); !slices.Equal(got.Faults, again.Faults) ||
				!slices.Equal(got.Notes, again.Notes) {
				t.Fatalf("%q, then %q", got, again)
			}
		}
	})
}
