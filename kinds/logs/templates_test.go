package logs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// randomWords returns a function that returns a line of random words.
func randomWords() func() string {
	r := rand.New(rand.NewPCG(5, 8))
	return func() string {
		words := make([]string, 6+r.IntN(6))
		for i := range words {
			for range 3 + r.IntN(7) {
				words[i] += string(rune('a' + r.IntN(26)))
			}
		}
		return strings.Join(words, " ")
	}
}

// TestLinesThatDoNotRepeat: lines are matched against templates only as long as they repeat. Common templates and those
// of errors are shown even if the matching stopped.
func TestLinesThatDoNotRepeat(t *testing.T) {
	random := randomWords()
	served := func(i int) string { return fmt.Sprintf("INFO request served path=/items/%d took=%dms", i, i%90) }
	for _, c := range []struct {
		name           string
		line           func(i int) string
		stopped, ended bool
		body           []string // one line each, and no other
	}{
		{"repeating", served, false, false, []string{"20000× INFO request served"}},
		{"random", func(int) string { return "INFO " + random() }, true, false, nil},
		{"random after the same words", func(int) string { return "INFO worker said " + random() }, true, false, nil},
		{"random errors", func(int) string { return "ERROR " + random() }, true, true, nil},
		{"half random", func(i int) string {
			if i%2 == 0 {
				return served(i)
			}
			return "INFO " + random()
		}, false, false, []string{"10000× INFO request served"}},
		{"repeating, then random", func(i int) string {
			if i < 10_000 {
				return served(i)
			}
			return "INFO " + random()
		}, true, false, []string{"10000+× INFO request served"}},
		{"random with errors", func(i int) string {
			if i%1000 == 999 {
				return fmt.Sprintf("ERROR write of block %d failed", i)
			}
			return "INFO " + random()
		}, true, false, nil}, // the errors are a finding
	} {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, "2026-11-23T10:%02d:%02dZ %s\n", i/60%60, i%60, c.line(i))
		}
		for _, piece := range []int{b.Len(), 1000} {
			l := New("")
			for rest := b.String(); rest != ""; rest = rest[min(piece, len(rest)):] {
				l.Add([]byte(rest[:min(piece, len(rest))]))
			}
			l.end()
			ts, body := l.patterns.templates, l.body()
			if ts.stopped != c.stopped || ts.ended != c.ended || ts.lines != 20_000 {
				t.Errorf("%s: stopped %v, ended %v after %d lines", c.name, ts.stopped, ts.ended, ts.lines)
			}
			if len(body) != len(c.body) || len(body) > 0 && !strings.HasPrefix(body[0], c.body[0]) {
				t.Errorf("%s: %q, want %q", c.name, body, c.body)
			}
			if c.name == "random with errors" {
				if e := l.errorPatterns(); len(e) != 1 ||
					e[0].count()+" "+e[0].pattern() != "20× ERROR write of block <*> failed" {
					t.Errorf("%d templates of errors", len(e))
				}
			}
		}
	}
}

// TestErrorsWithoutFixedWords: an error pattern of which only the level is fixed shows a line, the most frequent one.
func TestErrorsWithoutFixedWords(t *testing.T) {
	for _, c := range []struct {
		line func(i int) string
		want string
	}{
		{
			func(i int) string { return fmt.Sprintf("ERROR e%d x%d", i%7/3, i%7/3) },
			"140× such as ERROR e0 x0 (lines 2 … 1392)",
		},
		{func(i int) string { return fmt.Sprintf("[ERROR] %d", i%7/3) }, "140× such as [ERROR] 0 (lines 2 … 1392)"},
		{func(i int) string { return fmt.Sprintf("ERROR disk %d", i%7/3) }, "140× ERROR disk <*> (lines 2 … 1392)"},
	} {
		l := New("")
		for i := range 140 {
			for k := range 10 {
				s := fmt.Sprintf("2026-11-23T10:%02d:%02dZ ", i/60%60, i%60) + "INFO request served"
				if k == 1 {
					s = fmt.Sprintf("2026-11-23T10:%02d:%02dZ ", i/60%60, i%60) + c.line(i)
				}
				l.Add([]byte(s + "\n"))
			}
		}
		var s digest.Summary
		if l.Finish(&s); !slices.Contains(s.Says, c.want) {
			t.Errorf("%s: %q", c.line(0), s.Says)
		}
	}
}

// TestTemplatesShown: a template is shown if it has 2 % of the lines, or if its lines are errors.
func TestTemplatesShown(t *testing.T) {
	l := New("")
	words := []string{"alpha", "beta", "gamma"}
	for i := range 1000 {
		switch {
		case i%50 == 1: // 20 lines
			fmt.Fprintf(writer{l}, "2026-11-23T10:00:00Z INFO %s of the cache %d\n", "exactly two percent", i)
		case i%50 == 2 && i < 900: // 18 lines
			fmt.Fprintf(writer{l}, "2026-11-23T10:00:00Z WARN just less of the disk %d\n", i)
		case i%500 == 3: // 2 lines
			fmt.Fprintf(writer{l}, "2026-11-23T10:00:00Z ERROR the database %d is gone\n", i)
		default:
			fmt.Fprintf(writer{l}, "2026-11-23T10:00:00Z INFO %s request %d\n", words[i%3], i)
		}
	}
	l.end()
	got := strings.Join(l.body(), "\n")
	for text, want := range map[string]bool{"20× INFO exactly two": true, "just less": false, "2× ERROR": true} {
		expect.Equal(t, strings.Contains(got, text), want, "%q is shown: %v %s", text, !want, got)
	}
}

// writer passes a text to a summarizer.
type writer struct{ *logs }

func (w writer) Write(p []byte) (int, error) {
	w.Add(p)
	return len(p), nil
}
