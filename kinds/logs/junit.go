package logs

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of reports on tests in XML.
const (
	tagBytes    = 8 << 10 // maximum size of a tag; a longer one is cut
	failedShown = 8
)

// xmlReport reads the XML in which test runners report: that of JUnit, and those of NUnit, xUnit and Visual Studio, as
// far as they name a test by an attribute and its failure by a child. It reads tags only, so a report that breaks off
// or lies on one line is read too.
type xmlReport struct {
	begun, none bool   // none: the text is no report
	line, at    int64  // at: where the current tag begins
	tag         []byte // the current tag or text, up to tagBytes
	last        []byte // its last three bytes
	in          xmlPart

	tests, failed, broken int64           // broken: those with an error
	rooted                bool            // the first element was read
	name                  string          // of the current test; "" outside
	open                  *failedTestcase // the failure of the current test
	reads                 bool            // the next text is its message
	list                  []failedTestcase
}

type failedTestcase struct {
	line       int64
	name, says string
}

// xmlPart is the part of XML that the next byte belongs to.
type xmlPart uint8

const (
	inText xmlPart = iota
	inTag
	inQuotes // in a tag
	inApostrophes
	inSection // CDATA
	inComment
)

// partEnds are the bytes that may end a part.
var partEnds = [...]string{
	inText: "<", inTag: `>"'[-`, inQuotes: `"`, inApostrophes: "'", inSection: ">", inComment: ">",
}

func (x *xmlReport) add(b []byte) {
	if !x.begun {
		start := bytes.TrimLeft(b, "\xef\xbb\xbf \t\r\n")
		x.line += int64(bytes.Count(b[:len(b)-len(start)], []byte{'\n'}))
		if b = start; len(b) > 0 {
			x.begun, x.none = true, b[0] != '<'
			x.line++
		}
	}
	for len(b) > 0 && !x.none {
		b = b[x.next(b):]
	}
}

// next reads b up to a byte that may end the current part, and returns the number of bytes.
func (x *xmlReport) next(b []byte) int {
	n := bytes.IndexAny(b, partEnds[x.in])
	if n < 0 {
		x.hold(b)
		return len(b)
	}
	c := b[n]
	if x.in == inText {
		x.hold(b[:n])
		x.text()
		x.begin(inTag)
		x.at = x.line
		return n + 1
	}
	x.hold(b[:n+1])
	switch was := x.in; {
	case was == inTag && c == '"':
		x.in = inQuotes
	case was == inTag && c == '\'':
		x.in = inApostrophes
	case was == inTag && string(x.tag) == "![CDATA[":
		x.begin(inSection)
	case was == inTag && string(x.tag) == "!--":
		x.in = inComment
	case was == inTag && c == '>':
		x.element()
		x.begin(inText)
	case was == inQuotes || was == inApostrophes:
		x.in = inTag
	case was == inSection && string(x.last) == "]]>":
		x.tag = bytes.TrimSuffix(x.tag, []byte("]]>"))
		x.text()
		x.begin(inText)
	case was == inComment && string(x.last) == "-->":
		x.begin(inText)
	}
	return n + 1
}

// hold appends a part of the current tag or text, as far as there is room.
func (x *xmlReport) hold(b []byte) {
	x.line += int64(bytes.Count(b, []byte{'\n'}))
	x.tag = append(x.tag, b[:min(len(b), tagBytes-len(x.tag))]...)
	x.last = append(x.last, b[max(0, len(b)-3):]...)
	x.last = x.last[max(0, len(x.last)-3):]
}

// begin begins the next tag or text.
func (x *xmlReport) begin(part xmlPart) {
	x.tag, x.last, x.in = x.tag[:0], x.last[:0], part
}

// text takes the held text as the message of the current failure, if that has none.
func (x *xmlReport) text() {
	if !x.reads {
		return
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(x.tag)), "\n")
	if x.in != inSection {
		text = unescape(text)
	}
	if text != "" {
		x.open.says, x.reads = text, false
	}
}

func unescape(text string) string {
	var s string
	if xml.Unmarshal([]byte("<a>"+text+"</a>"), &s) != nil {
		return text
	}
	return s
}

