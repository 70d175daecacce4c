package secrets

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const (
	beginLine = "-----BEGIN RSA PRIVATE" + " KEY-----"
	endLine   = "-----END RSA PRIVATE" + " KEY-----"
)

// pieces are what a matcher reads beyond: ends and beginnings of blocks, marks before lines, names, keys, escapes.
var pieces = []string{
	beginLine, endLine, "\n", "\r\n", "\n+", "\n- ", "\n> ", "\n# ", "\n// ", "\n' ", "\n\"", "\n * ", "+", "'", "\"", "`", "\\", "\\n", "\\\\n", "\\u0041", "\\/", "\\u00", " ", "\t",
	"-----BEGIN ", "-----BEGIN CERTIFICATE-----", "Proc-Type: 4,ENCRYPTED", "MIIEabc123MIIEabc123MII9", "ab12==", strings.Repeat("aB3/xY9+", 8), strings.Repeat("aB3/xY9+", 9)[:70],
	"password", "token", "secret: ", "=", ":=", ": ", "=> ", ">", "<password>", "hunter2x9!", "[]byte(", "Authorization: ", "Basic ", "Bearer ", "Cookie: ", "a=b; c", "--user ", " -u ", "bob:",
	"https://", "u:p9@h", "@", "eyJhbGciOiJIUzI1NiJ9", ".", "gh" + "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "AK" +
		"IA", "Q2W3E4R5T6Y7U8I9", "sk-", "T3BlbkFJ", ":AA", "…", "...", "é", "\xff",
}

// cutTexts are texts of such pieces; the first of them are the shortest that end just where a matcher goes on.
func cutTexts(n int) (all []string) {
	for _, mark := range []string{"", "+", "- ", "> ", "# ", "// ", "' ", "'", "\"", "* ", " * ", "|", "\\", "    "} {
		all = append(all, "x\n"+mark+beginLine+"\n"+mark+"MIIEabc123MIIEabc123MII9\n"+mark+"ab12==\n"+mark+endLine+"\n"+mark)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range n {
		var b strings.Builder
		for range 2 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		all = append(all, b.String())
	}
	return all
}

// Wherever a text ends, it is searched: as a whole, as a page, and in two pieces of a stream.
func TestEveryCutIsSearched(t *testing.T) {
	m := New()
	n := 1500
	if testing.Short() {
		n = 200
	}
	for _, text := range cutTexts(n) {
		for cut := 1; cut <= len(text); cut++ {
			head, tail := text[:cut], text[cut:]
			whole, _ := m.String(head)
			if strings.Contains(whole, Unsearched) {
				t.Fatalf("not searched: %q", head)
			}
			if strings.Count(whole, "\n") != strings.Count(head, "\n") {
				t.Fatalf("lines changed: %q became %q", head, whole)
			}
			s, page := m.Stream(), m.Middle()
			took, out := s.Next([]byte(head), false)
			shown := string(out) + string(page.Text([]byte(tail))) + string(page.Text([]byte(head)))
			_, out = s.Next([]byte(text[took:]), true)
			if shown += string(out); strings.Contains(shown, Unsearched) {
				t.Fatalf("not searched in pieces: %q, %q", head, tail)
			}
			if at := page.SafeCut([]byte(text), cut); at < 0 || at > len(text) {
				t.Fatalf("%q cut at %d, not %d", text, at, cut)
			}
		}
	}
}

// A fault of the masker shows nothing of the text, is counted, and ends with the text.
func TestFaultShowsNothing(t *testing.T) {
	told := 0
	m := (&Masker{}).OnPanic(func(why any, stack []byte) { // without a filter each look at a text panics
		if told++; why == nil || !bytes.Contains(stack, []byte("secrets.")) {
			t.Errorf("told %v at %s", why, stack)
		}
	})
	const text = "a line of ordinary words\n"
	if got, n := m.String(text); got != Unsearched+"\n" || n != 1 {
		t.Errorf("%d, %q", n, got)
	}
	if !m.Holds(text) {
		t.Error("it holds nothing")
	}
	s := m.Stream()
	if n, got := s.Next([]byte(text+"and more"), false); n != len(text) || string(got) != Unsearched+"\n" ||
		s.Found() != 1 {
		t.Errorf("%d of it became %q, %d found", n, got, s.Found())
	}
	if got := s.Text([]byte("another of them")); string(got) != Unsearched || s.Found() != 2 {
		t.Errorf("%q, %d found", got, s.Found())
	}
	expect.Equal(t, s.SafeCut([]byte(text), 9), 9, "cut")
	expect.Equal(t, string(m.JSON([]byte(`{"a":"a line of ordinary words"}`))), `{"a":"`+Unsearched+`"}`)
	if got, n := m.Echo("what was asked", json.RawMessage(`"what was asked"`)); got != Unsearched || n != 2 {
		t.Errorf("%d, %q", n, got)
	}
	if told < 6 {
		t.Errorf("told %d times", told)
	}
	if _, n := (&Masker{}).String(text); n != 1 { // and nobody need listen
		t.Error(n)
	}
}

// What is left of a token where a tool cut its text is masked; words that end there are not.
func TestCutToken(t *testing.T) {
	m := New()
	const part = "PbmhJSUBO7u7vmYOuRr86u"
	token := "gh" + "p_" + part
	long := strings.Repeat("word ", 800)
	for _, around := range [][2]string{
		{`error: jq: keys cannot be applied to: string ("x `, ` ...")`}, {"x ", "..."}, {"x ", "…"}, {`{"line":1,"text":"` +
			long, `","column":3000,"cut":true}` + "\n"},
		{"/a/b: " + long, " [100-4195 of 90000]\n"}, {long, "\n"}, {long, ""}, {"before\n" + long, "\nafter\n"},
	} {
		for n := minClipped; n <= len(part); n++ {
			text := around[0] + "gh" + "p_" + part[:n] + around[1]
			if got, finding := m.String(text); finding != 1 || strings.Contains(got, part[:6]) ||
				!strings.HasSuffix(got, "chars]"+around[1]) {
				t.Errorf("%d characters before %q: %q", n, around[1], got[max(0, len(got)-200):])
			}
			s := m.Middle()
			if got := string(s.Text([]byte(text))); strings.Contains(got, part[:6]) {
				t.Errorf("%d characters before %q, as a page: %q", n, around[1], got[max(0, len(got)-200):])
			}
		}
		for _, word := range []string{"np" + "m_configRegistry", "sk_" + "test_something", "key-" + "deadbeef", "gh" +
			"p_short", "gh" + "p_xxxxxxxxxxxx"} {
			text := around[0] + word + around[1]
			if got, _ := m.String(text); got != text && around[1] != "…" {
				t.Errorf("%s before %q was masked: %q", word, around[1], got[max(0, len(got)-200):])
			}
		}
	}
	// no token, and no cut
	for _, text := range []string{"see " + token + " there", "see " + token + "\n", `{"text":"` + token + `"}`} {
		if got, n := m.String(text); n != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
	text := "keys cannot be applied to: object ({\"pass" + "word\":\"Hunter2x99 ...})"
	if got, _ := m.String(text); strings.Contains(got, "Hunter2") {
		t.Errorf("%s", got)
	}
}
