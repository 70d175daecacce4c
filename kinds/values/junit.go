package values

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
)

// JUnit reads the tests of a JUnit report, as Ant, Maven, pytest, Jest and gotestsum write them:
//
//	{"suite": "…", "name": "…", "class": "…", "time": seconds, "status": "…", "message": "…", "text": "…"}
//
// The status is passed, failed, error or skipped; suite is the innermost suite; text is what the failure, the error or
// the skip says. What is missing is null. Output of tests and properties are left out.
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
	switch e.Name.Local {
	case "testsuites", "testsuite":
		if len(t.path) == 1 {
			t.declared = attribute(e, "tests")
		}
		if e.Name.Local == "testsuite" {
			t.suites = append(t.suites, junitSuite{len(t.path), attribute(e, "name")})
		}
		return nil
	case "testcase":
	default:
		n := 0
		_, err := t.tree(e, line, &n)
		return err
	}
	n := 0
	test, err := t.tree(e, line, &n)
	if err != nil {
		return err
	}
	t.tests++
	return t.send(e, test)
}

func (t *junitReport) send(e xml.StartElement, test *xmlElement) error {
	suite := ""
	if n := len(t.suites); n > 0 {
		suite = t.suites[n-1].name
	}
	status, message, text := "passed", "", ""
	for _, s := range []struct{ element, status string }{{"skipped", "skipped"}, {"failure", "failed"}, {"error", "error"}} {
		for _, c := range test.children[s.element] {
			status = s.status
			said := attribute(xml.StartElement{Attr: c.attributes}, "message")
			message = joined(message, said, "; ")
			text = joined(text, string(bytes.TrimSpace(c.text)), "\n")
		}
	}
	var o record.Object
	o.StringOrNull("suite", suite)
	o.StringOrNull("name", attribute(e, "name"))
	o.StringOrNull("class", attribute(e, "classname"))
	time := strings.ReplaceAll(attribute(e, "time"), ",", "")
	if seconds, err := strconv.ParseFloat(time, 64); err == nil && record.IsNumber(decimalOf(seconds)) {
		o.Raw("time", decimalOf(seconds))
	} else {
		o.Raw("time", "null")
	}
	o.String("status", status)
	o.StringOrNull("message", message)
	o.StringOrNull("text", text)
	if t.sink.Pointer != nil {
		t.sink.Pointer(int64(test.line), "")
		test.mark(func(line int64, _ string) { t.sink.Pointer(line, "/text") }, "")
	}
	t.json = append(t.json[:0], o.Text()...)
	if len(t.json) > MaxRecord {
		return fmt.Errorf("line %d: the JSON of a test is longer than %d MiB; slice and grep read its text", test.line, MaxRecord>>20)
	}
	return t.sink.Value(int64(test.line), t.json)
}

func decimalOf(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// joined returns two texts with a separator, unless one is empty.
func joined(a, b, separator string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + separator + b
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
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
