package tokens_test

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var oracles = sync.OnceValue(func() map[tokens.Encoding]*tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	m := map[tokens.Encoding]*tiktoken.Tiktoken{}
	for _, e := range []tokens.Encoding{tokens.O200k, tokens.CL100k} {
		o, err := tiktoken.GetEncoding(string(e))
		if err != nil {
			panic(err)
		}
		m[e] = o
	}
	return m
})

// same compares with tiktoken-go in both encodings, in one piece and as a stream.
func same(t expect.TB, text string) {
	t.Helper()
	for e, o := range oracles() {
		want := len(o.EncodeOrdinary(text))
		c := tokens.New(e)
		expect.Equal(t, c.Count(text), want, "%s, tokens, tiktoken-go says, %.300q", e, text)
		s := c.Tally()
		for b := []byte(text); len(b) > 0; {
			n := min(len(b), 1+len(b)%7777)
			_, _ = s.Write(b[:n])
			b = b[n:]
		}
		if got := s.Total(); utf8.ValidString(text) && (got.N != int64(want) || got.Margin != 0) {
			t.Errorf("%s: streamed %+v, tiktoken-go says %d: %.300q", e, got, want, text)
		}
	}
}

func TestEqualsTiktoken(t *testing.T) {
	for _, text := range []string{
		"", " ", "\n", "a", "  a", "a  ", " \n a", "\r\n\r\n  x", "it's IT'S it'Ll we'VE 'S 's", "don'tſ 'ſ 'K", "x'", "x're'll'd",
		"HelloWorld HTTPServer aBC ǅabc ʰʰ中文ʰ", "12345678 ①②③④ ½", "...///\r\n// a/b\n/", "\u0301a \u0301 a\u0301B", "\n\u0301 x\n\u0301...\n\u0301's\n\u0301", "\n\u0301A\n\u0301ab'll\n\u0301é", "\u00a0\u00a0x \u3000y\u2028z\u0085w",
		"emoji 👩‍👩‍👧‍👦 👍🏽", "<|endoftext|>", "日本語のテキスト、そして", "हिन्दी में", "\x00\x01", "\xff\xfe a\xff", "\ufeffx", "\ufffd", strings.Repeat("ab", 300), strings.Repeat(" ", 500) + "x",
	} {
		same(t, text)
	}
}

func TestEqualsTiktokenOnEveryRune(t *testing.T) {
	promise.OrdinaryRun(t)
	var b strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0x30000 && r%97 != 0 || !utf8.ValidRune(r) { // planes 3 and up are one class, nearly empty
			continue
		}
		b.WriteString("a")
		b.WriteRune(r)
		b.WriteString("B ")
		if b.Len() > 64<<10 {
			same(t, b.String())
			b.Reset()
		}
		if t.Failed() {
			return
		}
	}
	same(t, b.String())
}

func TestEqualsTiktokenOnRealText(t *testing.T) {
	promise.OrdinaryRun(t)
	for name, b := range map[string][]byte{
		"novel": corpus.WarAndPeace()[:600_000], "json": corpus.JSON1MB()[:300_000], "minified": corpus.JSON1MBMinified()[:100_000],
		"log": bytes.Repeat(corpus.PanicLog(), 3)[:200_000], "diff": corpus.WarAndPeaceDiff()[:200_000], "csv": corpus.CSV20k()[:200_000], "cjk": []byte(strings.ToValidUTF8(string(corpus.CJK()[:60_000]), "")),
	} {
		t.Run(name, func(t *testing.T) { same(t, string(b)) })
	}
}

func TestEqualsTiktokenOnAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.String(), rapid.SampledFrom(
				[]string{"'s", "'LL", " ", "\n", "\r\n", "/", "A", "b", "中", "1", "\u0301", "ǅ", "ʰ", "...", "\t", "\u00a0"},
			),
		)).Draw(t, "parts")
		same(t, strings.Join(parts, ""))
	})
}

// Long and mixed runs of white space and punctuation, and text without words, where tiling must backtrack.
func TestEqualsTiktokenOnRuns(t *testing.T) {
	promise.OrdinaryRun(t)
	for _, k := range kinds(t) {
		if k.name == "blanks" || k.name == "indented" || k.name == "base64" || k.name == "emoji" {
			t.Run(k.name, func(t *testing.T) { same(t, string(k.text)) })
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.Custom(func(t *rapid.T) string {
			sign := rapid.SampledFrom(
				[]string{" ", "\t", "\n", "\r\n", " \n", "\u00a0", "=", "-", "_", "*", "/", "A", "a", "0", "中", "\u0301", "x "},
			).Draw(t, "sign")
			return strings.Repeat(sign, rapid.IntRange(1, 150).Draw(t, "times"))
		})
		same(t, strings.Join(rapid.SliceOfN(run, 1, 9).Draw(t, "runs"), ""))
	})
}

// A run without a break, where tiktoken-go is quadratic, takes linear time. The test checks that it ends, and that both
// ways of merging agree.
func TestLongRuns(t *testing.T) {
	c := tokens.New(tokens.O200k)
	for _, run := range []string{"a", "=", "ab", "中", " ", "xYz"} {
		short := strings.Repeat(run, 700)
		if got, want := c.Count(short), len(oracles()[tokens.O200k].EncodeOrdinary(short)); got != want {
			t.Errorf("700 × %q: %d tokens, tiktoken-go says %d", run, got, want)
		}
		if got := c.Count(strings.Repeat(run, 1_000_000/len(run))); got == 0 {
			t.Errorf("a megabyte of %q is no token", run)
		}
	}
}

func TestEstimateHoldsItsInterval(t *testing.T) {
	promise.OrdinaryRun(t)
	c := tokens.New(tokens.O200k)
	for name, b := range map[string][]byte{
		"novel": bytes.Repeat(corpus.WarAndPeace(), 6), "json": bytes.Repeat(corpus.JSON5MB(), 4), "log": bytes.Repeat(corpus.PanicLog(), 3), "minified": bytes.Repeat(corpus.JSON1MBMinified(), 20),
		"mixed": bytes.Join(
			[][]byte{corpus.WarAndPeace(), corpus.JSON5MB(), corpus.CJK(), corpus.PanicLog(), corpus.CSV20k(), corpus.JSON5MB()},
			nil,
		),
	} {
		s := c.Tally()
		for i := 0; i < len(b); i += 30_000 {
			_, _ = s.Write(b[i:min(i+30_000, len(b))])
		}
		got, exact := s.Total(), int64(c.Count(string(b)))
		off := math.Abs(float64(got.N-exact)) / float64(exact)
		if len(b) <= tokens.ExactLimit || got.Margin == 0 || off > got.Margin || got.Margin > 0.05 {
			t.Errorf("%s: %d ± %.2f %%, exactly %d: off by %.2f %%", name, got.N, 100*got.Margin, exact, 100*off)
		}
	}
}

func FuzzCount(f *testing.F) {
	f.Add("it's a\u0301 中文 \r\n 1234")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 10_000 {
			same(t, text)
		}
	})
}
