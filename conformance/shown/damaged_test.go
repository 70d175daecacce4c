package shown_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

// TestMain also is the worker of jq.
func TestMain(m *testing.M) { os.Exit(workertest.Main(m, jq.Workers())) }

// whole are files of values in other forms than JSON.
var whole = map[string]string{
	"a.yaml": "%YAML 1.2\n---\nname: &n {first: \"é\", 2: [0x1F, ~, no]}\nlist:\n- <<: *n\n  text: |\n    one\n    two\n- - x/y~z\n---\nsecond: 1\n",
	"a.xml": "<?xml version='1.1'?>\n<shop x='1'>\n <item id='2'>t<![CDATA[<u>]]>\n  <price cur='€'>3</price></item>\n" +
		" <item><price>4</price><price>5</price></item>\n <other/>\n</shop>\n",
	"r.xml": "<testsuites tests='2'>\n<testsuite name='s'>\n<testcase name='a' time='0.5'/>\n<testcase name='b'>\n" +
		"<failure message='m'>t\nu</failure></testcase>\n</testsuite>\n</testsuites>\n",
	"a.toml":       "title = \"t\"\n[a.b]\nc = [1, 2.5, {d = 1979-05-27}]\n[[p]]\nx = 1\n[[p]]\n\"y/z\" = '''w\nv'''\n[p.q]\nr = true\n",
	"a.ini":        "top = 1\n[one]\nk = v\n  w\nn\n; c\n[two words]\nm: x\n",
	"a.properties": "a=1\\\n  b\nk\\u00e9 : v\\tw\nempty\n",
	"a.env":        "# c\nexport A=1 # d\nB=\"x\ny\"\nC='w'\n",
	"a.html":       "<table><tr><th>A<th>B</tr><tr><td>1<td>x</tr></table>",
}

// damaged returns files that are broken or hostile: whole ones cut anywhere and with other bytes in them, and others.
func damaged() map[string]string {
	all := map[string]string{}
	for name, text := range whole {
		ext := path.Ext(name)
		for i := range 8 {
			at := i * len(text) / 8
			all[fmt.Sprintf("cut%02d-%s", i, name)] = text[:at]
			junk := []string{"\x00", "\xff\xfe", "\r", "\ufeff", "]]>", "<!--", "&x;", "\t", "{{", "*", "\"", "\xed\xa0\x80"}[(i+len(text))%12]
			all[fmt.Sprintf("junk%02d-%s", i, name)] = text[:at] + junk + text[at:]
		}
		all["cr-"+name] = strings.ReplaceAll(text, "\n", "\r")
		all["crlf-"+name] = strings.ReplaceAll(text, "\n", "\r\n")
		all["twice-"+name] = text + text
		all["nul"+ext] = strings.Repeat("\x00", 5000)
		all["empty"+ext], all["blank"+ext], all["newlines"+ext] = "", "   ", "\n\n\n"
		all["longline"+ext] = strings.Repeat("x", 50_000)
		all["utf16-"+name] = utf16(text)
	}
	many := strings.Repeat
	for name, text := range map[string]string{
		"bomb.yaml": "a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g]\n",
		"self.yaml": "a: &a [*a, *a]\n", "selfmerge.yaml": "a: &a {<<: [*a, *a], b: 1}\n", "unknown.yaml": "a: *b\n",
		"deep.yaml": many("[", 20_000), "deepseq.yaml": many("- ", 20_000), "deepkeys.yaml": many("? ", 5000) + "a",
		"merges.yaml":  "a: &x {" + many("k: 1,", 5000) + "}\nb: {<<: [" + many("*x,", 5000) + "]}\n",
		"control.yaml": "a: \x01\n", "tab.yaml": "a:\n\tb: 1\n", "huge.yaml": "a: 0x" + many("f", 50_000) + "\nb: 1e999999999\n",
		"directives.yaml": many("%TAG !a! tag:x,1:\n", 3000) + "---\na\n", "helm.yaml": "{{- if .x }}\na: {{ .y }}\n{{- end }}\n",
		"laughs.xml":    `<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]><l>&c;</l>`,
		"external.xml":  `<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><l>&a;</l>`,
		"parameter.xml": `<!DOCTYPE l [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x"> %a;]><l/>`,
		"deep.xml":      many("<a>", 20_000), "attributes.xml": "<a " + many("b='1' ", 5000) + "/>", "two.xml": "<a/><b/>",
		"noroot.xml": "<!-- c -->", "prefix.xml": "<p:a q:b='1'/>", "mixed.xml": "<a>x<b/>y<b/>z</a>",
		"charset.xml": "<?xml version='1.0' encoding='nonsense'?><a>x</a>", "utf16.xml": "<?xml version='1.0' encoding='UTF-16'?><a>x</a>",
		"surrogate.xml": "<a>&#xD800;</a>", "lt.xml": "<a><</a>", "names.xml": "<" + many("n", 50_000) + "/>",
		"suites.xml": "<testsuites>" + many("<testsuite name='s'>", 200), "deep.toml": "a = " + many("[", 20_000),
		"dots.toml": many("a.", 20_000) + "a = 1", "tables.toml": many("[a]\n", 3000), "big.toml": "a = 1" + many("0", 50_000),
		"keys.toml": "a = 1\na = 2\n", "open.toml": "a = \"\"\"x", "bracket.ini": "[a\nk=v", "nokey.ini": "[a]\n=v",
		"sections.ini": many("[s]\nk=v\n", 5000), "escape.properties": "a=\\u12", "slash.properties": "a=\\",
		"open.env": "A=\"x\ny", "words.env": "not an assignment", "cells.html": "<table>" + many("<tr><td colspan=9999 rowspan=9999>", 100),
		"nested.html": many("<table><tr><td>x", 5000), "tags.html": many("<", 50_000),
	} {
		all[name] = text
	}
	return all
}

