package shown_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

// settings are how a secret stands in a line of each sort of text.
var settings = map[string]func(s string) string{
	"plain":   func(s string) string { return s },
	"quoted":  func(s string) string { return `see "` + s + `" there` },
	"JSON":    func(s string) string { b, _ := json.Marshal(map[string]string{"k": s, "n": "x"}); return string(b) },
	"YAML":    func(s string) string { return "  - value: " + s },
	"env":     func(s string) string { return "X_VALUE=" + s },
	"URL":     func(s string) string { return "https://x.test/p?v=" + s + "&w=1" },
	"header":  func(s string) string { return "X-Value: " + s },
	"log":     func(s string) string { return "2026-11-21T10:00:00Z INFO [main] used " + s + " for it" },
	"diff":    func(s string) string { return "+" + s },
	"CSV":     func(s string) string { return "1,ada," + s + ",2" },
	"literal": func(s string) string { return "\tv := f(`" + s + "`)" },
	"escaped": func(s string) string { return fmt.Sprintf(`{"k":"\u%04x%s"}`, s[0], quotedBody(s[1:])) },
}

func quotedBody(s string) string {
	b, _ := json.Marshal(s)
	return strings.ReplaceAll(string(b[1:len(b)-1]), "/", `\/`)
}

// leaked is the longest part of what is hidden that stands in a text, where it is long enough to be of use.
func leaked(text, hidden string) string {
	const useful = 8
	for n := len(hidden); n >= useful; n-- {
		for i := 0; i+n <= len(hidden); i++ {
			if strings.Contains(text, hidden[i:i+n]) {
				return hidden[i : i+n]
			}
		}
		if n > 2*useful { // a longer part holds a shorter one
			n = 2*useful + 1
		}
	}
	return ""
}

// borders are texts in which a line stands where something is cut: the clip of a line at each side of its middle, the
// ends of head and tail, the edges of a chunk, and of what is held.
func borders(line string) map[string]string {
	words := func(n int) string { return strings.Repeat("some words ", n/11+1)[:n] }
	rows := func(n int) string { return strings.Repeat("a row of a text\n", n) }
	all := map[string]string{
		"small":        "first\n" + line + "\nlast\n",
		"head's end":   rows(9) + line + "\n" + rows(300),
		"tail's start": rows(300) + line + "\n" + rows(4),
		"middle":       rows(150) + line + "\n" + rows(150),
	}
	for _, at := range []int{20, 44, 60, 120, 250} { // lines are clipped at these widths
		all[fmt.Sprintf(
			"line clipped at %d", at,
		)] = words(at) + " " + line + " " + words(6000) + "\n" + rows(100) + words(6000) + " " + line + " " + words(at) + "\n"
	}
	for _, at := range []int{2 << 10, 4 << 10, 31 << 10, 32 << 10, 64 << 10} {
		for _, back := range []int{1, len(line) / 2, len(line) - 1} {
			all[fmt.Sprintf("at byte %d-%d", at, back)] = words(at-back-1) + " " + line + " " + words(5000) + "\n" + rows(40)
			all[fmt.Sprintf(
				"at byte %d-%d of lines", at, back,
			)] = rows(at / 16)[:max(0, at-back-1)] + "\n" + line + "\n" + rows(400)
		}
	}
	return all
}

// secretsIn shows each secret in each setting and at each border through other servers' tools and our own, and counts
// what leaks. Of the many pairs those are taken whose number every divides.
func secretsIn(
	t *testing.T, o funnel.Options, every int, tell func(format string, args ...any),
) (cases, failures, formats int) {
	home := houseIn(t, o)
	names := map[string]bool{}
	number := 0
	check := func(what string, s corpus.Secret, text string) {
		cases++
		names[s.Format] = true
		if part := leaked(text, s.Hidden); part != "" {
			failures++
			tell("%s, %s: %q of %q leaks", s.Format, what, part, s.Text)
		}
	}
	for i, s := range corpus.Secrets(7) {
		if testing.Short() && !promise.Full() && i%4 != 0 {
			continue
		}
		for setting, in := range settings {
			if s.Line != s.Text && setting != "plain" { // it brings its own
				continue
			}
			line := in(s.Line)
			check(setting, s, shownOf(home.run(upstream("first\n"+line+"\n", "", nil), nil)))
			for border, text := range borders(line) {
				if number++; number%every == 0 {
					check(setting+", "+border, s, shownOf(home.run(upstream(text, "", nil), nil)))
				}
			}
		}
	}
	return cases, failures, len(names)
}

