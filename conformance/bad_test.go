package conformance

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// badCase is one bad input of the corpus, a line of testdata/bad/*.ndjson.
type badCase struct {
	Name string `json:"name"`
	Text parts  `json:"text"`
	Says string `json:"says"` // text that its error must contain
	Want string `json:"want"` // the required answer
	Slow bool   `json:"slow"` // it ends by its deadline only

	Works bool `json:"works"` // paths: this one may be read
	Large bool `json:"large"` // frames: over the maximum size of a message

	File string `json:"file"` // files: its name below the root
	Make string `json:"make"` // files: its type, if it is not a regular file
	Size int64  `json:"size"`
	Hex  string `json:"hex"` // files: its bytes in hexadecimal, if they are not text

	Flags  []parts `json:"flags"`  // commands: after "serve"
	Env    []parts `json:"env"`    // commands: variables of the environment
	Config *parts  `json:"config"` // commands: the configuration file

	Leave bool `json:"leave"` // requests: do not wait for an answer

	Tool string                     `json:"tool"` // arguments
	Args map[string]json.RawMessage `json:"args"`
}

// parts is a text: a string, or a list of pieces with their repetitions: [["(", 1001], ["x", 1]].
type parts []part

type part struct {
	text  string
	times int
}

func (p *parts) UnmarshalJSON(b []byte) error {
	var whole string
	if json.Unmarshal(b, &whole) == nil {
		*p = parts{{whole, 1}}
		return nil
	}
	var pieces [][2]json.RawMessage
	if err := json.Unmarshal(b, &pieces); err != nil {
		return err
	}
	for _, piece := range pieces {
		var one part
		if err := json.Unmarshal(piece[0], &one.text); err != nil {
			return err
		}
		if err := json.Unmarshal(piece[1], &one.times); err != nil {
			return err
		}
		*p = append(*p, one)
	}
	return nil
}

// pour writes the text piece by piece, so that a text of hundreds of megabytes is never in memory as a whole.
func (p parts) pour(to func(piece []byte)) {
	for _, one := range p {
		at := max(1, (64<<10)/max(1, len(one.text))) // copies at once
		for left := one.times; left > 0; left -= at {
			to([]byte(strings.Repeat(one.text, min(at, left))))
		}
	}
}

func (p parts) String() string {
	var b strings.Builder
	for _, one := range p {
		b.WriteString(strings.Repeat(one.text, one.times))
	}
	return b.String()
}

// arguments returns the arguments of a call with repeated texts expanded.
func (c badCase) arguments() map[string]any {
	args := map[string]any{}
	for name, raw := range c.Args {
		args[name] = written(raw)
	}
	return args
}

// written returns a value with repeated texts expanded, also inside objects.
func written(raw json.RawMessage) any {
	var text parts
	var inner map[string]json.RawMessage
	switch {
	case strings.HasPrefix(string(raw), `[["`) && json.Unmarshal(raw, &text) == nil:
		return text.String()
	case strings.HasPrefix(string(raw), "{") && json.Unmarshal(raw, &inner) == nil:
		all := map[string]any{}
		for name, value := range inner {
			all[name] = written(value)
		}
		return all
	}
	return raw
}

// badCases reads a file of the corpus.
func badCases(t testing.TB, name string) []badCase {
	return corpus.Rows[badCase](t, "bad/"+name+".ndjson")
}

func (c badCase) bytes() ([]byte, error) {
	if c.Hex != "" {
		return hex.DecodeString(c.Hex)
	}
	return []byte(c.Text.String()), nil
}
