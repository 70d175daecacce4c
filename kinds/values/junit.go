package values

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
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
// The status is passed, failed, error, skipped, or another word of the report; suite is the innermost suite with a name;
// text is what the failure, the error or the skip says. What is missing is null. Output of tests and properties are left
// out.
var JUnit = guarded("JUnit report", readJUnit)

func readJUnit(ctx context.Context, r io.Reader, sink Sink) error {
	t := junitReport{newElements(r), sink, nil, nil, 0, ""}
	if err := t.each(t.open); err != nil {
		return err
	}
	if n, err := strconv.Atoi(t.declared); err == nil && n != t.tests {
		t.add("the report declares %d tests and has %d", n, t.tests)
	}
	return t.err()
}

type junitReport struct {
	*elements
	sink     Sink
	suites   []junitSuite // the open ones
	json     []byte
	tests    int
	declared string // the number of tests that the root element names
}

type junitSuite struct {
	depth int
	name  string
}

// open reads a test, and goes into other elements.
func (t *junitReport) open(e xml.StartElement, line int) error {
	for n := len(t.suites); n > 0 && t.suites[n-1].depth >= len(t.path); n-- {
		t.suites = t.suites[:n-1]
	}
	name := e.Name.Local
	switch {
	case IsReport(name), name == "Results", name == "collection":
		if len(t.path) == 1 {
			t.declared = attribute(e, "tests")
		}
		if name := attribute(e, "name"); name != "" {
			t.suites = append(t.suites, junitSuite{len(t.path), name})
		}
		return nil
	}
	n := 0
	test, err := t.tree(e, line, &n)
	if !isTest(name) {
		return err
	}
	t.tests++
	return cmp.Or(t.send(e, test), err) // a test that breaks off may have failed
}

// IsReport reports whether an element holds the tests of a report; one of them is the root.
func IsReport(name string) bool {
	switch name {
	case "testsuites", "testsuite", "test-run", "test-suite", "assemblies", "assembly", "TestRun":
		return true
	}
	return false
}

func isTest(name string) bool {
	return name == "testcase" || name == "test-case" || name == "test" || name == "UnitTestResult"
}

// statuses are the words of reports other than JUnit for the status of a test.
var statuses = map[string]string{
	"pass": "passed", "success": "passed", "fail": "failed", "failure": "failed", "skip": "skipped", "ignored": "skipped",
	"notexecuted": "skipped", "notrun": "skipped",
}

func (t *junitReport) send(e xml.StartElement, test *xmlElement) error {
	suite := ""
	if n := len(t.suites); n > 0 {
		suite = t.suites[n-1].name
	}
	status := strings.ToLower(attribute(e, "result", "outcome"))
	status = cmp.Or(statuses[status], status, "passed")
	var message, text []string
	add := func(to *[]string, s string) {
		if s != "" {
			*to = append(*to, s)
		}
	}
	said := slices.Concat([]*xmlElement{test}, test.child("Output"), test.child("output"))
	for _, s := range []struct{ element, status string }{
		{"skipped", "skipped"}, {"reason", ""}, {"failure", "failed"}, {"ErrorInfo", ""}, {"error", "error"},
	} {
		for _, from := range said {
			for _, c := range from.child(s.element) {
				status = cmp.Or(s.status, status)
				add(&message, attribute(xml.StartElement{Attr: c.attributes}, "message"))
				add(&text, string(bytes.TrimSpace(c.text)))
				for _, child := range c.children {
					to := &text
					if strings.EqualFold(child.name, "message") {
						to = &message
					}
					for _, inner := range child.all {
						add(to, string(bytes.TrimSpace(inner.text)))
					}
				}
			}
		}
	}
	var o record.Object
	o.StringOrNull("suite", suite)
	name, class := attribute(e, "testName", "name", "id"), attribute(e, "classname", "type")
	if class == "" { // NUnit writes the class into the full name
		name = cmp.Or(attribute(e, "fullname"), name)
	}
	o.StringOrNull("name", name)
	o.StringOrNull("class", class)
	o.Raw("time", seconds(attribute(e, "time", "duration")))
	o.String("status", status)
	o.StringOrNull("message", strings.Join(message, "; "))
	o.StringOrNull("text", strings.Join(text, "\n"))
	if t.sink.Pointer != nil {
		t.sink.Pointer(int64(test.line), "")
		test.mark(func(line int64, _ string) {
			if line > int64(test.line) {
				t.sink.Pointer(line, "/text")
			}
		}, "")
	}
	t.json = append(t.json[:0], o.Text()...)
	if len(t.json) > MaxRecord {
		return fmt.Errorf("line %d: the JSON of a test is longer than %d MiB; slice and grep read its text", test.line, MaxRecord>>20)
	}
	return t.sink.Value(int64(test.line), t.json)
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

// attribute returns the first of these attributes that is not empty.
func attribute(e xml.StartElement, names ...string) string {
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
	for within := false; ; {
		token, _, err := t.next()
		switch {
		case err != nil:
			return name, within && (errors.Is(err, io.EOF) || strings.Contains(err.Error(), "the text ends within") ||
				strings.Contains(err.Error(), "unexpected EOF"))
		case name == "" && len(t.path) > 0:
			name = t.path[0]
		default:
			if _, is := token.(xml.StartElement); is {
				within = true
			}
		}
	}
}