// TestS23SecretsAreMasked shows secrets of every format, in every setting, at every border and by every tool.
func TestS23SecretsAreMasked(t *testing.T) {
	masked := funnel.Options{Mask: maskOf()}
	every := promise.Size(300, 2)
	if testing.Short() && !promise.Full() {
		every = 1500
	}
	cases, failures, formats := secretsIn(t, masked, every, t.Errorf)
	// By every tool, and in all that stands beside a call.
	some := corpus.Secrets(11)
	for i := 0; i < len(some); i += promise.Size(29, 1) {
		s := some[i]
		home := houseIn(t, masked)
		for where, text := range home.everywhere("v "+s.Line, "") {
			cases++
			if part := leaked(text, s.Hidden); part != "" {
				failures++
				t.Errorf("%s, %s: %q of %q leaks in\n%.600s", s.Format, where, part, s.Text, text)
			}
		}
	}
	_, control, _ := secretsIn(t, funnel.Options{}, 4000, func(string, ...any) {})
	promise.Keptf(t, promise.Proof{Promise: "S23", Cases: cases, Failures: failures, Control: control},
		"%d formats of %d; the others, a key's block and its lines, by pages", formats, len(secrets.Formats()))
}

// A key's block is masked whichever page or row of it is asked for.
func TestS23KeysByPages(t *testing.T) {
	block, body := corpus.PrivateKey(5, "PRIVATE KEY", 26, 64)
	text := strings.Repeat("a row\n", 100) + block + strings.Repeat("another row\n", 100)
	cases, failures := 0, 0
	leaks := func(o funnel.Options) (n int) {
		home := houseIn(t, o)
		home.file("key.pem", text)
		ask := func(what string, a funnel.Answer) {
			cases++
			for _, l := range body {
				if part := leaked(shownOf(a), l); part != "" {
					n++
					if o.Mask != nil {
						t.Errorf("%s: %q leaks in\n%.300s", what, part, shownOf(a))
					}
					return
				}
			}
		}
		for from := 98; from < 130; from++ {
			ask(
				fmt.Sprintf("lines %d-", from),
				home.call(
					"slice", map[string]any{"source": "key.pem", "lines": fmt.Sprintf("%d-%d", from, from+9)},
					funnel.Limits{PageTokens: 400},
				),
			)
		}
		ask("grep", home.call("grep", map[string]any{"source": "key.pem", "pattern": "^[A-Za-z0-9+/]{60}"}))
		ask("search", home.call("search", map[string]any{"path": "key.pem", "pattern": "^[A-Za-z0-9+/]{60}"}))
		ask("search around", home.call("search", map[string]any{"path": "key.pem", "pattern": "KEY", "context": 9}))
		ask("read", home.call("read", map[string]any{"path": "key.pem"}))
		return n
	}
	failures = leaks(funnel.Options{Mask: maskOf()})
	promise.Keptf(t, promise.Proof{Promise: "S23", Cases: cases, Failures: failures, Control: leaks(funnel.Options{})},
		"a key by pages")
}

