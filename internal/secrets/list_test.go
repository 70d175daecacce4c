package secrets

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/SECRETS.md")

// TestList holds docs/SECRETS.md to the table.
func TestList(t *testing.T) {
	const path = "../../docs/SECRETS.md"
	var b strings.Builder
	list := Formats()
	fmt.Fprintf(&b, `# Secrets

What looks like a secret is masked in everything that is shown: receipts, pages, small outputs, errors, notes, the calls that a page
names, progress, resources, prompts, the command line, and in the trace, the log and tombstones. A mask says what stood there, with
the public beginning of it and its length: `+"`[masked: github-token ghp_… 40 chars]`"+`. The answer says once how many there were, as
`+"`note: 2 secrets masked`"+` and as `+"`masked`"+` in its receipt. `+"`--no-mask`"+` shows them.

**What is kept is exact.** `+"`observations cat`"+`, `+"`saved to`"+` and an observation's hash are of what the tool wrote. With
`+"`--redact-store`"+` it is masked while it is kept: sizes, hash and index are then those of what is kept, the receipt says `+"`redacted`"+`,
and nothing brings the secret back.

**Best effort.** The %d formats below are found where they stand in one piece: plain, quoted, in JSON (also with its letters escaped),
YAML, a URL, a header, a diff, a program. Not found are secrets without a form of their own, in another encoding (base64 of a whole
file, percent signs, UTF-16 that no tool decoded), taken apart by characters in between, or asked for in halves: `+"`slice chars=`"+`,
`+"`slice bytes=`"+` and a `+"`jq`"+` program can cut one so that neither half has its form. Images and binary resources are passed on as they
are. Who must not see a secret must not be given the file.

**Where a tool cuts its text** what is left of a token is masked if its keyword and %d characters or more stand before the cut: before `+"`…`"+`
and `+"`...`"+`, at the end of a long line or string, and before the `+"`[from-to of size]`"+` of a window. What still shows there: fewer characters
than these; the end of a token whose keyword is cut off, at the beginning of a window; a token told by what stands before its keyword; a
value told by its name alone (`+"`password`"+`) where the name is cut off. A value with blanks in it is not taken for a secret.

**Where masking itself fails** nothing of the text is shown: `+"`%s`"+` stands for it, and counts
as a secret. Why is told in the server's log.

**What it costs** grows with the text's length and no faster: 0.05 ms per 16 KiB of prose, 0.15 ms of JSON, 2 ms of the dearest text that is
known, at once, ten and a hundred times as long (`+"`BenchmarkClean`"+`, `+"`BenchmarkHostileGrows`"+`).

| name | what | found by | then | conditions | form published at |
|---|---|---|---|---|---|
`, len(list), minClipped, Unsearched)
	cell := func(s string, code bool) string {
		if s == "" {
			return ""
		}
		s = strings.ReplaceAll(s, "|", `\|`)
		if code {
			return "`" + s + "`"
		}
		return s
	}
	for _, f := range list {
		keywords := cell(f.Keywords, true)
		if f.fold {
			keywords += ", any case"
		}
		then := f.Shape
		if f.shape != nil && f != &jwt && f != &urlPassword {
			then = cell(then, true)
			if f.Before != "" {
				then = "`" + f.Before + "` before it, " + then
			}
		} else {
			then = cell(then, false)
		}
		check := f.Check
		if f.bits > 0 {
			check = fmt.Sprintf("entropy of %g bits; no stand-in", f.bits)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, cell(f.Of, false), keywords, then, cell(check, false), cell(f.Source, false))
	}
	b.WriteString("\nA stand-in is what documents write in a secret's place: `EXAMPLE`, `changeme`, `your-…`, `xxxxx`, `${…}`, `<…>`. To add a format, add a\nline to `internal/secrets/table.go`, an example of it to `conformance/corpus/secrets.go`, and run `go test ./internal/secrets -update`.\n")
	want := b.String()
	got, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	if !*update {
		t.Fatal("docs/SECRETS.md needs updating, run: make update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
