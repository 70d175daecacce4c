package values

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestReports: the tests of reports as pytest, Maven, Jest, gotestsum, PHPUnit, NUnit, xUnit and Visual Studio write
// them, of one that was cut and of one that has not the number of tests it declares.
func TestReports(t *testing.T) {
	for _, path := range expect.Value(filepath.Glob("testdata/reports/*.xml"))(t) {
		text := expect.Value(os.ReadFile(path))(t)
		want := expect.Value(os.ReadFile(strings.TrimSuffix(path, "xml") + "ndjson"))(t)
		expect.Same(t, read(t, JUnit, string(text))+"\n", string(want), path)
	}
}

var readers = []Reader{YAML, XML, JUnit, TOML, INI, Properties, Env}

// checkReader checks what all uses of a reader rely on: each record is a line of JSON, all methods have the same
// records, and each pointer is one of its record, in ascending order of lines.
func checkReader(t testing.TB, r Reader, text []byte) {
	t.Helper()
	var objects, numbered bytes.Buffer
	err := r.Objects(t.Context(), bytes.NewReader(text), &objects)
	err2 := r.Numbered(t.Context(), bytes.NewReader(text), &numbered)
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("%.500q: objects: %v; numbered: %v", text, err, err2)
	}
	if err != nil && (strings.Contains(err.Error(), "panicked") || strings.ContainsAny(err.Error(), "\n\r")) {
		t.Fatalf("%.500q: %v", text, err)
	}
	var records [][]byte
	_ = r.Spans(t.Context(), bytes.NewReader(text), func(i int64, at content.Span) bool {
		if i != int64(len(records)) {
			t.Fatalf("%.500q: record %d after %d", text, i, len(records))
		}
		records = append(records, objects.Bytes()[at.Start:at.End])
		return true
	})
	lines, numbers := bytes.Split(objects.Bytes(), []byte("\n")), bytes.Split(numbered.Bytes(), []byte("\n"))
	if len(lines) != len(records)+1 || len(numbers) != len(records)+1 {
		t.Fatalf("%.500q: %d objects, %d numbered, %d spans", text, len(lines)-1, len(numbers)-1, len(records))
	}
	if single := r.IsSingle(t.Context(), bytes.NewReader(text)); single != (len(records) == 1) {
		t.Fatalf("%.500q: single: %t, of %d records", text, single, len(records))
	}
	all := int64(1)
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // by YAML 1.1
		all += int64(bytes.Count(text, []byte(end)))
	}
	for i, record := range records {
		if !json.Valid(record) || !bytes.Equal(record, lines[i]) {
			t.Fatalf("%.500q: record %d is %.500q, a line is %.500q", text, i, record, lines[i])
		}
		number, after, _ := bytes.Cut(numbers[i], []byte(","))
		n, err := strconv.ParseInt(strings.TrimPrefix(string(number), "["), 10, 64)
		if err != nil || n < 1 || n > all || !bytes.Equal(bytes.TrimSuffix(after, []byte("]")), record) {
			t.Fatalf("%.500q: numbered record %d is %.500q", text, i, numbers[i])
		}
	}
	checkPointers(t, r, text)
}

func checkPointers(t testing.TB, r Reader, text []byte) {
	t.Helper()
	type mark struct {
		line    int64
		pointer string
	}
	var marks []mark
	last := int64(0)
	_ = r(t.Context(), bytes.NewReader(text), Sink{
		Pointer: func(line int64, pointer string) { marks = append(marks, mark{line, pointer}) },
		Value: func(_ int64, record []byte) error {
			for _, m := range marks {
				if !jsontext.Value(record).IsValid() { // a name twice: its pointer is that of the last
					continue
				}
				_, err := content.Point(t.Context(), bytes.NewReader(record), content.JSON, m.pointer)
				if err != nil || m.line < last {
					t.Fatalf("%.500q: line %d after %d has the pointer %q of %.500s: %v", text, m.line, last, m.pointer, record, err)
				}
				last = m.line
			}
			marks = marks[:0]
			return nil
		},
	})
}

// samples are texts of each reader, in the order of readers.
var samples = []string{
	"%YAML 1.2\n---\n# c\na: &x {b: [1, 0x1F, ~], \"c\": 'd'}\ne:\n  <<: *x\n" +
		"  f: |\n    g\n    h\n  ? [k]\n  : !t v\n...\n---\n- 1\n- - 2\n",
	"<?xml version='1.1'?>\n<!DOCTYPE a [<!ELEMENT a ANY>]>\n<a x='&lt;1'><!-- c -->t\n" +
		"<r p:y=\"2\">u<![CDATA[<v>]]></r>\n<r><s/><s>w</s></r></a>\n",
	"<testsuites tests='2'><testsuite name='s'>\n<testcase name='a' time='1,000.5'/><testcase name='b'>\n" +
		"<failure message='m'>t\nu</failure></testcase></testsuite></testsuites>",
	"a.b = [1, 2.5, {c = 'd'}]\n[[p]]\nx = 1979-05-27T07:32:00Z\n[p.q]\ny = \"\"\"z\nw\"\"\"\n[[p]]\n\"k/l\" = inf\n",
	"top = 1\n[a]\nk = v\n  w\n; c\nn\n[b c]\nm: x\n[a]\nk = 2\n",
	"a=1\\\n  b\n! c\nk\\u00e9\\ y : v\\tw\nempty\n\\ud83d\\ude00=x\n",
	"# c\nexport A=1 # d\nB=\"x\\n$y\nz\" \nC='w'\nD=\n",
}

// TestEachByte: a text that ends at any byte, or has another byte at any place, is read, or refused, but never wrong.
func TestEachByte(t *testing.T) {
	for i, sample := range samples {
		text := []byte(sample)
		for at := range text {
			checkReader(t, readers[i], text[:at])
			for _, b := range []byte("\x00\r\t\xff\"{-<[")[at%7 : at%7+3] {
				was := text[at]
				text[at] = b
				checkReader(t, readers[i], text)
				text[at] = was
			}
		}
	}
}

func FuzzReaders(f *testing.F) {
	for i, sample := range samples {
		f.Add(uint8(i), []byte(sample))
	}
	for _, c := range expect.Table[yamlCase](f, "testdata/yaml.tsv") {
		f.Add(uint8(0), []byte(c.Text))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		checkReader(t, readers[int(kind)%len(readers)], text)
	})
}
