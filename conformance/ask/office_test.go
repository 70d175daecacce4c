// Package ask_test asks questions over a generated office.
package ask_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func TestMain(m *testing.M) {
	os.Exit(workertest.Main(m, map[string]worker.Worker{source.DocumentWorker: source.ReadDocuments}))
}

// bench asks questions of one directory, through a funnel as the command does.
type bench struct {
	t       testing.TB
	k       *ask.Asker
	f       *funnel.Funnel
	sources source.Set
	owner   string
	dir     string
	store   string // directory
	counter *tokens.Counter
	limit   time.Duration // of an answer without a model; 0: none
}

func newBench(t testing.TB, dir string) *bench {
	t.Helper()
	b := &bench{t: t, dir: dir, owner: observations.Local, counter: tokens.New(tokens.O200k)}
	root := expect.Value(tree.Open(dir))(t)
	t.Cleanup(func() { _ = root.Close() })
	store := expect.Value(observations.OpenStore(observations.Options{Dir: t.TempDir()}))(t)
	t.Cleanup(func() { _ = store.Close() })
	b.f = expect.Value(funnel.New(funnel.Options{
		Store: store, Counter: b.counter, Mask: secrets.New(), Limits: funnel.Limits{LargeLines: 10_000, LargeChars: 200_000},
	}))(t)
	b.store = store.Dir()
	b.k = ask.New(ask.Options{Store: store.Dir(), Records: records.InDir(store.Dir())})
	b.sources = source.Set{
		Roots: []*tree.Root{root}, Documents: source.NewDocuments(filepath.Join(store.Dir(), "texts")),
	}
	return b
}

// call calls a tool and returns the text of its answer.
func (b *bench) call(ctx context.Context, tool tools.Tool, args any) string {
	b.t.Helper()
	raw := expect.Value(json.Marshal(args))(b.t)
	who := funnel.Session{ID: "s", Owner: b.owner}
	a := expect.Value(b.f.Call(ctx, funnel.Request{Tool: tool, Args: raw, Who: who, Sources: b.sources}))(b.t)
	return a.Blocks[0].Text
}

// try asks a question.
func (b *bench) try(a ask.Args) (r *ask.Result, text string, err error) {
	b.t.Helper()
	text = b.call(b.t.Context(), b.k.Command(b.limit, func(whole *ask.Result, failed error) { r, err = whole, failed }), a)
	return r, text, err
}

// ask answers a question, again until all files are indexed, and checks that its text is short.
func (b *bench) ask(a ask.Args) (*ask.Result, string) {
	b.t.Helper()
	r, text, err := b.try(a)
	for err == nil && strings.Contains(text, "not indexed yet") {
		r, text, err = b.try(a)
	}
	expect.Must(b.t, err, a.Question)
	if n := b.counter.Count(text); n > 320 {
		b.t.Errorf("%s: %d tokens:\n%s", a.Question, n, text)
	}
	return r, text
}

func write(t testing.TB, dir, name string, text []byte) {
	t.Helper()
	at := filepath.Join(dir, name)
	expect.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	expect.Must(t, os.WriteFile(at, text, 0o600))
}

// docx returns a document with one paragraph for each line.
func docx(lines ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name, text string) {
		w, _ := z.Create(name) // in memory, it does not fail
		_, _ = w.Write([]byte(`<?xml version="1.0"?>` + text))
	}
	add("[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`)
	add("_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r"`+
		` Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>`+
		`</Relationships>`)
	body := ""
	for _, l := range lines {
		half := len(l) / 2 // runs are split anywhere
		body += `<w:p><w:r><w:t xml:space="preserve">` + l[:half] + `</w:t></w:r><w:r><w:t xml:space="preserve">` + l[half:] +
			`</w:t></w:r></w:p>`
	}
	add("word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`+body+
		`</w:body></w:document>`)
	_ = z.Close()
	return b.Bytes()
}

// document returns lines in the format of an extension.
func document(ext string, lines []string) []byte {
	text := strings.Join(lines, "\n") + "\n"
	switch ext {
	case "md":
		return []byte("# " + lines[0] + "\n\n" + strings.Join(lines[1:], "\n\n") + "\n")
	case "docx":
		return docx(lines...)
	case "html":
		return []byte("<html><head><style>p{}</style></head><body><h1>" + lines[0] + "</h1><p>" +
			strings.Join(lines[1:], "</p><p>") + "</p></body></html>")
	case "eml":
		return []byte("From: a@example.org\r\nTo: b@example.org\r\nSubject: " + lines[0] + "\r\nMIME-Version: 1.0\r\n" +
			"Content-Type: text/plain; charset=utf-8\r\n\r\n" + text)
	}
	return []byte(text)
}

