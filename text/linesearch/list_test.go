package linesearch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// randomList returns a list of words, most of them in the same form, and a text of their letters.
func randomList(random *rand.Rand) (expr string, text []byte) {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	letters := pick("abc", "abk", "ask", "aé", "жш", "kſé", "a.-", "sßσ")
	letter := func() string { r := []rune(letters); return string(r[random.IntN(len(r))]) }
	before, after := pick("", "", "^", `\b`, `\B`, "x"), pick("", "", "$", `\b`, `\B`, "y", "(?:y|z)?")
	open, end := pick("(?:", "(", "(?:"), ")"
	var list []string
	for range 17 + random.IntN(40) {
		var w strings.Builder
		for range 1 + random.IntN(6) {
			w.WriteString(regexp.QuoteMeta(letter()))
		}
		one := w.String()
		switch random.IntN(60) {
		case 0:
			one = "^" + one
		case 1:
			one += "$"
		case 2:
			one = `\b` + one
		case 3:
			one = "(" + one + ")"
		case 4:
			one += "(?:b|)"
		}
		list = append(list, one)
	}
	var b bytes.Buffer
	for range 60 {
		switch random.IntN(12) {
		case 0:
			b.WriteString(pick("\n", "\r\n", "\n", "\r", "\xff", "\xc5", "\ufffd"))
		case 1:
			b.WriteString(pick(" ", " ", "x", "y", "_", "ſ", "\u212a", "K", "S", "É", "Ж", "ς", "ẞ"))
		case 2:
			b.WriteString(strings.ToUpper(letter()))
		default:
			b.WriteString(letter())
		}
	}
	return before + open + strings.Join(list, "|") + end + after, b.Bytes()
}

// TestWords compares the lines, the first match and the groups of lists of words with those of regexp.
func TestWords(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	lists := 0
	for range 1000 {
		expr, text := randomList(random)
		p := Pattern{Expr: expr, IgnoreCase: random.IntN(2) == 0, Multiline: random.IntN(4) == 0}
		m, err := Compile(p)
		expect.Must(t, err)
		if !m.list {
			continue
		}
		lists++
		_, prefix := flags(p)
		re := regexp.MustCompile(prefix + expr)
		check(t, p, Options{Invert: !p.Multiline && random.IntN(4) == 0, Before: random.IntN(2)}, text)
		for line := range bytes.Lines(text) {
			line = m.text(line)
			want := re.FindIndex(line)
			start, end, ok, err := m.Find(context.Background(), line)
			if err != nil || ok != (want != nil) || ok && !slices.Equal(want, []int{start, end}) {
				t.Fatalf("%+v in %q: %d-%d %t %v, want %d", p, line, start, end, ok, err, want)
			}
			var tuples, wanted []string
			m.Groups(line, func(tuple []byte) { tuples = append(tuples, string(tuple)) })
			plain := Matcher{re: func() *regexp.Regexp { return re }}
			plain.Groups(line, func(tuple []byte) { wanted = append(wanted, string(tuple)) })
			if !slices.Equal(tuples, wanted) {
				t.Fatalf("%+v in %q: groups %q, want %q", p, line, tuples, wanted)
			}
		}
	}
	if lists < 500 {
		t.Errorf("%d lists of words", lists)
	}
}

// TestWordsOfPatterns names patterns that are lists of words, and those that are not.
func TestWordsOfPatterns(t *testing.T) {
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("%x", i*i*i*7919+4711))
	}
	list := strings.Join(ids, "|")
	for expr, want := range map[string]string{
		"ORD-" + strings.Join(ids, "|ORD-"): "ORD-", strings.Join(ids, `\.log|`) + `\.log`: ".log", list: "",
	} {
		m, err := compile(Pattern{Expr: expr})
		expect.Must(t, err)
		needles := ""
		for _, n := range m.need.Needles {
			needles += n.Text
		}
		expect.Equal(t, needles, want, "%.40s …: the needles", expr)
	}
	for _, c := range []struct {
		expr string
		fold bool
		want bool
	}{
		{list, false, true},
		{list, true, true},
		{"^(?:" + list + ")$", false, true},
		{`\b(` + list + `)\b`, true, true},
		{"id=(" + list + `)(?:\.log|\.txt)?`, false, true},
		{"ORD-" + strings.Join(ids, "|ORD-"), false, true},
		{strings.Join(ids, `\.log|`) + `\.log`, false, true},
		{list + "|(?i)error", false, true},
		{list + "|[0-9]{4}", false, false},
		{"(?:" + list + "): .*", false, false},
		{"(?:" + list + ")(?:" + list + ")", false, true},
		{list + "|\ufffd", false, false}, // it also matches invalid bytes
		{strings.Join(ids[:16], "|"), false, false},
		{"[a-z][0-9]", false, false},
	} {
		m, err := compile(Pattern{Expr: c.expr, IgnoreCase: c.fold})
		if err != nil {
			if c.want {
				t.Errorf("%.40s: %v", c.expr, err)
			}
			continue
		}
		expect.Equal(t, m.list, c.want, "%.40s … %.20s", c.expr, c.expr[max(0, len(c.expr)-20):])
	}
}
