package kinds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// XML is XML other than HTML and JUnit reports.
var XML = structured(Kind{
	Name:       content.XML,
	Ext:        "xml",
	MIME:       fixed("application/xml"),
	Sniff:      func(s *Sample) bool { return xmlRoot(s) != "" },
	RecordIs:   `the shallowest element that is repeated: {"name": {"@attribute": "…", "#text": "…", "child": […]}}`,
	RecordNote: "children are always arrays; elements around them are records of their own",
}, values.XML)

// JUnit is the report of a test runner in the form of JUnit.
var JUnit = structured(Kind{
	Name:       content.JUnit,
	Ext:        "junit",
	MIME:       fixed("application/xml"),
	Sniff:      func(s *Sample) bool { return values.IsReport(xmlRoot(s)) },
	Summarizer: func(string, []byte) digest.Summarizer { return newResults() },
	RecordIs:   "a test {suite, name, class, time, status, message, text}",
}, values.JUnit)

// xmlRoot returns the root element of a text that is XML, or meant to be because it has the name and begins like it:
// "?" if that is not known, "" of another text.
func xmlRoot(s *Sample) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(s.text, []byte("\ufeff")), " \t\r\n")
	if len(text) == 0 || text[0] != '<' || len(text) > 1 && strings.IndexByte("<-=~ \t\n", text[1]) >= 0 {
		return ""
	}
	switch s.ext {
	case ".html", ".htm", ".xhtml", ".vue", ".svelte", ".php", ".jsp", ".erb", ".ejs", ".md":
		return ""
	}
	root, ok := values.RootOf(text)
	if strings.EqualFold(root, "html") || !ok && s.ext != ".xml" && !bytes.HasPrefix(text, []byte("<?xml ")) {
		return ""
	}
	return cmp.Or(root, "?")
}

// maxFailures is the maximum number of failed tests that a summary names.
const maxFailures = 8

// results summarises a report of tests.
type results struct {
	*piped
	*tests
}

// tests counts the tests of a report, and holds the first that failed.
type tests struct {
	by     map[string]int64
	failed []string
}

func newResults() *results {
	t := &tests{by: map[string]int64{}}
	return &results{newPiped(values.JUnit, t.add), t}
}

func (r *tests) add(line int64, test []byte) {
	var t struct{ Suite, Name, Class, Status, Message, Text string }
	if json.Unmarshal(test, &t) != nil {
		return
	}
	r.by[t.Status]++
	if t.Status != "failed" && t.Status != "error" || len(r.failed) >= maxFailures {
		return
	}
	text := "failed test, line " + digest.Number(line) + ": "
	if t.Class != "" {
		text += content.Clip(t.Class, digest.LineRunes) + ": "
	}
	if t.Message == "" {
		t.Message, _, _ = strings.Cut(t.Text, "\n")
	}
	text += content.Clip(t.Name, digest.LineRunes) + ": " + content.Clip(t.Message, digest.LineRunes)
	r.failed = append(r.failed, strings.TrimSuffix(text, ": "))
}

func (r *results) Finish(s *digest.Summary) {
	r.piped.Finish(s)
	all := int64(0)
	for _, n := range r.by {
		all += n
	}
	total := content.Plural(all, "test", "tests") + ", " + digest.Number(r.by["failed"]) + " failed"
	if n := r.by["error"]; n > 0 {
		total += ", " + content.Plural(n, "error", "errors")
	}
	if n := r.by["skipped"]; n > 0 {
		total += ", " + digest.Number(n) + " skipped"
	}
	s.Total = []string{total}
	if more := r.by["failed"] + r.by["error"] - int64(len(r.failed)); more > 0 {
		r.failed = append(r.failed, "… and "+content.Plural(more, "more failed test", "more failed tests"))
	}
	s.Says = append(r.failed, s.Says...)
}
