package intent

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestNamesOf(t *testing.T) {
	type row struct {
		Text string
		Want []string
	}
	for _, test := range append(expect.Table[row](t, "testdata/names.tsv"),
		row{"", nil},
	) {
		expect.EqualList(t, namesOf(test.Text), test.Want, test.Text)
	}
}

func TestSameName(t *testing.T) {
	for _, test := range expect.Table[struct {
		Wanted, Intent string
		Found          bool
	}](t, "testdata/same_names.tsv") {
		has := nameSet{}
		has.add(namesOf("take " + test.Intent + " now"))
		if found := len(has.missing(namesOf("use "+test.Wanted))) == 0; found != test.Found {
			t.Errorf("%q in %q: %t, want %t", test.Wanted, test.Intent, found, test.Found)
		}
	}
}

// A long message costs time in proportion to its length: this one would take minutes otherwise.
func TestNamesOfALongMessage(t *testing.T) {
	var message strings.Builder
	lines := 40_000
	if testing.Short() {
		lines = 4_000
	}
	for i := range lines {
		message.WriteString(strings.Repeat("x", i%40) + "/file.json https://a.de/" + strings.Repeat("y", i%50) + "\n")
	}
	r := Check(Intent, example(t, Intent), Options{Message: []byte(message.String())})
	if len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "90 URLs and file names of the message are missing: ") {
		t.Errorf("faults %q", r.Faults)
	}
}

// The lines that contextItems name need not stand in the intent.
func TestLinesKeptApart(t *testing.T) {
	message := []byte("use a.csv\nb.csv\nc.csv\nd.csv\n")
	for _, test := range []struct {
		items []contextItem
		want  string
	}{
		{nil, "use a.csv\nb.csv\nc.csv\nd.csv\n"},
		{[]contextItem{{first: 2, last: 3}}, "use a.csv\nd.csv\n"},
		{[]contextItem{{first: 4, last: 4}, {first: 2, last: 2}, {}}, "use a.csv\nc.csv\n"},
		{[]contextItem{{first: 1, last: 3}, {first: 2, last: 2}}, "d.csv\n"},
		{[]contextItem{{first: 2, last: 1 << 62}}, "use a.csv\n"},
	} {
		expect.Equal(t, string(without(message, test.items)), test.want, test.items)
	}
}

func TestSameLanguage(t *testing.T) {
	for _, test := range expect.Table[struct {
		Code, Text string
		Fault      bool
	}](t, "testdata/languages.tsv") {
		c := &checker{}
		c.sameLanguage(test.Code, "intent", test.Text)
		expect.Equal(t, len(c.Faults) > 0, test.Fault, "%s: %q: faults %q", test.Code, test.Text, c.Faults)
	}
}
