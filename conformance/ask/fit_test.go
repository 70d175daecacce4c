package ask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// asked is a question over files, with what its answer has and lacks.
type asked struct {
	Files    map[string]string
	Question string   // after a path and a tab, if it is asked of one
	Has      []string // in this order
	Lacks    []string
}

// inTestdata returns the questions of a file.
func inTestdata(t *testing.T, file string) map[string]asked {
	t.Helper()
	all := map[string]asked{}
	for _, c := range corpus.Rows[struct {
		Name string
		asked
	}](t, file) {
		all[c.Name] = c.asked
	}
	return all
}

// answers asks each question of its own directory.
func answers(t *testing.T, tests map[string]asked) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.Files {
				write(t, dir, name, []byte(text))
			}
			path, question, some := strings.Cut(c.Question, "\t")
			if !some {
				path, question = "", path
			}
			_, text := newBench(t, dir).ask(ask.Args{Question: question, Path: path})
			rest := text
			for _, want := range c.Has {
				at := strings.Index(rest, want)
				if at < 0 {
					t.Errorf("lacks %q, or not in order:\n%s", want, text)
					continue
				}
				rest = rest[at+len(want):]
			}
			for _, unwanted := range c.Lacks {
				expect.Lacks(t, text, unwanted)
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
func TestUnits(t *testing.T) { answers(t, inTestdata(t, "units.ndjson")) }

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
func TestAboutFiles(t *testing.T) { answers(t, inTestdata(t, "about_files.ndjson")) }
