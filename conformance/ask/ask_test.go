package ask_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// TestEveryFileIsAccountedFor asks over documents, some of them broken, encrypted, empty or scanned: each one is
// searched or named with its reason.
func TestEveryFileIsAccountedFor(t *testing.T) {
	n, dir := promise.Size(200, 1000), t.TempDir()
	want := map[string]string{} // why a file is not searchable
	scan := []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj " +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n")
	// A compound file holds an encrypted package.
	locked := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 2000)...)
	for _, c := range "EncryptedPackage" {
		locked = append(locked, byte(c), 0)
	}
	exts := []string{"txt", "md", "docx", "html", "eml"}
	for i := range n {
		ext, why, text := exts[i%len(exts)], "", []byte(nil)
		switch i % 50 {
		case 10:
			ext, why, text = "docx", "broken", []byte("PK broken")
		case 20:
			ext, why, text = "docx", "encrypted", locked
		case 30:
			ext, why = "docx", "docx without text"
		case 40:
			ext, why, text = "pdf", "pdf without text", scan
		case 45:
			ext, why, text = "bin", "binary", []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\xff\xfe\x00\x03\x00>\x00\x01\x00")
		default:
			text = document(ext, []string{"A report", fmt.Sprintf("The secret colour of report %d is green.", i)})
		}
		name := fmt.Sprintf("d%d/file_%04d.%s", i%7, i, ext)
		if write(t, dir, name, text); why != "" {
			want[name] = why
		}
	}
	b := newBench(t, dir)
	r, text := b.ask(ask.Args{Question: "what is the secret colour of every report?"})
	if r.Coverage.Files != n || r.Coverage.Searched+len(r.Coverage.NotSearchable) != n {
		t.Errorf("of %d files: %+v", n, r.Coverage)
	}
	if len(r.Coverage.NotSearchable) != len(want) {
		t.Errorf("%d are not searchable, want %d:\n%s", len(r.Coverage.NotSearchable), len(want), text)
	}
	expect.Equal(t, r.Coverage.WithFacts, n-len(want), "files with facts")
	for _, u := range r.Coverage.NotSearchable {
		if reason, _, _ := strings.Cut(u.Reason, ":"); reason != want[u.File] {
			t.Errorf("%s: %q, want %q", u.File, u.Reason, want[u.File])
		}
	}
}

// TestChangesAreSeen asks again after files were changed, added and removed.
func TestChangesAreSeen(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, dir, fmt.Sprintf("a%d.txt", i), []byte("nothing of interest here\n"))
	}
	b := newBench(t, dir)
	if r, _ := b.ask(ask.Args{Question: "where is the treasure?"}); !r.Nothing() {
		t.Errorf("%+v", r.Facts)
	}
	write(t, dir, "a3.txt", []byte("The treasure lies below the oak.\n"))
	write(t, dir, "b.docx", docx("The treasure lies behind the mill."))
	r, _ := b.ask(ask.Args{Question: "where is the treasure?"})
	if len(r.Files) != 2 || r.Facts[0].Text == "" {
		t.Errorf("%q", r.Files)
	}
	expect.Must(t, os.Remove(filepath.Join(dir, "a3.txt")))
	if r, _ = b.ask(ask.Args{Question: "where is the treasure?"}); len(r.Files) != 1 || r.Facts[0].Lines != "paragraph 1" {
		t.Errorf("%+v", r.Facts)
	}
}

// TestLinesAroundFacts shows the best fact of a file with its lines: in a document with all their places, and not where
// a line would be cut.
func TestLinesAroundFacts(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("after some talks ", 8)
	write(t, dir, "a.txt", []byte("Begin.\n\nThe ship is red.\nThe walrus sleeps at noon.\nIt snores.\n"))
	write(t, dir, "b.docx", docx("About animals.", "The narwhal swims north.", "It is fast."))
	write(t, dir, "c.txt", []byte("Begin.\nIt was agreed "+long+"that the lynx hunts at dawn.\nEnd.\n"))
	write(t, dir, "d.txt", []byte("The tapir eats leaves.\n"+long+"the tapir eats fruit.\n"))
	b := newBench(t, dir)
	for question, want := range map[string]string{
		"when does the walrus sleep?":  "  3-5: The ship is red.\n    The walrus sleeps at noon.\n    It snores.\n",
		"where does the narwhal swim?": "  paragraph 1 to paragraph 3: About animals.\n    The narwhal swims north.\n    It is fast.\n",
		"when does the lynx hunt?":     "that the lynx hunts at dawn.\n",
		"what does the tapir eat?":     "the tapir eats fruit.\n",
	} {
		_, text := b.ask(ask.Args{Question: question})
		expect.Contains(t, text, want)
	}
}

// TestKeysAreMasked shows no line of a private key that begins far above a fact.
func TestKeysAreMasked(t *testing.T) {
	dir, key := t.TempDir(), ""
	random := rand.New(rand.NewPCG(1, 2))
	for range 26 {
		for range 64 {
			key += string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)])
		}
		key += "\n"
	}
	write(t, dir, "key.txt", []byte("Notes.\n-----BEGIN RSA PRIVATE KEY-----\n"+key+
		"-----END RSA PRIVATE KEY-----\nThe hint for the passphrase is below the oak.\n"))
	_, text := newBench(t, dir).ask(ask.Args{Question: "where is the passphrase hint?"})
	expect.Contains(t, text, "below the oak")
	for line := range strings.Lines(key) {
		expect.Lacks(t, text, line[:20])
	}
}

