package tokens

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pkoukk/tiktoken-go"
)

// Model describes how the tokens of a model are counted.
type Model struct {
	Encoding Encoding
	// If the vocabulary of the model is not public, its token count is estimated as Factor times the count of
	// Encoding, within Error (0.25: ±25 %). Otherwise Factor and Error are 0 and counts are exact.
	Factor, Error float64
}

// Image is the token count of an image, for every model: the maximum for an image that a client has scaled down.
const Image = 1600

// Estimated reports whether counts are multiples of another vocabulary's counts, and so never exact.
func (m Model) Estimated() bool { return m.Factor != 0 }

// Factors on o200k_base. Nobody publishes a factor with its error. Each factor is the middle of published
// measurements. Its error is wider than their range, because most kinds of text were not measured.
//
// Claude 3 to 4.6: 1.16 times as many tokens on English articles, 1.21 on formulas, 1.30 on Python (Claude 3.5 Sonnet
// against GPT-4o, "Hidden costs in AI deployment", VentureBeat, 1 May 2025). Proxies that multiply by 1.15 report
// that this is too little (github.com/caozhiyuan/copilot-api, pull requests 134 and 141).
//
// Claude from 4.7 on: Anthropic says 1 to 1.35 times as many as before (release notes of Opus 4.7). Its count_tokens
// was measured at 1.20 to 1.47 on English, 1.13 to 1.36 on code, 1.00 to 1.01 on Chinese and Japanese
// (sol.ava.dev/writings/2026-04-17-opus-4-7-tokenizer.html and the seven samples of claudecodecamp.com). Multiplied
// by the factors above this gives 1.0 to 1.8. A name without a version counts as Claude 4.7: it mostly means the
// newest model.
//
// Gemini: Google says one token is about 4 characters, and 100 tokens are 60 to 80 English words
// (ai.google.dev/gemini-api/docs/tokens): 1.1 to 1.2 times o200k_base on English prose. Japanese is reported to need
// fewer tokens than in o200k_base (down to 0.6). Gemma's vocabulary, which is published and related to Gemini's, has
// one token per digit where o200k_base has one per three digits: up to twice as many in tables of numbers. No
// measured comparison was found.
//
// Other models: no factor fits all of them. DeepSeek says 0.3 tokens per English character
// (api-docs.deepseek.com/quick_start/token_usage), about 1.3 times o200k_base.
var (
	exact      = Model{Encoding: O200k}
	claude3    = Model{O200k, 1.2, 0.25}
	claude47   = Model{O200k, 1.4, 0.35}
	gemini     = Model{O200k, 1.15, 0.5}
	otherModel = Model{O200k, 1.15, 0.4}
)

// families lists prefixes of model names that tiktoken-go does not know.
var families = []struct {
	prefix string
	model  Model
}{
	{"gpt-5", exact}, {"gpt-oss", exact}, {"chatgpt-", exact}, {"o1", exact}, {"o3", exact}, {"o4", exact},
	{"claude", claude47}, {"gemini", gemini},
	{"mistral", otherModel}, {"llama", otherModel}, {"deepseek", otherModel},
	{"qwen", otherModel}, {"kimi", otherModel}, {"grok", otherModel},
}

// claude returns the model for a Claude name. The version decides between two vocabularies:
// claude-3-5-sonnet-20241022, claude-opus-4-7, claude-sonnet-4.6.
func claude(name string) Model {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) == 0 || len(parts[0]) > 2 { // no version, or a date
		return claude47
	}
	major, _ := strconv.Atoi(parts[0])
	minor := 0
	if len(parts) > 1 && len(parts[1]) <= 2 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if major < 4 || major == 4 && minor < 7 {
		return claude3
	}
	return claude47
}

// Parse returns the model for the name of an encoding or of a model ("gpt-4o", "claude-opus-4-7"); "" is o200k_base.
// Models without a public vocabulary (Claude, Gemini and others) are estimated by a factor on o200k_base. Any other
// name is an error.
func Parse(name string) (Model, error) {
	n := strings.ToLower(strings.TrimSpace(name))
	switch Encoding(n) {
	case "", O200k:
		return Model{Encoding: O200k}, nil
	case CL100k:
		return Model{Encoding: CL100k}, nil
	}
	if e, ok := tiktoken.MODEL_TO_ENCODING[n]; ok {
		return supported(name, e)
	}
	for prefix, e := range tiktoken.MODEL_PREFIX_TO_ENCODING {
		if strings.HasPrefix(n, prefix) {
			return supported(name, e)
		}
	}
	for _, f := range families {
		switch {
		case !strings.HasPrefix(n, f.prefix):
		case f.model == claude47:
			return claude(n), nil
		default:
			return f.model, nil
		}
	}
	return Model{}, fmt.Errorf("unknown model or encoding %.60q; use %s, %s or a model's name"+
		" such as gpt-4o, gpt-4, claude-sonnet, gemini-pro", name, O200k, CL100k)
}

// Names returns names that [Parse] accepts: the encodings, the models with a known vocabulary, and the families of
// the estimated models. Parse accepts more names, such as versions of a family.
func Names() []string {
	names := []string{string(O200k), string(CL100k)}
	for name := range tiktoken.MODEL_TO_ENCODING {
		if _, err := Parse(name); err == nil {
			names = append(names, name)
		}
	}
	for _, f := range families {
		if !strings.HasSuffix(f.prefix, "-") { // a prefix with a "-" is not a name
			names = append(names, f.prefix)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func supported(name, encoding string) (Model, error) {
	switch e := Encoding(encoding); e {
	case O200k, CL100k:
		return Model{Encoding: e}, nil
	}
	return Model{}, fmt.Errorf("model %.60q uses %s, which is not supported; use %s or %s",
		name, encoding, O200k, CL100k)
}

// Encoding is the name of a vocabulary.
type Encoding string

// Supported encodings.
const (
	O200k  Encoding = "o200k_base" // the default
	CL100k Encoding = "cl100k_base"
)
