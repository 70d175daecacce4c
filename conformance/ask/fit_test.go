package ask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// asked is a question over files, with what its answer has and lacks.
type asked struct {
	files    map[string]string
	question string   // after a path and a tab, if it is asked of one
	has      []string // in this order
	lacks    []string
}

// answers asks each question of its own directory.
func answers(t *testing.T, tests map[string]asked) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				write(t, dir, name, []byte(text))
			}
			path, question, some := strings.Cut(c.question, "\t")
			if !some {
				path, question = "", path
			}
			_, text := newBench(t, dir).ask(ask.Args{Question: question, Path: path})
			rest := text
			for _, want := range c.has {
				at := strings.Index(rest, want)
				if at < 0 {
					t.Errorf("lacks %q, or not in order:\n%s", want, text)
					continue
				}
				rest = rest[at+len(want):]
			}
			for _, unwanted := range c.lacks {
				if strings.Contains(text, unwanted) {
					t.Errorf("has %q:\n%s", unwanted, text)
				}
			}
		})
	}
}

// invoices are files that end in their total, with a word for each in the name.
func invoices(n int, name, title string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf(name, i+1)] = fmt.Sprintf(title+"\n\nDate: 2026-03-%02d\n\nHammer and nails\n\n"+
			"Total due: %d.50 EUR\n\nThank you for your order.\n", 20441+i, i+1, 100+i)
	}
	return files
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

// TestFits finds all files that fit a question, and shows the lines that answer it.
func TestFits(t *testing.T) {
	far := strings.Repeat("Nothing of interest was said on that day, and nobody wrote it down in the book.\n\n", 40)
	long := strings.Repeat("you know that part where the box turns around ", 40)
	answers(t, map[string]asked{
		"all of something": {invoices(6, "inv_%d.txt", "Bill %d"), "List all invoices and their total due",
			[]string{"6 of 6 files", "inv_1.txt", "100.50", "inv_6.txt", "105.50", "no file has: invoices"}, []string{"list"}},
		"words that no file has": {invoices(6, "inv_%d.txt", "Bill %d"), "total due on the bill that came from Quillon",
			[]string{"FACTS", "Total due", "no file has: came, Quillon"}, nil},
		"words that other directories have": {
			with(invoices(6, "bills/inv_%d.txt", "Bill %d"), "a/notes.txt", "Quillon, invoices\n"),
			"bills\tlist all invoices of Quillon and their total due",
			[]string{"6 of 6 files", "100.50", "105.50", "no file has: invoices, Quillon"}, nil,
		},
		"words that the glob leaves out": {
			with(invoices(6, "inv_%d.txt", "Bill %d"), "notes.md", "Quillon, invoices\n"),
			"*.txt\tlist all invoices of Quillon and their total due",
			[]string{"6 of 6 files", "no file has: invoices, Quillon"}, nil,
		},
		"files beyond those shown": {invoices(30, "inv_%02d.txt", "Bill %d"), "list the total due of all bills",
			[]string{"30 of 30 files", "and ", "more, in inv_", "and "}, nil},
		"those that fit before others": {
			with(with(invoices(30, "bill_%02d.txt", "Bill %d"), "bill_99.txt", "Illegible."), "note.txt", "Note."),
			"list the total due of all bills",
			[]string{"more, in bill_", "without: bill_99.txt"}, nil,
		},
		"one of many": {invoices(9, "doc%d.txt", "Invoice %d"), "total due on invoice 20443",
			[]string{"From doc3.txt:\n  7: Total due: 102.50 EUR\n  1: Invoice 20443"}, []string{"doc2.txt", "doc4.txt"}},
		"named by its file": {invoices(9, "invoice_%d.txt", "Bill %d"), "what is the total due on invoice 20443",
			[]string{"From invoice_3.txt:\n  7: Total due: 102.50"}, []string{"invoice_2.txt:\n"}},
		"far below its title": {
			with(invoices(9, "doc%d.txt", "Invoice %d"), "long.txt", "Invoice 31999\n\n"+far+"Total due: 77.25 EUR\n"),
			"what is the total due on invoice 31999", []string{"From long.txt:\n", "Total due: 77.25 EUR", "Invoice 31999"},
			[]string{"doc1.txt"},
		},
		"a plain word elsewhere": {
			with(invoices(9, "doc%d.txt", "Invoice %d of Quillon"), "story.txt", "A man with an invoice came to town.\n"),
			"which invoices came from Quillon", []string{"From doc1.txt:\n", "Invoice 20441 of Quillon"},
			[]string{"story.txt:\n"},
		},
		"not in its words": {invoices(9, "doc%d.txt", "Invoice %d"), "when was invoice 20443 written",
			[]string{"From doc3.txt:\n", "3: Date: 2026-03-03", "no file has: written"}, []string{"doc2.txt"}},
		"the title comes last": {invoices(9, "doc%d.txt", "Invoice %d"), "which nails are on invoice 20443",
			[]string{"From doc3.txt:\n  5: Hammer and nails\n  1: Invoice 20443"}, nil},
		"a list of all with others": {
			with(invoices(4, "doc%d.txt", "Invoice %d of Quillon"), "a.txt", "Quillon lives in Moss.\n"),
			"list all invoices of Quillon", []string{"doc1.txt", "doc4.txt"}, []string{"story"},
		},
		"a long line": {map[string]string{"talk.txt": long + "and the antenna voltage is forty two volts " + long},
			"what is the antenna voltage", []string{"…", "antenna voltage is forty two volts", "…"}, nil},
		"a wide row": {map[string]string{"wide.csv": "id,name," + strings.Repeat("column,", 60) + "\n" +
			"7,Quillon," + strings.Repeat("value,", 60) + "\n8,Brandt," + strings.Repeat("value,", 60) + "\n"},
			"who is Quillon", []string{"7,Quillon,"}, nil},
		"records are not counted by names": {invoices(6, "invoice_%d.txt", "Bill %d"), "how many hammers are on the invoices",
			[]string{"FACTS"}, []string{"in the name"}},
	})
}