func utf16(text string) string {
	b := []byte("\xff\xfe")
	for _, r := range text {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}

// TestDamagedValues reads damaged files by all tools that know their values: each call ends with records, with a note,
// or with one error, which has a line or says what the text lacks.
func TestDamagedValues(t *testing.T) {
	files := damaged()
	h := houseIn(t, funnel.Options{})
	placed := regexp.MustCompile(`line \d|byte \d|\d deep|root|no element|not XML|repeat|binary|empty|has 0 |longer|more than|UTF-8|unsupported|slice|pars|ends|invalid|not JSON|no records`)
	failed := 0
	for name, text := range files {
		h.file(name, text)
		for _, call := range []struct {
			tool string
			args map[string]any
		}{
			{"jq", map[string]any{"source": name, "filter": "."}},
			{"slice", map[string]any{"source": name, "records": "0-2"}},
			{"slice", map[string]any{"source": name, "at": ""}},
			{"grep", map[string]any{"source": name, "pattern": "[a-z]", "limit": 5}},
		} {
			start := time.Now()
			a := h.run(h.tools[call.tool], call.args)
			shown := shownOf(a)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%s %v took %v", call.tool, call.args, took)
			}
			if strings.Contains(shown, "panic") || shown == "" || a.Failed && (!placed.MatchString(shown) || len(shown) > 2000) {
				t.Errorf("%s %v of %.100q: %.700s", call.tool, call.args, text, shown)
			}
			if a.Failed {
				failed++
			}
		}
	}
	t.Logf("%d files, %d calls failed", len(files), failed)
	if len(files) < 200 || failed < 100 {
		t.Errorf("%d files, %d calls failed: they prove nothing", len(files), failed)
	}
}

// TestPointersOfValues: slice shows at a pointer of grep what jq has there.
func TestPointersOfValues(t *testing.T) {
	h := houseIn(t, funnel.Options{})
	pointer := regexp.MustCompile(`(?m)^\d+ \((/.*?)\): `)
	value := func(tool string, args map[string]any) string {
		a := h.run(h.tools[tool], args)
		text, _, _ := strings.Cut(a.Blocks[0].Text, "\nnote: ")
		if !json.Valid([]byte(text)) { // below a header
			_, text, _ = strings.Cut(text, "\n")
		}
		var v any
		if err := json.Unmarshal([]byte(text), &v); a.Failed || err != nil {
			t.Errorf("%s %v: %v: %s", tool, args, err, shownOf(a))
		}
		return string(expect.Value(json.Marshal(v))(t))
	}
	all := 0
	for name, text := range whole {
		if name == "a.html" {
			continue
		}
		h.file(name, text)
		found := pointer.FindAllStringSubmatch(shownOf(h.run(h.tools["grep"], map[string]any{"source": name, "pattern": "."})), -1)
		if len(found) < 3 {
			t.Errorf("%s: %d pointers", name, len(found))
		}
		several := name == "a.yaml" || name == "a.xml" || name == "r.xml"
		for _, m := range found {
			all++
			filter := `. as $all | ($at | split("/")[1:] | map(gsub("~1"; "/") | gsub("~0"; "~"))) | reduce .[] as $k ($all; ` +
				`if type == "array" then .[$k | tonumber] else .[$k] end)`
			jq := value("jq", map[string]any{"source": name, "filter": filter, "slurp": several, "args": map[string]any{"at": m[1]}})
			expect.Equal(t, value("slice", map[string]any{"source": name, "at": m[1]}), jq, "%s at %s", name, m[1])
		}
	}
	t.Logf("%d pointers", all)
}
