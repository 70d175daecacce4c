package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func TestEveryFormatIsFound(t *testing.T) {
	m := New()
	seen := map[string]bool{}
	for seed := range uint64(20) {
		for _, s := range corpus.Secrets(seed) {
			seen[s.Format] = true
			got, n := m.String("see " + s.Line + " there")
			if n != 1 || strings.Contains(got, s.Hidden) || !strings.Contains(got, "[masked: "+s.Format+" ") {
				t.Errorf("%s: %q became %q", s.Format, s.Line, got)
			}
		}
	}
	for _, f := range Formats() {
		if !seen[f.Name] && f != &privateKey && f != &keyLine {
			t.Errorf("%s has no example in the corpus", f.Name)
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d formats", len(seen))
	}
}

func TestWhatAMaskLooksLike(t *testing.T) {
	m := New()
	for in, want := range map[string]string{
		"key AK" +
			"IAQ2W3E4R5T6Y7U8I9 x": "key [masked: aws-access-key-id AKIA… 20 chars] x",
		`{"a":"\u0041K` +
			`IAQ2W3E4R5T6Y7U8I9"}`: `{"a":"[masked: aws-access-key-id AKIA… 20 chars]"}`,
		`{"u":"https:\/\/bob:s3` +
			`cr3tpw@h\/x"}`: `{"u":"https:\/\/bob:[masked: url-password 8 chars]@h\/x"}`,
		`{"pass` + `word":"hunter2x9!"}`:   `{"password":"[masked: password 10 chars]"}`,
		"DB_PA" + "SS=ab,cd(ef9":           "DB_PASS=[masked: password 9 chars]",
		"export PASS" + "WORD=Tr0ub4dor&3": "export PASSWORD=[masked: password 11 chars]",
		"<pass" +
			"word>hunter22x</password>": "<password>[masked: password 9 chars]</password>",
		`config["api` +
			`_key"] = "a1b2c3d4e5"`: `config["api_key"] = "[masked: password 10 chars]"`,
		"run --pass" +
			"word hunter2x9 now": "run --password [masked: password 9 chars] now",
		`let tok` +
			`en: String = "abz123def456ghi789"`: `let token: String = "[masked: token 18 chars]"`,
		`\"client_sec` +
			`ret\":\"a8f9s8df7a9s8df7\"`: `\"client_secret\":\"[masked: password 16 chars]\"`,
		"?access_tok" + "en=abz123def456ghi789&x=1": "?access_token=[masked: token 18 chars]&x=1",
		"Server=x;Pass" +
			"word=abz123!;Port=1": "Server=x;Password=[masked: password 7 chars];Port=1",
		"pass" + "word: hunter22secret,\n": "password: [masked: password 14 chars],\n",
		"PASS" + "WORD=Hunter2T9Secret":    "PASSWORD=[masked: password 15 chars]",
		"pass" + "word: Hunter2T9Secret\n": "password: [masked: password 15 chars]\n",
		"+ pass" + "word: s3cr3t!pw # x":   "+ password: [masked: password 9 chars] # x",
		"\x1b[32mAK" +
			"IAQ2W3E4R5T6Y7U8I9": "\x1b[32m[masked: aws-access-key-id AKIA… 20 chars]",
		`"a\nAK` +
			`IAQ2W3E4R5T6Y7U8I9\n"`: `"a\n[masked: aws-access-key-id AKIA… 20 chars]\n"`,
		"Authorization: Basic dXNlcjpw" +
			"YXNzd29yZDk=": "Authorization: Basic [masked: authorization 20 chars]",
		"header 'Basic dXNlcjpw" +
			"YXNzd29yZDk='": "header 'Basic [masked: basic-auth 20 chars]'",
		"https://oauth2:gl" +
			"pat-a1B2c3D4e5F6g7H8i9J0@gitlab.test/x.git": "https://oauth2:[masked: gitlab-token glpat-… 26 chars]@gitlab.test/x.git",
		"-----BEGIN PRIVATE" +
			" KEY-----\nMIIEabc123MIIEabc123MII9\nab12==\n": "-----BEGIN PRIVATE KEY-----\n[masked: private-key]\n[masked]\n",
	} {
		got, _ := m.String(in)
		expect.Equal(t, got, want, "%q became", in)
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	m := New()
	for _, in := range []string{
		"AKIAIOSFODNN7EXAMPLE", "token_count=12345678901234567", "secretName: my-secret-12", "if password == other9 {", "password := getPassword1(x)",
		"the password is a word", "password: required", `"password": "string"`, `token: ${TOKEN_1}`, `password: "{{ .Values.pw1 }}"`, "PASSWORD=$PW_1", "password: '<your-password-1>'",
		"https://user:password@example.com/", "https://example.com:8080/@scope/name", "postgres://u:$PW@h/d", "git@github.com:a/b.git",
		"123e4567-e89b-12d3-a456-426614174000", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		`"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="`,
		"github.com/x/y v1.0.0 h1:Jy0cH2YyLrFWGLCkrDbBNtXUdqMP3jnOiAKHRYBzEyQ=", "index 83db48f..bf269f4 100644", "sk-learn and xoxo-chat, npm_config_cache",
		"tokens.New(tokens.O200k)", "Secret: secrets.Foo1Bar", "type Token struct{ Kind9 int }", "key-1234", "eyJ is how base64 of an object begins",
		"data:application/json;base64,eyJ2ZXJzaW9uIjozLCJmaWxlIjoiYSJ9", "-----BEGIN CERTIFICATE-----", "basic authentication is simple", "bearer of good news and of bad ones",
		"authorization: required", `strings.Contains(s, "-----BEGIN PRIVATE` + ` KEY-----")`,
		"--- PASS: TestAddrStringAllocs/ipv6+zone (0.00s)",
		"\tPrivateKey: testRSA2048PrivateKey,\n", "cert{PrivateKey: testRSA2048PrivateKey}", "f(Options{Pass" +
			"word: my1db2Pass3Password, N: 1})", "\tCredentials: c.BearerToken,\n",
	} {
		if got, n := m.String(in); n != 0 || got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// A leaf as grep shows it has no quotes, yet is masked as the string that jq shows.
func TestLeafIsMaskedAsItsString(t *testing.T) {
	m := New()
	for _, name := range []string{"pass" + "word", "db_sec" + "ret", "api" + "Key", "tok" + "en", "note"} {
		for _, value := range []string{"hunter2x9", "p@ss,w(ord)1", "onlyLettersHereButQuotedValue", "12345678", "Tr0ub4dor&3;x", "correct horse battery", "required", "${PW_1}", "a8f9s8df7a9s8df7", "pass.word_one"} {
			text, _ := json.Marshal(map[string]string{name: value})
			_, want := m.String(string(text))
			for _, row := range []string{"/3/" + name + ": " + value, "12 words\n/a/b c/" + name + ": " + value +
				"\n/a/d: 1\n", "/" + name + ": " + value + " [0-8 of 9000]\n"} {
				got, n := m.String(row)
				if n != want && !(strings.Contains(row, " of 9000") && strings.Contains(value, " ")) {
					t.Errorf("%q became %q, but %s has %d", row, got, text, want)
				}
				if n > 0 && strings.Contains(got, value) {
					t.Errorf("%q is shown: %q", value, got)
				}
			}
		}
	}
	for _, in := range []string{"/usr/bin/secret: not found", "see /a/password: it is there", "/a: the password: hunters"} {
		if got, n := m.String(in); n != 0 {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// keys are blocks in the contexts in which they are met; each %s takes a block without its last newline.
var keyContexts = map[string]func(block string) string{
	"plain":  func(b string) string { return "before\n" + b + "after\n" },
	"diff":   func(b string) string { return "@@ -0,0 +1 @@\n" + prefixed("+", b) + "-old\n" },
	"quoted": func(b string) string { return prefixed("> ", b) + "after\n" },
	"hash":   func(b string) string { return prefixed("# ", b) + "after\n" },
	"indent": func(b string) string { return "key: |\n" + prefixed("    ", b) + "next: 1\n" },
	"json": func(b string) string {
		s, _ := json.Marshal(map[string]string{"key": b, "z": "after"})
		return string(s)
	},
	"json twice": func(b string) string {
		s, _ := json.Marshal(b)
		s, _ = json.Marshal(`{"k":` + string(s) + `}`)
		return string(s)
	},
	"program": func(b string) string {
		return "k = \"" + strings.ReplaceAll(strings.TrimSpace(b), "\n", "\\n\" +\n    \"") + "\"\n"
	},
	"one line": func(b string) string { return "KEY=\"" + strings.ReplaceAll(strings.TrimSpace(b), "\n", " ") + "\"\n" },
	"crlf":     func(b string) string { return strings.ReplaceAll(b, "\n", "\r\n") },
	"headers": func(b string) string {
		return strings.Replace(b, "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n", 1)
	},
}

func prefixed(p, s string) string {
	return p + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+p) + "\n"
}

// leaks are the lines of a key of which ten letters together are in a text.
func leaks(text string, body []string) (n int) {
	for _, l := range body {
		for i := 0; i+10 <= len(l); i++ {
			if strings.Contains(text, l[i:i+10]) {
				n++
				break
			}
		}
	}
	return n
}

func TestKeyBlocks(t *testing.T) {
	m := New()
	for label, width := range map[string]int{"RSA PRIVATE KEY": 64, "PRIVATE KEY": 64, "EC PRIVATE KEY": 64, "OPENSSH PRIVATE KEY": 70, "PGP PRIVATE KEY BLOCK": 64, "ENCRYPTED PRIVATE KEY": 76} {
		block, body := corpus.PrivateKey(1, label, 20, width)
		for name, in := range keyContexts {
			text := in(block)
			got, n := m.String(text)
			if n != 1 || leaks(got, body) > 0 || strings.Count(got, "\n") != strings.Count(text, "\n") {
				t.Errorf("%s, %s: %d found, %d lines leak:\n%s", label, name, n, leaks(got, body), got)
			}
			if strings.Contains(text, "after") && !strings.Contains(got, "after") {
				t.Errorf("%s, %s: what follows is gone:\n%s", label, name, got)
			}
			if strings.HasPrefix(name, "json") && !json.Valid([]byte(got)) {
				t.Errorf("%s, %s: no JSON any more: %s", label, name, got)
			}
		}
		// A text that begins within a block, and one of single lines.
		if width == 76 {
			continue
		}
		lines := strings.SplitAfter(block, "\n")
		for from := 1; from < 20; from++ {
			got, _ := m.String(strings.Join(lines[from:], ""))
			if leaks(got, body) > 0 {
				t.Errorf("%s from line %d: %s", label, from, got)
			}
		}
		for _, end := range []string{"", "\n", "\r\n"} { // rows have none, stretches theirs
			s := m.Stream()
			for i, l := range lines[5:] {
				if got := s.Text([]byte(strings.TrimSuffix(l, "\n") + end)); leaks(string(got), body) > 0 {
					t.Errorf("%s: row %d before %q: %s", label, i, end, got)
				}
			}
			if got := s.Text([]byte("see Release2026 there" + end)); !strings.Contains(string(got), "Release2026") {
				t.Errorf("%s: what follows before %q: %s", label, end, got)
			}
		}
	}
	cert, body := corpus.PrivateKey(1, "CERTIFICATE", 20, 64)
	if got, n := m.String(cert); n > 0 || leaks(got, body) != 20 {
		t.Errorf("a certificate: %s", got)
	}
}

// What a stream gives does not depend on how its text comes in, and no piece of a secret is let through.
func TestStreamIsTheWhole(t *testing.T) {
	m := New()
	r := rand.New(rand.NewPCG(3, 3))
	var text bytes.Buffer
	var hidden []string
	block, body := corpus.PrivateKey(4, "PRIVATE KEY", 26, 64)
	for seed := range uint64(2) {
		for _, s := range corpus.Secrets(seed) {
			fmt.Fprintf(&text, "line %d of a log with nothing in it\n%s\n", r.IntN(1000), s.Line)
			hidden = append(hidden, s.Hidden)
			if r.IntN(20) == 0 {
				text.WriteString(block)
			}
			if r.IntN(15) == 0 { // a line without end
				text.WriteString(strings.Repeat("word and word ", 2000) + s.Line + strings.Repeat(" more", 3000) + "\n")
			}
		}
	}
	_, n := m.String(text.String())
	if n < len(hidden) {
		t.Fatalf("%d of %d found", n, len(hidden))
	}
	for _, size := range []int{1, 100, 4096, 32 << 10, 1 << 20} {
		s := m.Stream()
		var got, buf []byte
		in := text.Bytes()
		if size < 100 {
			in = in[:min(len(in), 60_000)]
		}
		want, _ := m.String(string(in))
		for len(in) > 0 {
			k := min(size, len(in))
			buf = append(buf, in[:k]...)
			in = in[k:]
			if len(buf) < 20<<10 || len(in) == 0 {
				continue
			}
			took, out := s.Next(buf, false)
			if took == 0 {
				t.Fatal("nothing was taken")
			}
			got = append(got, out...)
			buf = buf[:copy(buf, buf[took:])]
		}
		_, out := s.Next(buf, true)
		got = append(got, out...)
		if string(got) != want {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("in pieces of %d: differs at %d of %d: %.200q, want %.200q", size, i, len(want), got[i:], want[i:])
		}
		if leaks(string(got), body) > 0 {
			t.Errorf("in pieces of %d: the key leaks", size)
		}
	}
}

// A secret longer than anything is waited for is left out to its end.
func TestSecretWithoutEnd(t *testing.T) {
	m := New()
	in := "x gh" + "p_" + strings.Repeat("a1B2c3D4e5F6g7H8i9J0", 10_000) + " y\n"
	got := streamed(m.Stream().Next, in, func(left int) int { return min(5000, left) })
	if strings.Contains(got, "a1B2") || !strings.HasPrefix(got, "x [masked: github-token ghp_… ") ||
		!strings.HasSuffix(got, "] y\n") {
		t.Errorf("%.300q", got)
	}
}

func TestNilMasksNothing(t *testing.T) {
	var m *Masker
	in := corpus.Secrets(1)[0].Line
	if got, n := m.String(in); got != in || n != 0 {
		t.Errorf("%q", got)
	}
	s := m.Stream()
	if n, out := s.Next([]byte(in), false); n != len(in) || string(out) != in {
		t.Errorf("%d %q", n, out)
	}
	expect.Equal(t, string(m.JSON([]byte(`{"password":"x"}`))), `{"password":"x"}`)
}

func TestMaskedJSON(t *testing.T) {
	m := New()
	for in, want := range map[string]string{
		`{"password":"x","n":12345678901234567890}`: `{"n":12345678901234567890,"password":"[masked: password]"}`,
		`["AK` +
			`IAQ2W3E4R5T6Y7U8I9",{"apiKey":"","k":[1]}]`: `["[masked: aws-access-key-id AKIA… 20 chars]",{"apiKey":"[masked: password]","k":[1]}]`,
		`not json`: ``,
	} {
		expect.Equal(t, string(m.JSON([]byte(in))), want, "%s became", in)
	}
}

// hostile are texts that make a masker stop at every few bytes.
func hostile(size int) map[string]string {
	all := map[string]string{}
	for _, f := range Formats() {
		for k := range strings.SplitSeq(f.Keywords, "|") {
			if k != "" {
				all[k] = strings.Repeat(k, size/len(k))
			}
		}
	}
	for _, k := range []string{"-----BEGIN PRIVATE" + " KEY-----\n", "A1b", "eyJhbGciOiJI.", `token: "`, `\u0041`, "password=\"a1", "://a:", "a@", "x:AAA", `\\\\"`, "Bearer a1b2", "cookie: a=b;", "AAAA\n",
		"eyJ" + "sk-", "eyJhbGciOiJ" + "PMAK-", "pass" + "word:" + "gh" + "p_", "XXauthorization:authorization:", "gs" +
			"k_pwd=",
		"cookie\":[\"a=b\",", "\"cookie\",\"value\":\"", "-u a:b\\\\", "\\\\u0041", "pass" + "word='a1b2c3\\\\\"", "authorization: a1b2c3)", "\\npwd=a1,",
		"pass" + "word: |\n", "\n pass" + "word: |", "- name: pass" + "word\n", `"name":"pass` + `word",`, `value":"a1b2c3","name":"secret",`,
		"value: a1b2c3\nname: secret\n", "define('secret', ", "root:a1@tcp(", "@tcp(", "://:a1", "<name>secret</name>", "name: secret\n12:",
		"name=secret>", "name: secret\na: b\na: b\na: b\n", "pass" + "word: |\n  a1b2c3\n"} {
		all[k] = strings.Repeat(k, size/len(k))
	}
	key, _ := corpus.PrivateKey(1, "PRIVATE KEY", 20, 64)
	all["keys"] = strings.Repeat(key, size/len(key))
	all["key lines"] = strings.Repeat(strings.SplitAfter(key, "\n")[3], size/65)
	return all
}

// Nothing makes the masker stop for long: time that grows with the square of the text would be minutes.
func TestHostileTextEnds(t *testing.T) {
	m := New()
	size := 64 << 10
	if testing.Short() {
		size = 8 << 10
	}
	for name, text := range hostile(size) {
		var got string
		promise.Ends(t, func() { got, _ = m.String(text) }, "%q of %d bytes", name, size)
		expect.Equal(t, strings.Count(got, "\n"), strings.Count(text, "\n"), "%q: lines changed", name)
	}
}

var maskShape = regexp.MustCompile(`\[masked(: [a-z0-9-]+(( \S{1,20}…)? \d+ chars)?)?\]`)

func FuzzMask(f *testing.F) {
	for _, s := range corpus.Secrets(1) {
		f.Add(s.Line)
	}
	for _, in := range keyContexts {
		block, _ := corpus.PrivateKey(1, "RSA PRIVATE KEY", 4, 64)
		f.Add(in(block))
	}
	for _, s := range pieces {
		f.Add("x\n" + s)
	}
	m := New()
	f.Fuzz(func(t *testing.T, s string) {
		got, n := m.String(s)
		if strings.Contains(got, Unsearched) && !strings.Contains(s, Unsearched) {
			t.Fatalf("not searched: %q", s)
		}
		if (n == 0) != (got == s) && n == 0 {
			t.Fatalf("changed without a count: %q", got)
		}
		expect.MustEqual(t, strings.Count(got, "\n"), strings.Count(s, "\n"), "lines changed: %q became %q", s, got)
		if json.Valid([]byte(s)) && !json.Valid([]byte(got)) {
			t.Fatalf("no JSON any more: %q became %q", s, got)
		}
		if n > 0 && !maskShape.MatchString(got) {
			t.Fatalf("no mask in %q", got)
		}
		if got == s {
			return
		}
		masks := maskShape.FindAllString(got, -1)
		maskedLine, _ := m.String(got)
		if left := maskShape.FindAllString(maskedLine, -1); len(left) < len(masks) {
			t.Fatalf("masks were masked: %q, %q", got, maskedLine)
		}
	})
}

func BenchmarkClean(b *testing.B) {
	for name, text := range map[string][]byte{"prose": corpus.WarAndPeace()[:1<<20], "json": corpus.JSON1MB(), "log": corpus.PanicLog()[:1<<20]} {
		b.Run(name, func(b *testing.B) { mask(b, text) })
	}
}

// BenchmarkHostile is the worst that 16 KiB cost.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile(16 << 10) {
		b.Run(name, func(b *testing.B) { mask(b, []byte(text)) })
	}
}

// BenchmarkHostileGrows is the dearest of them at once, ten and a hundred times as long: what 16 KiB cost stays the
// same.
func BenchmarkHostileGrows(b *testing.B) {
	m := New()
	for _, times := range []int{1, 10, 100} {
		texts := hostile(times * 16 << 10)
		b.Run(fmt.Sprintf("%dx", times), func(b *testing.B) {
			best := map[string]time.Duration{}
			for b.Loop() {
				for name, text := range texts {
					began := time.Now()
					m.String(text)
					if took := time.Since(began); best[name] == 0 || took < best[name] {
						best[name] = took
					}
				}
			}
			worst, which := time.Duration(0), ""
			for name, took := range best {
				if took > worst {
					worst, which = took, name
				}
			}
			b.ReportMetric(worst.Seconds()*1e3/float64(times), "ms/16KiB-worst")
			b.Logf("the dearest: %q", which)
		})
	}
}

func mask(b *testing.B, text []byte) {
	m := New()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s := Stream{m: m}
		s.Text(text)
	}
}
