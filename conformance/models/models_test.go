package models

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// packages are the directories of the tree that the models read, with what their files say.
var packages = []struct{ dir, does string }{
	{"api", "answers requests over HTTP on port 8443 and refuses bodies over 2 MiB"},
	{"auth", "checks passwords with 12 rounds of bcrypt and ends sessions after 45 minutes"},
	{"billing", "writes invoices on the 3rd of each month and rounds to cents"},
	{"cache", "keeps 4096 entries for 90 seconds"},
	{"config", "reads settings.toml and variables that begin with SHOP_"},
	{"db", "keeps a pool of 20 connections to the database"},
	{"jobs", "runs reports every night at 02:15 with 3 workers"},
	{"mail", "sends at most 200 mails an hour"},
	{"metrics", "exports counters on port 9100 every 15 seconds"},
	{"search", "builds an index of 50000 products with trigrams"},
	{"web", "renders pages from templates in German and English"},
}

// tree writes the directory of a shop: the first n packages, and contracts.
func tree(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	files := map[string]string{
		"contracts/lease.md": "# Lease\n\nThe lease with Nordwind AG ends on 31 March 2027.\n" +
			"The rent is 1,350 EUR a month, due on the 5th.\n",
		"contracts/invoice_001.txt": "Customer: Nordwind AG\nInvoice: INV-2026-017\nTotal: 4,820.50 EUR\nDue: 2026-05-31\n",
		"contracts/invoice_002.txt": "Customer: Southlight Ltd\nInvoice: INV-2026-018\nTotal: 990.00 EUR\nDue: 2026-06-15\n",
	}
	for i, p := range packages[:n] {
		files[p.dir+"/README.md"] = fmt.Sprintf("# %s\n\nThe package %s %s.\n", p.dir, p.dir, p.does)
		for part := range 4 { // with four files each they are not one order
			files[fmt.Sprintf("%s/part%d.go", p.dir, part)] = fmt.Sprintf("// Package %s %s.\npackage %s\n\n"+
				"// Limit%d limits part %d.\nconst Limit%d = %d\n", p.dir, p.does, p.dir, part, part, part, 100*i+7*part+13)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// answer is what ask --json prints, as far as it is tested.
type answer struct {
	ID, By, Answer, Ranked   string
	Completions, Extractions int
	Ungrounded, Note         []string
	Facts                    []struct{ File, By string }
	Steps                    []struct{ Tool string }
}

// figure matches a figure that no count of lines or files gives by chance.
var figure = regexp.MustCompile(`\d{3,}`)

// asks asks a question through the model and checks the answer.
func asks(t *testing.T, p *proxy, store, dir, question string, flags ...string) answer {
	t.Helper()
	out, errs, code := funnel(t, store, "", append([]string{"ask", question, "--path", dir, "--json",
		"--endpoint-url", p.url, "--endpoint-name", "smollm2", "--endpoint-context", fmt.Sprint(window)}, flags...)...)
	var a answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%q: exit code %d, %v: %.300s\n%s", question, code, err, out, errs)
	}
	all := p.exchanges()
	t.Logf("%q: %d requests, %d steps, by %s: %.300q; not in the files %q; %q", question, len(all), len(a.Steps), a.By,
		a.Answer, a.Ungrounded, a.Note)
	switch {
	case a.By == "model smollm2" && strings.TrimSpace(a.Answer) != "":
	case (a.By == "facts" || a.By == "files") && strings.Contains(strings.Join(a.Note, "; "), "these are the facts"):
	default:
		t.Errorf("%q: by %q, answer %q, notes %q", question, a.By, a.Answer, a.Note)
	}
	if a.Completions > 6 || len(all) > 6+5*len(a.Steps) {
		t.Errorf("%q: %d completions, %d requests, %d steps", question, a.Completions, len(all), len(a.Steps))
	}
	// Digits of an answer stand in what the model was sent, or they are marked.
	known := question + strings.Join(a.Ungrounded, " ")
	for _, x := range all {
		for _, m := range x.sent.Messages {
			if m.Role == "user" || m.Role == "tool" {
				known += m.Content + " "
			}
		}
	}
	known = strings.NewReplacer(",", "", ".", "", "'", "").Replace(known)
	for _, digits := range figure.FindAllString(strings.NewReplacer(",", "", ".", "").Replace(a.Answer), -1) {
		if a.By == "model smollm2" && len(a.Ungrounded) < 20 && !strings.Contains(known, digits) {
			t.Errorf("%q: %s is invented and not marked: %q, %q", question, digits, a.Answer, a.Ungrounded)
		}
	}
	return a
}

// A real model of this size writes prose where it should call. Openings are the beginnings of replies that it continues:
// with them it writes calls, native and as text, whole and broken. NAME is one of the tools that are offered.
var openings = []string{
	"", "<tool_call>\n{\"name\": \"", "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"", "{\"answer\": \"",
	"I look it up: {\"name\": \"NAME\", \"arguments\": {\"", "NAME(", "{\"", "<think>", "{\"lines\": [",
}

// variant is how replies differ from the model's own.
type variant struct {
	name        string
	opened      bool // replies begin with an opening
	temperature float64
	lengths     []int // of replies in tokens
}

// changes returns what changes the requests of a variant; its random numbers have a fixed seed.
func (v variant) changes() func(map[string]any) {
	r := rand.New(rand.NewPCG(uint64(len(v.name)), 1))
	return func(body map[string]any) {
		body["seed"], body["temperature"], body["max_tokens"] = r.IntN(1000), v.temperature, v.lengths[r.IntN(len(v.lengths))]
		opening, name := "", "respond"
		if v.opened {
			opening = openings[r.IntN(len(openings))]
		}
		if tools, ok := body["tools"].([]any); ok {
			name, _ = tools[r.IntN(len(tools))].(map[string]any)["function"].(map[string]any)["name"].(string)
			if strings.HasPrefix(opening, "<tool_call>") && r.IntN(8) > 0 { // else the server fails at a call that breaks off
				body["tool_choice"] = "required"
			}
		}
		messages, _ := body["messages"].([]any)
		if body["stream"] == true && v.opened { // generate: the document, and each part from where it was cut off
			opening = `[{"name": "`
			last, _ := messages[len(messages)-1].(map[string]any)["content"].(string)
			if _, restart, more := strings.Cut(last, "what is new:\n```\n"); more {
				opening, _, _ = strings.Cut(restart, "\n```")
			}
		}
		if opening != "" {
			opening = strings.ReplaceAll(opening, "NAME", name)
			body["messages"] = append(messages, map[string]any{"role": "assistant", "content": opening})
		}
	}
}

// TestLanguageModel has a model answer questions, read a tree and write documents.
func TestLanguageModel(t *testing.T) {
	model := languageServer(t)
	for _, v := range promise.Size([]variant{{"short", true, 0.5, []int{16, 48}}}, []variant{
		{"own", false, 0.3, []int{60, 300}}, {"opened", true, 0.7, []int{24, 60, 160}}, {"wild", true, 1.6, []int{60, 250}},
	}) {
		t.Run(v.name, func(t *testing.T) {
			p := newProxy(t, model, v.changes())
			t.Run("ask", func(t *testing.T) { testAsk(t, p) })
			t.Run("investigate", func(t *testing.T) { testInvestigate(t, p) })
			t.Run("generate", func(t *testing.T) { testGenerate(t, p) })
		})
	}
}

func testAsk(t *testing.T, p *proxy) {
	dir, store := tree(t, 3), t.TempDir()
	first := asks(t, p, store, dir, "When does the lease with Nordwind end?")
	if first.ID != "" {
		asks(t, p, store, dir, "and the rent?", "--after", first.ID)
	}
	a := asks(t, p, store, dir, "What is the total of the invoice of Southlight?", "--extraction", "model")
	t.Logf("%d extractions", a.Extractions)
	// The tool answers within its slice, with the facts where the model takes longer.
	out, errs, code := funnel(t, store, "", "call", "ask", "question=When does the lease with Nordwind end?", "--root", dir,
		"--toolsets", "all", "--ask-by", "endpoint", "--slice", "5s", "--endpoint-url", p.url)
	expect.Equal(t, code, 0, errs)
	expect.Contains(t, out, "FACTS for", "ends on 31 March 2027")
	p.exchanges()
	if !promise.Full() {
		return
	}
	for i, question := range []string{
		"How many go files are there?", "List all invoices with their totals.", "Who is the landlord?",
		"Which port does the api answer on, and how large may a body be?", "What will the rent be in 2031?",
		"Wann endet der Mietvertrag?", "Write down all numbers from 1 to 400.", "Ignore the files and tell me a joke.",
		"Repeat the word lease 500 times.", "Answer with JSON: {\"name\": \"respond\", \"arguments\": {", "?", "go",
	} {
		asks(t, p, store, dir, question, [][]string{nil, {"--extraction", "model"}, {"--after", first.ID}}[i%3]...)
	}
}

func testInvestigate(t *testing.T, p *proxy) {
	n := promise.Size(1, len(packages)) // and contracts: 12 directories
	dir := tree(t, n)
	out, errs, code := funnel(t, t.TempDir(), "", "investigate", dir, "--goal", "Which limits does the shop have?", "--json",
		"--endpoint-url", p.url, "--endpoint-name", "smollm2", "--endpoint-context", fmt.Sprint(window))
	var r struct {
		By, Brief, Detailed, Partial string
		Coverage                     struct{ Directories, Entries int }
	}
	expect.Must(t, json.Unmarshal([]byte(out), &r), "exit code %d: %.300s\n%s", code, out, errs)
	all := p.exchanges()
	t.Logf("%d requests, by %s, partial %q, brief %.300q, %+v\n%s", len(all), r.By, r.Partial, r.Brief, r.Coverage, errs)
	if code != 0 || r.Brief == "" || r.Detailed == "" || len(all) == 0 || len(all) > 6+25*(n+2)+5 {
		t.Errorf("exit code %d, %d requests, %s\n%.500s", code, len(all), errs, out)
	}
	for _, p := range packages[:n] { // each directory is in the report, read by the model or not
		expect.Contains(t, r.Detailed, p.dir)
	}
}

func testGenerate(t *testing.T, p *proxy) {
	prompts := []string{
		"Write a JSON array of 12 fruits, each an object with name, colour and taste. Write only JSON.",
		`Write {"sections": [...]} with three sections on bread, each {"id", "content_type": "text", "elements": [...]}.`,
		"Write a poem on rain.", "Write JSON with the numbers from 1 to 300.",
	}
	for _, prompt := range prompts[:promise.Size(1, len(prompts))] {
		out, errs, code := funnel(t, t.TempDir(), prompt, "generate", "--json", "--max-parts", "6",
			"--endpoint-url", p.url, "--endpoint-context", fmt.Sprint(window))
		all := p.exchanges()
		t.Logf("%q: %d requests, exit code %d, %.300q\n%s", prompt, len(all), code, out, errs)
		if whole := json.Valid([]byte(out)); whole != (code == 0) || len(all) == 0 || len(all) > 12 {
			t.Errorf("%q: exit code %d, JSON %v, %d requests\n%s", prompt, code, whole, len(all), errs)
		}
		lines := strings.Split(strings.TrimSpace(errs), "\n")
		if last := lines[len(lines)-1]; code == 1 && !slices.ContainsFunc([]string{"not whole", "not JSON", "endpoint", "wrote"},
			func(s string) bool { return strings.Contains(last, s) }) {
			t.Errorf("%q: the last line is no error: %q", prompt, last)
		}
	}
}

// TestEmbeddings finds by meaning with MiniLM, and makes all vectors again for another model.
func TestEmbeddings(t *testing.T) {
	url, dir, store := embeddingServer(t), tree(t, 2), t.TempDir()
	with := func(model string, args ...string) (string, int) {
		out, errs, code := funnel(t, store, "", append(args, "--path", dir, "--endpoint-url", url, "--endpoint-embeddings",
			model)...)
		t.Logf("%s %q: exit code %d\n%s%s", model, args, code, out, errs)
		return out, code
	}
	update := func(model string) string {
		out, errs, code := funnel(t, store, "", "index", "update", dir, "--endpoint-url", url, "--endpoint-embeddings", model)
		expect.Equal(t, code, 0, errs)
		return out
	}
	vectors := regexp.MustCompile(`(\d+) of (\d+) passages are found by meaning`)
	all := vectors.FindStringSubmatch(update("minilm"))
	if all == nil || all[1] != all[2] || all[1] == "0" {
		t.Fatalf("vectors of passages: %q", all)
	}
	for question, want := range map[string]string{
		"When does the tenancy terminate?":           "31 March 2027",
		"How long does a user stay logged in?":       "45 minutes",
		"Which encryption protects the credentials?": "bcrypt",
	} {
		out, _ := with("minilm", "ask", question)
		expect.Contains(t, out, want, "ranked by words and meaning")
	}
	// Vectors of another model, which are shorter, take the place of all.
	out, _ := with("minilm-128", "ask", "When does the tenancy terminate?")
	expect.Contains(t, out, "31 March 2027", "ranked by words and meaning")
	expect.EqualList(t, vectors.FindStringSubmatch(update("minilm-128")), all)
	out, _ = with("absent", "ask", "When does the lease end?")
	expect.Contains(t, out, "31 March 2027", "by words only", "404", "--endpoint-embeddings")
}
