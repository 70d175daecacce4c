package values

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
)

// JUnit reads the tests of a report in the XML of JUnit, as Ant, Maven, pytest, Jest and gotestsum write it, and of
// NUnit, xUnit and Visual Studio:
//
//	{"suite": "…", "name": "…", "class": "…", "time": seconds, "status": "…", "message": "…", "text": "…"}
//
// The status is passed, failed, error, skipped, or another word of the report; suite is the innermost suite with a
// name; text is what the failure, the error or the skip says. What is missing is null. The line of a failed test is that of
// its failure. Output of tests and properties are left out.
var JUnit = guarded("JUnit report", readJUnit)

func readJUnit(ctx context.Context, r io.Reader, sink Sink) error {
	t := newElements(r)
	var suites []string // of each open element the name of the innermost suite
	tests, declared := 0, ""
	err := t.each(func(e *xmlElement) error {
		suite, around := "", len(t.path)-1
		if around > 0 {
			suite = suites[around-1]
		} else {
			declared = e.attribute("tests")
		}
		name := e.Name.Local
		if IsReport(name) || name == "Results" || name == "collection" {
			suites = append(suites[:around], cmp.Or(e.attribute("name"), suite))
			return nil
		}
		err := t.tree(e)
		switch name {
		case "testcase", "test-case", "test", "UnitTestResult":
			tests++
			err = cmp.Or(sendTest(sink, suite, e), err) // a test that breaks off may have failed
		}
		return err
	})
	if n, failed := strconv.Atoi(declared); failed == nil && n != tests {
		t.add("the report declares %d tests and has %d", n, tests)
	}
	return cmp.Or(err, t.err())
}

// IsReport reports whether an element holds the tests of a report; one of them is the root.
func IsReport(name string) bool {
	switch name {
	case "testsuites", "testsuite", "test-run", "test-suite", "assemblies", "assembly", "TestRun":
		return true
	}
	return false
}

// statuses are the words of reports other than JUnit for the status of a test.
var statuses = map[string]string{
	"pass": "passed", "success": "passed", "fail": "failed", "failure": "failed", "skip": "skipped", "ignored": "skipped",
	"notexecuted": "skipped", "notrun": "skipped",
}

func sendTest(sink Sink, suite string, test *xmlElement) error {
	status := strings.ToLower(test.attribute("result", "outcome"))
	status = cmp.Or(statuses[status], status, "passed")
	var message, text []string
	add := func(to *[]string, s string) {
		if s != "" {
			*to = append(*to, s)
		}
	}
	line := test.line
	said := slices.Concat([]*xmlElement{test}, test.named("Output"), test.named("output"))
	for _, s := range []struct{ element, status string }{
		{"skipped", "skipped"}, {"reason", ""}, {"failure", "failed"}, {"ErrorInfo", ""}, {"error", "error"},
	} {
		for _, from := range said {
			for _, c := range from.named(s.element) {
				status = cmp.Or(s.status, status)
				if line == test.line && s.element != "skipped" {
					line = c.line
				}
				add(&message, c.attribute("message"))
				add(&text, string(bytes.TrimSpace(c.text)))
				for _, child := range c.children {
					to := &text
					if strings.EqualFold(child.Name.Local, "message") {
						to = &message
					}
					add(to, string(bytes.TrimSpace(child.text)))
				}
			}
		}
	}
	var o record.Object
	o.StringOrNull("suite", suite)
	name, class := test.attribute("testName", "name", "id"), test.attribute("classname", "type")
	if class == "" { // NUnit writes the class into the full name
		name = cmp.Or(test.attribute("fullname"), name)
	}
	o.StringOrNull("name", name)
	o.StringOrNull("class", class)
	o.Raw("time", seconds(test.attribute("time", "duration")))
	o.String("status", status)
	o.StringOrNull("message", strings.Join(message, "; "))
	o.StringOrNull("text", strings.Join(text, "\n"))
	if sink.Pointer != nil {
		test.mark(func(line int64, _ string) {
			sink.Pointer(line, map[bool]string{true: "/text"}[line > int64(test.line)])
		}, "")
	}
	return sink.Value(int64(line), []byte(o.Text()))
}

// seconds returns a duration as JSON: that of "1,200.5" or "00:20:00.5" in seconds, null for other words.
func seconds(s string) string {
	total, scale := 0.0, 1.0
	parts := strings.Split(strings.ReplaceAll(s, ",", ""), ":")
	for _, part := range slices.Backward(parts) {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil || len(parts) > 3 {
			return "null"
		}
		total, scale = total+f*scale, scale*60
	}
	if json := decimalOf(total); record.IsNumber(json) {
		return json
	}
	return "null"
}

// named returns the children of a name.
func (e *xmlElement) named(name string) (all []*xmlElement) {
	for _, c := range e.children {
		if c.Name.Local == name && c.Name.Space == "" {
			all = append(all, c)
		}
	}
	return all
}

// attribute returns the first of these attributes that is not empty.
func (e *xmlElement) attribute(names ...string) string {
	for _, name := range names {
		for _, a := range e.Attr {
			if a.Name.Local == name && a.Name.Space == "" && a.Value != "" {
				return a.Value
			}
		}
	}
	return ""
}

// RootOf returns the name of the root element of XML that begins with start; ok is false if it is not XML as far as it
// goes, or has no element within the root.
func RootOf(start []byte) (name string, ok bool) {
	t := newElements(bytes.NewReader(start))
	for depth := 0; ; depth = max(depth, len(t.path)) {
		_, _, err := t.next()
		if err != nil {
			return name, depth > 1 && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "the text ends within") ||
				strings.Contains(err.Error(), "unexpected EOF"))
		}
		if name == "" {
			name = t.path[0]
		}
	}
}
