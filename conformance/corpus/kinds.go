package corpus

import (
	"bytes"
	"fmt"
	"slices"
)

// Kinds has outputs of each kind that a receipt describes.
var Kinds = []struct {
	Name string
	Text func() []byte
}{
	{"text", WarAndPeace},
	{"json", JSON1MB},
	{"json-5MB", JSON5MB},
	{"json-one-line", JSON1MBMinified},
	{"ndjson-rare-key", RareKey9k},
	{"diff", WarAndPeaceDiff},
	{"log", PanicLog},
	{"csv", CSV20k},
	{"cjk", CJK},
	{"binary", func() []byte { return Random(64 << 10) }},
	{"json-cut", func() []byte { return JSON1MB()[:700_003] }},
	{"json-broken", func() []byte { // an array closed twice
		whole := JSON1MB()
		at := 500_000 + bytes.Index(whole[500_000:], []byte("},\n"))
		return slices.Concat(whole[:at+1], []byte("]]"), whole[at+1:])
	}},
	{"diff-merge", mergeDiff},
	{"diff-cut", func() []byte { // within a hunk
		whole := WarAndPeaceDiff()
		return whole[:600_000+bytes.Index(whole[600_000:], []byte("\n@@ "))+120]
	}},
	{"diff-many-files", manyFilesDiff},
	{"markdown", markdown},
}

// mergeDiff is a combined diff of many files, as git show prints for a merge.
var mergeDiff = generated(func(b *bytes.Buffer) {
	for i := range 60 {
		fmt.Fprintf(b, "diff --cc src/part%d/file%d.go\nindex 1111111,2222222..3333333\n--- a/src/part%[1]d/file%[2]d.go\n+++ b/src/part%[1]d/file%[2]d.go\n", i%7, i)
		fmt.Fprintf(b, "@@@ -%[1]d,4 -%[1]d,4 +%[1]d,5 @@@ func f%[1]d() {\n  \tcommon := 1\n- \tours := 2\n -\ttheirs := 3\n++\tboth := %[1]d\n++\tmore := 4\n  \tend := 5\n  }\n", i+1)
	}
})

var manyFilesDiff = generated(func(b *bytes.Buffer) {
	for i := range 90 {
		name := fmt.Sprintf("internal/some/folder/with/a/long/name/number%d/of_many_files_%d.go", i%9, i)
		fmt.Fprintf(b, "diff --git a/%[1]s b/%[1]s\nindex 1111111..2222222 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,3 +1,3 @@\n one\n-two %[2]d\n+zwei %[2]d\n three\n", name, i)
	}
})

var markdown = generated(func(b *bytes.Buffer) {
	b.WriteString("# A manual\n\nWhat it is about, in a sentence or two of ordinary prose.\n")
	for i := range 80 {
		fmt.Fprintf(b, "\n## Chapter %d, which has a longer heading\n\nSome words that follow the heading, and [a link](https://example.org/%d).\n\n### Part %d\n\n- one\n- two\n\n```go\nfunc f%d() {}\n```\n", i, i, i, i)
	}
	b.WriteString("\n```sh\nthis block never ends\n")
})