// TestDamagedIndexIsRemoved damages an index behind its first page: one answer says so, and the next is whole.
func TestDamagedIndexIsRemoved(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.txt", []byte("The walrus sleeps at noon.\n"))
	b := newBench(t, dir)
	b.ask(ask.Args{Question: "when does the walrus sleep?"})
	files := expect.Value(filepath.Glob(filepath.Join(b.store, "index", "*.db")))(t)
	for _, file := range files {
		body := expect.Value(os.ReadFile(file))(t)
		clear(body[4096:])
		expect.Must(t, os.WriteFile(file, body, 0o600))
	}
	expect.Equal(t, len(files), 1)
	_, err := b.k.Indexes(t.Context(), b.sources, "", true, func(int64, int64, string) {})
	expect.Fails(t, err, "damaged and is removed; ask again")
	_, text := b.ask(ask.Args{Question: "when does the walrus sleep?"})
	expect.Contains(t, text, "at noon")
}

// TestFollowUp takes the words of the question before for a short one; another identity's answer is unknown.
func TestFollowUp(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "budget.md", []byte("# Engineering\n\nThe budget of engineering is 450 EUR.\n\n# Sales\n\nThe budget of sales is 90 EUR.\n"))
	b := newBench(t, dir)
	first, _ := b.ask(ask.Args{Question: "what is the budget of engineering?"})
	if first.ID == "" {
		t.Fatal("no handle")
	}
	r, text := b.ask(ask.Args{Question: "and of sales?", After: first.ID})
	if !strings.Contains(text, "90 EUR") || !strings.Contains(r.ReadAs, "budget") {
		t.Errorf("%s: %s", r.ReadAs, text)
	}
	expect.Contains(t, text, `read as "and of sales? (budget engineering)"`)
	r, text = b.ask(ask.Args{Question: "the budget that engineering has", After: first.ID})
	expect.Equal(t, r.ReadAs, r.Question)
	expect.Lacks(t, text, "read as")
	b.owner = "another"
	for _, after := range []string{first.ID, "ans:000000000000"} {
		_, _, err := b.try(ask.Args{Question: "and of sales?", After: after})
		expect.Fails(t, err, "unknown answer", after)
	}
}

// TestOddQuestions answers or refuses each question with one clear sentence.
func TestOddQuestions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.txt", []byte("The zebra near the wall. 東京で会議があります。\n"))
	b := newBench(t, dir)
	for q, want := range map[string]string{
		`"zebra"`: "zebra", "zebra*": "zebra", "NEAR(zebra wall)": "zebra", "-zebra": "zebra", "(((": "Nothing found",
		"the of and": "Nothing found", "🦓": "Nothing found", "会議": "会議", "a:b OR zebra": "zebra", "\xff\xfe zebra": "zebra",
		"'; DROP TABLE files; -- zebra": "zebra",
	} {
		if _, text := b.ask(ask.Args{Question: q}); !strings.Contains(text, want) {
			t.Errorf("%q: %s", q, text)
		}
	}
	for want, a := range map[string]ask.Args{
		"question is empty": {Question: "  "},
		"at most 2000":      {Question: strings.Repeat("x ", 5000)},
		"top is -1":         {Question: "zebra", Top: -1},
		"from 1 to 50":      {Question: "zebra", Top: 1_000_000_000},
		"after is ans:":     {Question: "zebra", After: "obs:1"},
		"path":              {Question: "zebra", Path: "gone"},
		"outside":           {Question: "zebra", Path: "../.."},
	} {
		if _, _, err := b.try(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
	if r, _ := b.ask(ask.Args{Question: "zebra", Path: "a.txt"}); len(r.Facts) != 1 {
		t.Errorf("a file: %+v", r.Facts)
	}
	if r, _ := b.ask(ask.Args{Question: "zebra", Path: "*.txt"}); len(r.Facts) != 1 {
		t.Errorf("a glob: %+v", r.Facts)
	}
	if r, _ := b.ask(ask.Args{Question: "zebra", Path: "*.md"}); !r.Nothing() || r.Coverage.Files != 0 {
		t.Errorf("a glob of nothing: %+v", r)
	}
}

// TestPartsAreNamed says of a document what is not in its text.
func TestPartsAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mail.eml", []byte("From: a@example.org\r\nSubject: Zebra\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nThe zebra is here.\r\n"+
		"--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=plan.pdf\r\n\r\nx\r\n--x--\r\n"))
	if _, text := newBench(t, dir).ask(ask.Args{Question: "where is the zebra?"}); !strings.Contains(text, "plan.pdf") {
		t.Error(text)
	}
}

// TestKindsOfFiles counts the files of a directory by extension, and those without one.
func TestKindsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"Makefile", "LICENSE", "x.go"} {
		write(t, dir, name, []byte("text\n"))
	}
	r, text := newBench(t, dir).ask(ask.Args{Question: "show the directory tree"})
	expect.Equal(t, r.Tool, "directory_tree")
	expect.Contains(t, text, "3 files: 2 without an extension, 1 .go")
}

// TestGlobAmongMany asks of files that a glob names after all have been indexed: passages of the many other files,
// which fit better, do not take their places.
func TestGlobAmongMany(t *testing.T) {
	dir := t.TempDir()
	for i := range 260 {
		write(t, dir, fmt.Sprintf("letters/%d.txt", i), []byte("The lease ends in May.\n"))
	}
	long := strings.Repeat("Nothing of interest was said on that day, and nobody wrote it down.\n", 12)
	write(t, dir, "letters/minutes.md", []byte(long+"The lease ends in June.\n"+long))
	b := newBench(t, dir)
	for _, path := range []string{"", "letters/*.md", "**/*.md"} {
		r, text := b.ask(ask.Args{Question: "When does the lease end?", Path: path})
		if path != "" && !strings.Contains(text, "The lease ends in June.") || r.Nothing() {
			t.Errorf("%q: %s", path, text)
		}
	}
}