// question is a question whose answer is known.
type question struct {
	text  string
	facts []string // texts, each of which one of the facts has
	files []string // that give a fact, or are named as missing
	count int64    // of files; −1: none is asked for
}

// office writes 200 documents and returns questions on them.
func office(t testing.TB, dir string) (all []question) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	names := strings.Fields("Nordwind Seeblick Falkenhof Morgenrot Steinbach Lindental Kupferberg Auerfeld Birkenau Tannhain")
	people := []string{"Petra Lang", "Jonas Weber", "Amira Said", "Luc Moreau", "Elena Ruiz", "Tom Baker"}
	exts := []string{"txt", "md", "docx", "html", "eml"}
	counts := map[string]int64{}
	invoices := map[string][]string{}
	for i := range 120 {
		customer, ext := names[i%len(names)], exts[i%len(exts)]
		counts[ext]++
		amount := fmt.Sprintf("%d.%02d EUR", 100+r.IntN(900), r.IntN(100))
		due := fmt.Sprintf("2026-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))
		name := fmt.Sprintf("invoices/invoice_%04d.%s", 1000+i, ext)
		write(t, dir, name, document(ext, []string{
			fmt.Sprintf("Invoice number %d", 1000+i), "Customer: " + customer + " GmbH", "Total amount: " + amount,
			"Payment is due on " + due + ".", "Thank you for your business.",
		}))
		invoices[customer] = append(invoices[customer], name)
		if i%8 == 0 {
			number := fmt.Sprintf("invoice number %d", 1000+i)
			all = append(all, question{"what is the total amount of " + number + "?", []string{amount}, nil, -1},
				question{"when is " + number + " due?", []string{due}, nil, -1})
		}
	}
	for i := range 40 {
		ext := exts[(i+2)%len(exts)]
		counts[ext]++
		partner, who := names[i%len(names)]+fmt.Sprint(i), people[r.IntN(len(people))]
		end := fmt.Sprintf("%d %s 2027", 1+r.IntN(28), []string{"March", "June", "October"}[r.IntN(3)])
		write(t, dir, fmt.Sprintf("contracts/contract_%s.%s", partner, ext), document(ext, []string{
			"Service contract with " + partner, "The contract ends on " + end + ".", "It was signed by " + who + ".",
			"The notice period is three months.",
		}))
		if i%4 == 0 {
			all = append(all, question{"when does the contract with " + partner + " end?", []string{end}, nil, -1})
		}
	}
	for i := range 40 {
		ext := exts[(i+1)%len(exts)]
		counts[ext]++
		topic := []string{"heating", "parking", "lighting", "cafeteria", "elevators"}[i%5] + fmt.Sprint(i)
		write(t, dir, fmt.Sprintf("minutes/minutes_%02d.%s", i, ext), document(ext, []string{
			fmt.Sprintf("Minutes of meeting %d", i), "Present: " + people[i%6] + ", " + people[(i+1)%6],
			"The board decided to renew the " + topic + " by the end of the year.", "Next meeting in two weeks.",
		}))
		if i%8 == 0 {
			all = append(all, question{"what was decided on " + topic + "?", []string{"renew the " + topic}, nil, -1})
		}
	}
	for _, ext := range exts {
		all = append(all, question{"how many ." + ext + " files are there?", nil, nil, counts[ext]})
	}
	all = append(all, question{"how many files are there?", nil, nil, 200})
	for _, customer := range names[:4] {
		all = append(all, question{"list all invoices of customer " + customer, nil, invoices[customer], -1})
	}
	return all
}

// TestOffice asks questions over 200 documents in five formats. Files are counted exactly, a single fact is among those
// shown, and of all of something each file gives a fact or is named as missing.
func TestOffice(t *testing.T) {
	dir := t.TempDir()
	questions := office(t, dir)
	b := newBench(t, dir)
	var single, right, silent int
	for _, q := range questions {
		r, text := b.ask(ask.Args{Question: q.text, Path: "."})
		switch {
		case q.count >= 0:
			if r.Count == nil || *r.Count != q.count {
				t.Errorf("%s: %s, want %d", q.text, text, q.count)
			}
		case q.files != nil:
			for _, f := range q.files {
				if !slices.Contains(r.Files, f) && !slices.Contains(r.Coverage.Missing, f) {
					silent++
					t.Errorf("%s: %s is neither there nor missing", q.text, f)
				}
			}
		default:
			single++
			if !strings.Contains(text, q.facts[0]) {
				t.Logf("%s: not %q in:\n%s", q.text, q.facts[0], text)
				continue
			}
			right++
		}
	}
	t.Logf("%d questions: %d of %d single facts shown, %d files silent", len(questions), right, single, silent)
	if right*100 < single*95 {
		t.Error("under 95 %")
	}
}
