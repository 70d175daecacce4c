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
	for _, test := range []struct {
		wanted, intent string
		found          bool
	}{
		{"https://A.de/x/", "https://a.de/x", true},
		{"https://a.de", "https://a.de/", true},
		{"https://a.de/X", "https://a.de/x", false},
		{"https://a.de/x", "https://a.de/xy", false},
		{"http://a.de/x", "https://a.de/x", false},
		{"data.csv", "/tmp/in/data.csv", true},
		{"in/data.csv", "/tmp/in/data.csv", true},
		{"/tmp/in/data.csv", "data.csv", false},
		{"data.csv", "old-data.csv", false},
		{"data.csv", "data.csv.gz", false},
		{`src\a.go`, "src/a.go", true},
		{"./a.go", "a.go", true},
		{"Cafe\u0301.pdf", "Café.pdf", true},
		{"Report.pdf", "report.pdf", false},
		{"ファイル報告書.pdf", "報告書.pdf", true},
		{"報告書.pdf", "計画書.pdf", false},
		{"x.pdf", "https://a.de/x.pdf", false},
	} {
		has := nameSet{}
		has.add(namesOf("take " + test.intent + " now"))
		if found := len(has.missing(namesOf("use "+test.wanted))) == 0; found != test.found {
			t.Errorf("%q in %q: %t, want %t", test.wanted, test.intent, found, test.found)
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
	for _, test := range []struct {
		code, text string
		fault      bool
	}{
		{"de", "Create the report from the data and send it.", true},
		{"de", "Erstelle den Bericht aus the and with.", false},
		{"en", "Den Bericht aus der Datei erstellen und bitte senden.", true},
		{"en", "Send the Bericht und bitte nicht eine Mail.", false},
		{"fr", "Elabora el informe según los datos y las notas sobre más.", true},
		{"nl", "Maak een rapport van het bestand.", false},
		{"ru", "Make a table of all expenses, please.", true},
		{"ru", "Сделать таблицу XLSX from Excel and the rest", false},
		{"en", "Сделать таблицу расходов без НДС", true},
		{"ja", "Summarize the attached report, please.", true},
		{"pl", "Przygotuj raport z danych i wyślij go.", false},
		{"sv", "Sammanfatta rapporten och skicka den.", false},
		{"de", "GDP 2023?", false},
		{"de", "", false},
	} {
		c := &checker{}
		c.sameLanguage(test.code, "intent", test.text)
		expect.Equal(t, len(c.Faults) > 0, test.fault, "%s: %q: faults %q", test.code, test.text, c.Faults)
	}
}
