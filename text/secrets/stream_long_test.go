package secrets

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// A line without end is cut somewhere: never between a secret and what tells of it, nor within an escape before it. The
// control hands over the pieces each by itself.
func TestLongLinesAreNotCutBeforeASecret(t *testing.T) {
	type shown struct{ text, secret string }
	texts := []shown{
		{`{"password": "S3cr3tPass99xyz","n":1}`, "S3cr3tPass"}, {`{"a":1, "api_key" : "abcdEFGH1234ijklMNOP"}`, "abcdEFGH1234"},
		{`"x\npassword=S3cr3tPass99xyz\nfoo"`, "S3cr3tPass"}, {`"curl -u admin:S3cr3tPass99xyz x"`, "S3cr3tPass"},
		{`"Authorization: Bearer abcDEF0123456789abcdef0123\r\nHost: x"`, "abcDEF01234"}, {`{"name": "Cookie", "value": "sid=S3cr3tPass99xyz"}`, "S3cr3tPass"},
		{`"a\nAKIAIOSFODNN7EXAMPLQ"`, "AKIAIOSF"},
	}
	for _, s := range corpus.Secrets(7) {
		if s.Hidden != "" && len(s.Hidden) > 8 && !strings.ContainsAny(s.Line, "\n\"\\") {
			texts = append(texts, shown{`{"line": "` + s.Line + `"}`, s.Hidden[:8]})
		}
	}
	m := New()
	control := 0
	for _, c := range texts {
		if out, _ := m.String(c.text); strings.Contains(out, c.secret) {
			continue // not one that is masked in these surroundings
		}
		lead := "[" + strings.Repeat(`"x y",`, 2*maxLine/6)
		in := lead + c.text + strings.Repeat(`,"x y"`, maxLine/6)
		for cut := range len(c.text) {
			s := m.Stream()
			end := len(lead) + cut + heldBack // the cut is looked for from reach before what there is
			n, out := s.Next([]byte(in[:end]), false)
			all := string(out)
			_, out = s.Next([]byte(in[n:]), true)
			if all += string(out); strings.Contains(all, c.secret) {
				t.Fatalf("cut %d bytes behind the beginning of %q: %.300s", cut, c.text, all[strings.Index(all, c.secret)-100:])
			}
			at := len(lead) + cut
			first, _ := m.String(in[:at])
			second, _ := m.String(in[at:])
			if strings.Contains(first+second, c.secret) {
				control++
			}
		}
	}
	if control == 0 {
		t.Error("no text would have shown its secret")
	}
}
