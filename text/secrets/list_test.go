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

Text that looks like a secret is masked wherever the server shows it: in receipts, pages, small outputs, errors, notes, the calls that a
page names, progress, resources, prompts, the command line, the trace, the log and tombstones. A mask names the format, the public
beginning of the secret and its length: `+"`[masked: github-token ghp_… 40 chars]`"+`. The answer reports once how many were masked, as
`+"`note: 2 secrets masked`"+` and as `+"`masked`"+` in its receipt. `+"`--no-mask`"+` shows them.

**Stored text is exact.** `+"`observations cat`"+`, `+"`saved to`"+` and an observation's hash refer to the bytes that the tool wrote. With
`+"`--redact-store`"+` secrets are masked before they are stored: sizes, hash and index are then those of the masked text, the receipt has
`+"`redacted`"+`, and the secret cannot be recovered.

**Best effort.** The %d formats below are found if they are unbroken: plain, quoted, in JSON (even with escaped letters), YAML, a URL, a
header, a diff, a program. Not found are secrets without a recognizable format, in another encoding (base64 of a whole file, percent
encoding, UTF-16 that no tool decoded), split by other characters, or requested in halves: `+"`slice chars=`"+`, `+"`slice bytes=`"+` and a
`+"`jq`"+` program can cut one so that neither half has its format. Images and binary resources are passed on unchanged. If a reader must
not see a secret, do not give them access to the file.

**Values known by their name.** A name says what its value is if one of its last words is password, secret, api key, token or the
like. A word such as base, primary, prod or v2 may follow, as in `+"`SECRET_KEY_BASE`"+`; behind other words, as in `+"`API_KEY_STRIPE`"+`, the
value must look random. A name such as `+"`SECRET_NAME`"+` or `+"`PASSWORD_FILE`"+` names no secret. These forms are read:

- `+"`NAME=value`"+`, `+"`name: value`"+`, `+"`\"name\": \"value\"`"+`, `+"`<name>value</name>`"+`, `+"`--name value`"+`;
- the lines of a block of YAML, below `+"`name: |`"+` or `+"`name: >-`"+`, each without blanks;
- pairs: `+"`name: NAME`"+` (or key) and `+"`value: …`"+` on a line near it, `+"`{\"name\":\"NAME\",\"value\":\"…\"}`"+`, `+"`<add key=\"NAME\" value=\"…\"/>`"+`,
  `+"`<name>NAME</name><value>…</value>`"+`; up to four other members may stand between them, or the value
  directly before the name;
- blocks and pairs also behind the line numbers of a search;
- `+"`define('NAME', '…')`"+` and calls of setenv, putenv, getenv, env and setProperty.

Under such a name a value with a digit is masked, and one of letters that make no words: pairs of letters are compared with those of
programs and English. Shown are words and identifiers (`+"`password: required`"+`, `+"`token: nextToken`"+`), a path or the name of a file,
calls, variables and templates (`+"`$PW`"+`, `+"`${PW}`"+`, `+"`{{ pw }}`"+`, `+"`vault:…`"+`), stand-ins, and short values: under 6 characters, 16 for a token. A
variable in capitals, `+"`DB_PASSWORD=value`"+` at the start of a line, is masked also if its value is a word, unless everybody uses that word:
true, null, admin, postgres, changeit …

**If a tool truncates its text**, the rest of a token is masked if its keyword and at least %d characters precede the cut: before `+"`…`"+`
and `+"`...`"+`, at the end of a long line or string, and before the `+"`[from-to of size]`"+` of a window. These still show: fewer characters
than that; the end of a token whose keyword is cut off, at the beginning of a window; a token recognized by the text before its keyword; a
value recognized only by its name (`+"`password`"+`) if the name is cut off. A value with blanks in it is not treated as a secret.

**If masking itself fails**, none of the text is shown: `+"`%s`"+` replaces it and counts
as a secret. The server's log has the cause.

**The cost** grows linearly with the length of the text: 0.05 ms per 16 KiB of prose, 0.15 ms of JSON, 2 ms of the most expensive text
known, measured at one, ten and a hundred times that length (`+"`BenchmarkClean`"+`, `+"`BenchmarkHostileGrows`"+`).

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
		fmt.Fprintf(
			&b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, cell(f.Of, false), keywords, then, cell(check, false),
			cell(f.Source, false),
		)
	}
	b.WriteString(
		"\nA stand-in is a placeholder that documents use instead of a secret: `EXAMPLE`, `changeme`, `your-…`, `xxxxx`, `${…}`, `<…>`. To add a format, add a\nline to `text/secrets/table.go`, an example of it to `conformance/corpus/testdata/secret-forms.txt`, and run `go test ./text/secrets -update`.\n",
	)
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
