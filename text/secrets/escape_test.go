package secrets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// behinds are what may stand behind a secret in a text.
var behinds = []string{`"`, "\n", "\tx", "\r\nHost: x", ")", `"}`, "\nnext line", "'", "\n\n\")"}

// around are how a secret stands in a text that is a JSON string.
var around = map[string]func(line, end string) string{
	"alone":   func(line, end string) string { return line + end },
	"quoted":  func(line, end string) string { return `curl -H "` + line + `"` + end },
	"line":    func(line, end string) string { return "first\n" + line + end },
	"crlf":    func(line, end string) string { return "first\r\n" + line + end },
	"tab":     func(line, end string) string { return "a\t" + line + end },
	"shell":   func(line, end string) string { return `sh -c "` + line + end },
	"literal": func(line, end string) string { return "x = '" + line + "'" + end },
	"path":    func(line, end string) string { return `C:\dir\ ` + line + end },
	"member":  func(line, end string) string { return `{"k": "` + line + `", "z": 1}` + end },
}

// inJSON is a text as a string of a value of so many levels.
func inJSON(text string, levels int) string {
	for range levels {
		b, err := json.Marshal(map[string]string{"text": text, "z": "last"})
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return text
}

// outOf is the text again; "" where it is none.
func outOf(value string, levels int) string {
	for range levels {
		var v map[string]string
		if json.Unmarshal([]byte(value), &v) != nil || v["z"] != "last" {
			return ""
		}
		value = v["text"]
	}
	return value
}

// spoiled says what is wrong with a masked text of such JSON: it is no JSON any more, or text around the secret is
// gone.
func spoiled(masked, text string, s corpus.Secret, levels int) string {
	if !json.Valid([]byte(masked)) {
		return "no JSON any more"
	}
	got := outOf(masked, levels)
	if i := strings.Index(got, s.Hidden[:8]); i >= 0 {
		return "leaks"
	}
	before, behind, _ := strings.Cut(text, s.Text)
	at := maskShape.FindStringIndex(got)
	if at == nil {
		return "no mask"
	}
	if rest := got[at[1]:]; rest != behind && !(strings.HasPrefix(s.Text, "theme") && rest != "") {
		return fmt.Sprintf("behind it stands %q, not %q", rest, behind)
	}
	if !strings.HasPrefix(before, got[:min(at[0], len(before))]) && !strings.HasPrefix(got, before) {
		return fmt.Sprintf("before it stands %q, not %q", got[:at[0]], before)
	}
	return ""
}

// In a JSON string, at whatever depth, a secret is masked to its end and no further, and what was JSON stays JSON.
func TestJSONStaysWhole(t *testing.T) {
	m := New()
	cases := 0
	for _, s := range corpus.Secrets(21) {
		for name, in := range around {
			for _, end := range behinds {
				text := in(s.Line, end)
				for levels := 1; levels <= 3; levels++ {
					value := inJSON(text, levels)
					got, _ := m.String(value)
					cases++
					if why := spoiled(got, text, s, levels); why != "" {
						t.Errorf("%s, %s, %d levels: %s: %s became %s", s.Format, name, levels, why, value, got)
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// A control: of values that end where the credentials' class did that had the backslash, most spoil the JSON around
// them.
func TestJSONIsSpoiledByABackslash(t *testing.T) {
	set := *credentialSet
	set['\\'] = true
	cases, bad := 0, 0
	for _, s := range corpus.Secrets(21) {
		if s.Format != "user-flag" && !strings.HasPrefix(s.Line, "Authorization: ") {
			continue
		}
		for _, end := range []string{`"`, "\n", "\tx", "\r\nHost: x"} {
			text := around["alone"](s.Text, end)
			value := inJSON(text, 1)
			at := strings.Index(value, s.Hidden)
			n := set.run([]byte(value[at:]), unbounded)
			cases++
			if spoiled(value[:at]+string(appendMask(nil, &userFlag, nil, n))+value[at+n:], text, s, 1) != "" {
				bad++
			}
		}
	}
	if bad < cases || cases < 8 {
		t.Errorf("only %d of %d are told", bad, cases)
	}
}

// What ends where, as it is read and not as it is made.
func TestEscapesEndValues(t *testing.T) {
	m := New()
	const bearer, sid = "abcDEF0123456789abcdef0123", "abcDEF0123456789xyz"
	for in, want := range map[string]string{
		`{"text":"curl -H \"Authorization: Bearer ` + bearer +
			`\" https://x"}`: `{"text":"curl -H \"Authorization: Bearer [masked: authorization 26 chars]\" https://x"}`,
		`{"text":"curl -H \"Cookie: sid=` + sid +
			`\" https://x"}`: `{"text":"curl -H \"Cookie: sid=[masked: authorization 19 chars]\" https://x"}`,
		`{"text":"curl -u \"admin:s3` +
			`cretPass9\" https://x"}`: `{"text":"curl -u \"admin:[masked: user-flag 11 chars]\" https://x"}`,
		`{"text":"sh -c \"curl -u admin:s3` +
			`cretPass9\""}`: `{"text":"sh -c \"curl -u admin:[masked: user-flag 11 chars]\""}`,
		`"(\"Authorization: Basic YWxhZGRpbjpv` +
			`cGVuc2VzYW1l\\n\\n\")"`: `"(\"Authorization: Basic [masked: authorization 24 chars]\\n\\n\")"`,
		`"Authorization: Bearer ` + bearer +
			`\r\nHost: example.com\r\n"`: `"Authorization: Bearer [masked: authorization 26 chars]\r\nHost: example.com\r\n"`,
		`"curl --user admin:s3` +
			`cretPass9\nnext line"`: `"curl --user admin:[masked: user-flag 11 chars]\nnext line"`,
		`"curl -u admin:s3\/cr\u003d` +
			`etPass9\n"`: `"curl -u admin:[masked: user-flag 13 chars]\n"`,
		`"\"curl -u admin:s3\\/cr\\u003d` +
			`etPass9\\n\""`: `"\"curl -u admin:[masked: user-flag 13 chars]\\n\""`,
		`"curl -u admin:s3\\cr` +
			`etPass9\n"`: `"curl -u admin:[masked: user-flag 13 chars]\n"`,
		`{"pass` +
			`word":"hunter2x9\\","user":"bob"}`: `{"password":"[masked: password 9 chars]\\","user":"bob"}`,
		`{"pass` +
			`word":"hun\"ter2x9","user":"bob"}`: `{"password":"[masked: password 11 chars]","user":"bob"}`,
		`"{\"pass` +
			`word\":\"hun\\\"ter2x9\",\"user\":\"bob\"}"`: `"{\"password\":\"[masked: password 13 chars]\",\"user\":\"bob\"}"`,
		`{"a":"pass` +
			`word='hunter2x9","b":"x'y"}`: `{"a":"password='[masked: password 9 chars]","b":"x'y"}`,
		`"a\npwd=hun&ter2x9\nb"`:                            `"a\npwd=[masked: password 10 chars]\nb"`,
		`"x\np` + `m_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"`: `"x\n[masked: npm-token pm_… 39 chars]"`,
		`"\u2028AK` +
			`IAQ2W3E4R5T6Y7U8I9\u2028"`: `"\u2028[masked: aws-access-key-id AKIA… 20 chars]\u2028"`,
	} {
		if got, _ := m.String(in); got != want {
			t.Errorf("%s became\n%s, want\n%s", in, got, want)
		}
	}
}

// A header is masked as a member of JSON, as the elements of one, and as a pair of name and value, compact, indented,
// escaped, and read row by row; the rest stays.
func TestHeadersInJSON(t *testing.T) {
	m := New()
	const sid, tok = "sid=abcDEF0123456789xyz", "token abcDEF0123456789abcdef0123"
	compact := []string{
		`{"Cookie":"` + sid + `"}`, `{"Cookie":["` + sid + `"]}`, `{"a":1,"Authorization":["` + tok +
			`"],"b":2}`, `{"headers":[{"name":"Cookie","value":"` + sid + `"},{"name":"a","value":"b"}]}`,
		`[{"name":"Set-Cookie","value":"` + sid + `; Path=/"}]`, `{"set-cookie":["lang=en; Path=/","` + sid + `; Path=/","` +
			sid + `; HttpOnly"]}`, `{"name":"authorization","value":"` + tok + `","comment":""}`,
		`{"proxy-authorization":"` + tok + `"}`,
	}
	for _, in := range compact {
		var indented strings.Builder
		e := json.NewEncoder(&indented)
		e.SetIndent("", "  ")
		expect.Must(t, e.Encode(json.RawMessage(in)))
		in = strings.ReplaceAll(strings.ReplaceAll(in, sid, "SID"), tok, "TOK")
		for _, text := range []string{in, strings.ReplaceAll(strings.ReplaceAll(indented.String(), sid, "SID"), tok, "TOK")} {
			for level := range 4 {
				assignedValue := strings.NewReplacer("SID", sid, "TOK", tok).Replace(text)
				want := strings.NewReplacer(
					"SID", "sid=[masked: authorization 19 chars]", "TOK", "token [masked: authorization 26 chars]",
				).Replace(text)
				if level > 0 {
					assignedValue, want = inJSON(assignedValue, level), inJSON(want, level)
				}
				if got, _ := m.String(assignedValue); got != want {
					t.Errorf("%s became\n%s", assignedValue, got)
				}
				var rows strings.Builder
				s := m.Stream()
				for row := range strings.Lines(assignedValue) {
					rows.Write(s.Text([]byte(row)))
				}
				expect.Equal(t, rows.String(), want, "rows %s became", assignedValue)
			}
		}
	}
	for _, in := range []string{`{"Cookie":"` + "lang=en" + `"}`, `{"cookie":["a=b","c=d"],"x":"` + sid + `"}`, `{"name":"Cookie","comment":"` + sid + `"}`, `["Cookie",{"value":1}]`, `{"Authorization":["required"]}`,
		`{"name":"Cookie","value":""},{"name":"a","value":"` + sid + `"}`, `"Cookie"`, `"cookie":[`, `"Cookie": null, "x": "` + sid + `"`, `f("Cookie", "` + "x=1" + `")`} {
		if got, n := m.String(in); n != 0 {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// Each byte of a view is where it was in the text, or where the escape of it began.
func TestAViewKnowsItsPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(\\{0,3}(u0041|/|n|")|ab){0,12}`).Draw(t, "text")
		b := []byte(text)
		v := newView(b)
		k := 0
		for at := 0; at < len(b); {
			i, c, n := nextEscape(b, at)
			if i < 0 {
				i, n = len(b), 0
			}
			for ; at < i; at, k = at+1, k+1 {
				if v.b[k] != b[at] || v.at(k) != at {
					t.Fatalf("%q: %q at %d, want %q at %d", text, v.b[k], v.at(k), b[at], at)
				}
			}
			if n > 0 {
				if v.b[k] != c || v.at(k) != at {
					t.Fatalf("%q: %q at %d, want %q at %d", text, v.b[k], v.at(k), c, at)
				}
				at, k = at+n, k+1
			}
		}
		if k != len(v.b) || v.at(k) != len(b) {
			t.Fatalf("%q: ends at %d, %d", text, k, v.at(k))
		}
	})
}