// TestUnits takes an item of a list and wrapped prose whole.
func TestUnits(t *testing.T) {
	const flat = "The deposit of the flat was paid by Quillon on 4 May."
	for _, c := range []struct{ name, text, question, has, lacks string }{
		{"item.md", "# Lease\n\n- The deposit is due within\n  ten days of signing.\n- Pets are allowed.\n",
			"when is the deposit due", "3-4: The deposit is due within ten days of signing.", "Pets"},
		{"no_indent.txt", "1. The deposit is due within\nten days of signing.\n2. Pets are allowed.\n",
			"when is the deposit due", "1-2: 1. The deposit is due within ten days of signing.", "Pets"},
		{"record.yaml", "terms:\n  - name: Quillon\n    deposit: 900\n  - name: Brandt\n    deposit: 800\n",
			"what is the deposit of Quillon", "name: Quillon, deposit: 900", ""},
		{"text.yaml", "rooms: 3\nnote: >\n  The deposit of the flat was paid\n  by Quillon on 4 May.\npets: no\n",
			"who paid the deposit of the flat", "2-4: note: " + flat, "pets"},
		{"comment.yaml", "# The deposit of the flat was paid\n# by Quillon on 4 May.\npets: no\n",
			"who paid the deposit of the flat", "1-2: " + flat, "pets"},
		{"short.yaml", "log:\n  level: warn\n  # The deposit is due\n  # in ten days.\n  file: a\n",
			"when is the deposit due", "3-4: The deposit is due in ten days.\n", ""},
		{"indented.txt", "Minutes\n\n    It was said of the heating that it works again. The deposit of\n" +
			"    the flat was paid by Quillon on 4 May. The roof was left for the next time.\n",
			"who paid the deposit of the flat", "3-4: " + flat, "roof"},
		{"folded.txt", "Deposit: paid by Quillon\n   in two parts\nPets: none\n",
			"who paid the deposit", "1-2: Deposit: paid by Quillon in two parts", "Pets"},
		{"sign.txt", "Storage\n\n-18 °C is the temperature of the freezer.\n",
			"what is the temperature of the freezer", "3: -18 °C is", ""},
		{"keys.json", "{\n  \"deposit\": 900,\n  \"tenant\": \"Quillon\",\n  \"pets\": \"none\"\n}\n",
			"what is the deposit", "2: \"deposit\": 900,\n", "pets"},
	} {
		lacks := []string{c.lacks}
		if c.lacks == "" {
			lacks = nil
		}
		answers(t, map[string]asked{c.name: {map[string]string{c.name: c.text}, c.question, []string{c.has}, lacks}})
	}
}