// kept is how many of the secrets are kept otherwise than asked for: exact, or redacted and said so.
func kept(
	t *testing.T, o funnel.Options, redacted bool, some []corpus.Secret, tell func(format string, args ...any),
) (failures int) {
	home := houseIn(t, o)
	for _, s := range some {
		in := strings.Repeat("a row of a text\n", 3000) + s.Line + "\n" + strings.Repeat("more\n", 3000)
		a := home.run(upstream(in, "", nil), map[string]any{})
		r := a.Receipts[0]
		got := keptOf(t, home, r)
		right := got == in && !r.Redacted && r.Metadata["redacted"] == 0
		if redacted {
			// a row as keys have them
			named := strings.Contains(got, "[masked: "+s.Format) || len(s.Line) == 64 &&
				strings.Contains(got, "[masked: key-line 64 chars]")
			right = leaked(got, s.Hidden) == "" && named && r.Redacted && int(r.Metadata["redacted"]) == r.Masked
		}
		if !right || r.Masked == 0 || !strings.Contains(shownOf(a), " masked\n") {
			failures++
			tell("%s, redacted %t: %+v\n%s", s.Format, redacted, r, shownOf(a))
		}
	}
	return failures
}

// keptOf is what is kept of an answer, and as long as its receipt says.
func keptOf(t *testing.T, h *house, r funnel.Receipt) string {
	t.Helper()
	rd := expect.Value(h.store.Open(observations.Local, observations.ID(r.ObservationID)))(t)
	defer func() { _ = rd.Close() }()
	b := expect.Value(io.ReadAll(io.NewSectionReader(rd, 0, rd.Size())))(t)
	expect.Equal(t, int64(len(b)), r.Bytes, "bytes are kept, and the receipt says")
	expect.OK(t, h.store.Verify(observations.Local, observations.ID(r.ObservationID)))
	return string(b)
}

// What is kept is exact, and with Redact it is not; both say so. The control asks the first for what the second does.
func TestS23WhatIsKept(t *testing.T) {
	var some []corpus.Secret
	every := promise.Size(10, 1)
	for i, s := range corpus.Secrets(3) {
		if i%every == 0 && s.Hidden != "" {
			some = append(some, s)
		}
	}
	exact, redacting := funnel.Options{Mask: maskOf()}, funnel.Options{Mask: maskOf(), Redact: true}
	failures := kept(t, exact, false, some, t.Errorf) + kept(t, redacting, true, some, t.Errorf)
	control := kept(t, exact, true, some, func(string, ...any) {})
	promise.Keptf(t, promise.Proof{Promise: "S23", Cases: 2 * len(some), Failures: failures, Control: control},
		"what is kept: exact, or redacted as asked")
	expect.Fails(t, expect.Err(funnel.New(funnel.Options{Redact: true})), "", "redacting without a masker is not refused")
}

// What was masked is said once, where there is something to say it beside, and costs no answer its form.
func TestMaskedIsSaid(t *testing.T) {
	s := corpus.Secrets(3)[30]
	h := houseIn(t, funnel.Options{Mask: maskOf()})
	rows := strings.Repeat("a row of a text\n", 2000)
	h.file("a.txt", s.Line+"\n"+rows)
	for what, a := range map[string]funnel.Answer{
		"small":    h.run(upstream("x "+s.Line+"\n", "", nil), nil),
		"large":    h.run(upstream(s.Line+"\n"+rows, "", nil), nil),
		"page":     h.call("slice", map[string]any{"source": "a.txt", "lines": "1-"}),
		"one page": h.call("grep", map[string]any{"source": "a.txt", "pattern": s.Text[:5]}),
		"note":     h.run(upstream("x\n", "seen "+s.Line, nil), nil),
		"error":    h.run(upstream("", "", errors.New("failed at "+s.Line)), nil),
	} {
		if n := strings.Count(shownOf(a), "1 secret masked"); n != 1 || a.Receipts[0].Masked != 1 {
			t.Errorf("%s: said %d times, masked %d:\n%.500s", what, n, a.Receipts[0].Masked, shownOf(a))
		}
	}
	// A page names its next call without the secret that was asked for.
	a := h.call("grep", map[string]any{"source": "a.txt", "pattern": "row|" + s.Text}, funnel.Limits{PageTokens: 400})
	if text := shownOf(a); strings.Contains(text, s.Hidden) ||
		!strings.Contains(text, `next: the same grep with {"offset":`) {
		t.Errorf("%.300s", text)
	}
}
