package intent

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestNamesOf(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"see https://a.de/x.", []string{"https://a.de/x"}},
		{"(https://en.wikipedia.org/wiki/Drill_(tool))", []string{"https://en.wikipedia.org/wiki/Drill_(tool)"}},
		{"[text](https://a.de/x?y=1&z=2#top), <http://b.fr/>", []string{"https://a.de/x?y=1&z=2#top", "http://b.fr"}},
		{"„https://a.de/x“ und »www.b.de/y«", []string{"https://a.de/x", "www.b.de/y"}},
		{"https://a.de/files/b.pdf", []string{"https://a.de/files/b.pdf"}},
		{"ftp://x.fr/a.csv;s3://bucket/key", []string{"ftp://x.fr/a.csv;s3://bucket/key"}},
		{"data/q3.csv, per region", []string{"data/q3.csv"}},
		{"a.tar.gz and b.zip.", []string{"a.tar.gz", "b.zip"}},
		{"REPORT.PDF", []string{"REPORT.PDF"}},
		{`C:\Users\max\a.docx and C:\temp\log`, []string{`C:\Users\max\a.docx`, `C:\temp\log`}},
		{"../src/main.go:42 and ./run.sh", []string{"../src/main.go", "./run.sh"}},
		{"/etc/hosts, ~/.config/x and ~/bin/run.sh", []string{"/etc/hosts", "~/.config/x", "~/bin/run.sh"}},
		{"die protokoll.pdf-Datei", []string{"protokoll.pdf"}},
		{"Größe_Übersicht.pdf, отчёт.docx", []string{"Größe_Übersicht.pdf", "отчёт.docx"}},
		{"main.c and util.h", []string{"main.c", "util.h"}},
		{"the Makefile, .env and Dockerfile", []string{"Makefile", ".env", "Dockerfile"}},
		{"報告書.pdfを要約", []string{"報告書.pdf"}},
		{"`notes.md`, \"a b.txt\"", []string{"notes.md", "b.txt"}},
		{"a.csv and a.csv", []string{"a.csv"}},
		// no names
		{"z.B. d.h. e.g. i.e. u.s.w. i.d.R. p.m. 3.5 v1.2 1.250,50 €", nil},
		{"Node.js, Vue.js, ASP.NET and .NET 8", nil},
		{"and/or, 24/7, km/h, TCP/IP, input/output", nil},
		{"mail max@firma.de or x@data.py", nil},
		{"a .csv file, *.csv files, csv/xlsx", nil},
		{"fmt.Println(x), obj.json() and example.com", nil},
		{"", nil},
	} {
		expect.EqualList(t, namesOf(test.text), test.want, test.text)
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
