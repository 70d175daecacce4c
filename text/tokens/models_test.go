package tokens_test

import (
	"math"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		encoding tokens.Encoding
		factor   float64
	}{
		"": {tokens.O200k, 0}, "o200k_base": {tokens.O200k, 0}, "cl100k_base": {tokens.CL100k, 0}, "gpt-4": {tokens.CL100k, 0}, "gpt-4o": {tokens.O200k, 0}, "GPT-4o-mini": {tokens.O200k, 0},
		"gpt-3.5-turbo-0301": {tokens.CL100k, 0}, "gpt-5": {tokens.O200k, 0}, "o3": {tokens.O200k, 0}, "davinci": {}, "nonsense": {},
		"claude-2.1": {tokens.O200k, 1.2}, "claude-3-5-sonnet-20241022": {tokens.O200k, 1.2}, "claude-opus-4-20250514": {tokens.O200k, 1.2}, "claude-haiku-4-5": {tokens.O200k, 1.2},
		"Claude-Sonnet-4.6": {tokens.O200k, 1.2}, "claude-opus-4-7": {tokens.O200k, 1.4}, "claude-opus-4.10": {tokens.O200k, 1.4}, "claude-opus-5-20260801": {tokens.O200k, 1.4},
		"claude": {tokens.O200k, 1.4}, "claude-sonnet": {tokens.O200k, 1.4}, "claude-instant-20230801": {tokens.O200k, 1.4},
		"gemini-2.5-pro": {tokens.O200k, 1.15}, "deepseek-chat": {tokens.O200k, 1.15},
	} {
		got, err := tokens.Parse(name)
		if got.Encoding != want.encoding || got.Factor != want.factor || got.Estimated() != (want.factor != 0) ||
			(got.Error > 0) != got.Estimated() || (err != nil) != (want.encoding == "") {
			t.Errorf("%q: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// Parse accepts every name in Names, and the families are among them.
func TestNames(t *testing.T) {
	names := tokens.Names()
	for _, name := range names {
		if _, err := tokens.Parse(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"o200k_base", "gpt-4o", "claude", "gemini"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
}

// A model known by a factor is never exact: counted or sampled, its interval is at least the factor's error.
func TestEstimatedModelsAreNeverExact(t *testing.T) {
	for _, name := range []string{"claude-sonnet-4-5", "claude-opus-4-7", "gemini-2.5-pro", "llama-3"} {
		m, err := tokens.Parse(name)
		expect.Must(t, err)
		own, other := tokens.For(m), tokens.New(m.Encoding)
		texts := [][]byte{nil, []byte("x"), corpus.JSON1MB()[:100_000]}
		if !promise.UnderRace { // it takes 40 s there
			texts = append(texts, make([]byte, tokens.ExactLimit+1<<20))
		}
		for _, text := range texts {
			a, b := own.Tally(), other.Tally()
			_, _ = a.Write(text)
			_, _ = b.Write(text)
			got, exact := a.Total(), b.Total()
			if want := int64(math.Ceil(float64(exact.N) * m.Factor)); got.N != want || !got.Estimated || got.Margin < m.Error ||
				got.Margin <= exact.Margin || got.Margin > 1 {
				t.Errorf("%s, %d bytes: %+v, want %d by the factor %v of %+v", name, len(text), got, want, m.Factor, exact)
			}
			if exact.Margin == 0 && int64(own.Count(string(text))) != got.N {
				t.Errorf("%s, %d bytes: counted %d, streamed %d", name, len(text), own.Count(string(text)), got.N)
			}
		}
	}
}

// The intervals of Claude's factors include what others measured, as models.go cites it.
func TestFactorsReachOverWhatWasMeasured(t *testing.T) {
	for name, measured := range map[string][]float64{
		"claude-3-5-sonnet": {1.16, 1.21, 1.30},
		"claude-opus-4-7":   {1.0 * 1.16, 1.20 * 1.16, 1.47 * 1.16, 1.13 * 1.30, 1.36 * 1.30},
	} {
		m, err := tokens.Parse(name)
		expect.Must(t, err)
		for _, ratio := range measured {
			if ratio < m.Factor*(1-m.Error) || ratio > m.Factor*(1+m.Error) {
				t.Errorf("%s: %v is not within %v ± %v", name, ratio, m.Factor, m.Error)
			}
		}
	}
}