// TestNumbers finds numbers however their digits are grouped.
func TestNumbers(t *testing.T) {
	text := "The density of iron is 7.874 g per cm3.\n\nThe town has 450,000 people.\n\nThe grant was 12.500 euro.\n\n" +
		"The standard 38.101 sets limits.\n\nThe parts weigh 1 250 300 g.\n\nThe fee is 1,234.56 EUR.\n\n" +
		"The rate is 3.14 percent.\n"
	for question, want := range map[string]string{
		"7.874": "density", "what weighs 7.874?": "density", "450,000": "town", "450 000": "town", "450.000": "town",
		"450000": "town", "450'000 people?": "town", "12.500": "grant", "12,500": "grant", "38.101": "standard",
		"1250300": "parts", "1,250,300": "parts", "1 250 300": "parts", "1.234,56": "fee", "1234.56": "fee", "3.14": "rate",
		"what has 250?": "parts",
	} {
		answers(t, map[string]asked{question: {map[string]string{"a.txt": text, "b.txt": "Nothing.\n"}, question,
			[]string{"1 with facts"}, []string{"no file has"}}})
		answers(t, map[string]asked{question + " " + want: {map[string]string{"a.txt": text}, question, []string{want}, nil}})
	}
}

// TestAboutFiles answers with the size or the time in the first line, and looks at what files say if none has the name.
func TestAboutFiles(t *testing.T) {
	files := map[string]string{
		"staff.csv": "id,name\n1,Quillon\n", "app.txt": "The log levels are debug and error.\n", "x.log": "started\n",
	}
	tree := map[string]string{"reports/a.txt": "x", "reports/b.csv": "x", "data/c.txt": "x"}
	types := map[string]string{"a.doc": "x", "b.docx": "x", "c.docx": "x", "d.txt": "x"}
	answers(t, map[string]asked{
		"size": {files, "how big is staff.csv", []string{"staff.csv has 18 bytes (no model)\n"}, nil},
		"time": {files, "when was staff.csv last modified", []string{"staff.csv was last modified 20"},
			[]string{"1 file called"}},
		"birth":     {files, "when was staff.csv created", []string{"staff.csv was created "}, nil},
		"German":    {files, "Wie groß ist staff.csv?", []string{"staff.csv has 18 bytes"}, nil},
		"two types": {types, "how many .doc and .docx files are there?", []string{"3 .doc/.docx files"}, nil},
		"no such file": {files, "is there a file called error?", []string{
			"The log levels are debug", `note: 0 files with "error" in the name`,
		}, []string{"no file has"}},
		"nothing": {files, "is there a file called zebra?", []string{`0 files with "zebra" in the name (no model)`}, nil},
		"folder":  {tree, "how many files are in the reports folder", []string{"2 files in reports (no model)\n"}, nil},
		"no folder": {tree, "how many files are in the nosuch folder", []string{
			"3 files (no model)", `note: no directory is called "nosuch"`,
		}, nil},
		"condition": {tree, "how many txt files are larger than 1 MB", []string{
			"2 .txt files", "note: not applied, of the question: larger",
		}, nil},
		"log levels": {files, "list all log levels", []string{"The log levels are debug"}, []string{"1 .log"}},
	})
}