// element takes the held tag.
func (x *xmlReport) element() {
	tag := bytes.TrimSuffix(x.tag, []byte(">"))
	if len(tag) == 0 || tag[0] == '!' || tag[0] == '?' {
		return
	}
	name, _, _ := bytes.Cut(bytes.Trim(tag, "/"), []byte(" "))
	name = bytes.TrimSpace(name)
	test, failure := testElements[string(name)], x.name != "" && failureElements[string(name)]
	switch {
	case !x.rooted:
		x.rooted, x.none = true, !reportElements[string(name)]
	case tag[0] == '/' && test:
		x.close()
	case tag[0] == '/' && failure:
		x.reads = false
	case tag[0] != '/' && (test || failure):
		closed := bytes.HasSuffix(tag, []byte("/"))
		e := parseTag(string(name), strings.ToValidUTF8(strings.TrimSuffix(string(tag), "/"), ""))
		if test {
			x.testcase(e)
		} else {
			x.failure(e)
		}
		if closed && test {
			x.close()
		}
		x.reads = x.reads && !closed
	}
}

// parseTag parses a tag, which may have been cut inside an attribute.
func parseTag(name, tag string) xml.StartElement {
	for _, end := range []string{"", `"`, "'"} {
		d := xml.NewDecoder(strings.NewReader("<" + tag + end + "/>"))
		d.Strict = false
		if t, _ := d.Token(); t != nil {
			if e, ok := t.(xml.StartElement); ok {
				return e
			}
		}
	}
	return xml.StartElement{Name: xml.Name{Local: name}}
}

// The names of elements: the first one of a report, a test, and its failure.
var (
	reportElements  = content.SetOf("testsuites testsuite test-run assemblies assembly TestRun")
	testElements    = content.SetOf("testcase test-case test UnitTestResult")
	failureElements = content.SetOf("failure error ErrorInfo")
)

func attribute(e xml.StartElement, names ...string) string {
	for _, name := range names {
		for _, a := range e.Attr {
			if a.Name.Local == name && a.Value != "" {
				return a.Value
			}
		}
	}
	return ""
}

// testcase begins a test.
func (x *xmlReport) testcase(e xml.StartElement) {
	x.close()
	x.tests++
	x.name = cmp.Or(attribute(e, "fullname", "testName", "name", "id"), "unnamed")
	if class := attribute(e, "classname"); class != "" {
		x.name = class + ": " + x.name
	}
	verdict := strings.ToLower(attribute(e, "result", "outcome"))
	if verdict == "error" || strings.HasPrefix(verdict, "fail") {
		x.fail(verdict == "error")
	}
}

func (x *xmlReport) fail(broken bool) {
	if broken {
		x.broken++
	} else {
		x.failed++
	}
	x.open = &failedTestcase{line: x.at, name: x.name}
}

func (x *xmlReport) failure(e xml.StartElement) {
	if x.open == nil {
		x.fail(e.Name.Local == "error")
	}
	kind, says := attribute(e, "type"), attribute(e, "message")
	if says != "" && kind != "" && !strings.Contains(says, kind) {
		says = kind + ": " + says
	}
	x.open.says = cmp.Or(x.open.says, says)
	x.reads = x.open.says == ""
}

// close ends the current test.
func (x *xmlReport) close() {
	if x.open != nil && len(x.list) < failedShown {
		x.list = append(x.list, *x.open)
	}
	x.open, x.name, x.reads = nil, "", false
}

// summarize adds the number of tests and the failed ones.
func (x *xmlReport) summarize(s *digest.Summary) {
	if x.in == inText || x.in == inSection {
		x.text()
	}
	x.close()
	if x.tests == 0 {
		return
	}
	total := content.Plural(x.tests, "test", "tests") + ", " + digest.Number(x.failed) + " failed"
	if x.broken > 0 {
		total += ", " + content.Plural(x.broken, "error", "errors")
	}
	s.Total = append(s.Total, total)
	for _, f := range x.list {
		s.Says = append(s.Says, strings.TrimSuffix("failed test, line "+digest.Number(f.line)+": "+
			content.Clip(f.name, digest.LineRunes)+": "+content.Clip(f.says, digest.LineRunes), ": "))
	}
	if more := x.failed + x.broken - int64(len(x.list)); more > 0 {
		s.Says = append(s.Says, "… and "+content.Plural(more, "more failed test", "more failed tests"))
	}
}
