package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	Sniff:      func(s *Sample) bool { return isXML(s) },
	RecordIs:   `the shallowest element that is repeated: {"name": {"@attribute": "…", "#text": "…", "child": […]}}`,
	RecordNote: "children are always arrays; elements around them are records of their own",
}, values.XML)

// JUnit is the report of a test runner in the form of JUnit.
var JUnit = junit(structured(Kind{
	Name:     content.JUnit,
	Ext:      "junit",
	MIME:     fixed("application/xml"),
	Sniff:    isJUnit,
	RecordIs: "a test {suite, name, class, time, status, message, text}",
}, values.JUnit))

// isXML reports whether a text is XML, or meant to be: it has the name and begins like it.
func isXML(s *Sample) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(s.text, []byte("\ufeff")), " \t\r\n")
	if len(text) == 0 || text[0] != '<' || len(text) > 1 && strings.IndexByte("<-=~ \t\n", text[1]) >= 0 {
		return false
	}
	switch s.ext {
	case ".html", ".htm", ".xhtml", ".vue", ".svelte", ".php", ".jsp", ".erb", ".ejs", ".md":
		return false
	}
	root, ok := values.RootOf(text)
	return !strings.EqualFold(root, "html") && (ok || s.ext == ".xml" || bytes.HasPrefix(text, []byte("<?xml ")))
}

// isJUnit reports whether a text is XML with the root of a JUnit report.
func isJUnit(s *Sample) bool {
	if !isXML(s) {
		return false
	}
	root, _ := values.RootOf(bytes.TrimLeft(s.text, " \t\r\n"))
	return (root == "testsuites" || root == "testsuite") && bytes.Contains(s.text, []byte("<testcase"))
}

// junit makes the summarizer count tests by their status.
func junit(k *Kind) *Kind {
	k.Summarizer = func(string, []byte) digest.Summarizer {
		r := &results{by: map[string]int64{}}
		r.pulled = newPulled(values.JUnit, r.add)
		return r
	}
	return k
}

// maxFailures is the maximum number of failed tests that a summary names.
const maxFailures = 20

// results counts the tests of a report, and holds the first that failed.
type results struct {
	*pulled
	by     map[string]int64
	failed []string
}

func (r *results) add(test []byte) {
	var t struct{ Suite, Name, Class, Status, Message, Text string }
	if json.Unmarshal(test, &t) != nil {
		return
	}
	r.by[t.Status]++
	if t.Status != "failed" && t.Status != "error" || len(r.failed) >= maxFailures {
		return
	}
	name := t.Name
	if t.Class != "" {
		name = t.Class + " " + name
	}
	if t.Message == "" {
		t.Message, _, _ = strings.Cut(t.Text, "\n")
	}
	r.failed = append(r.failed, fmt.Sprintf("%s: %s: %s", t.Status, name, content.Clip(t.Message, digest.LineRunes)))
}

func (r *results) Finish(s *digest.Summary) {
	r.pulled.Finish(s)
	all := int64(0)
	for _, n := range r.by {
		all += n
	}
	s.Total = []string{content.Plural(all, "test", "tests")}
	for _, status := range []string{"failed", "error", "skipped"} {
		if n := r.by[status]; n > 0 {
			s.Total = append(s.Total, fmt.Sprintf("%d %s", n, strings.Replace(status, "error", "with errors", 1)))
		}
	}
	if bad := r.by["failed"] + r.by["error"]; bad > 0 {
		s.Listed = digest.List{Title: "failed tests", From: len(s.Says), Total: bad}
		s.Says = append(s.Says, r.failed...)
	}
}
