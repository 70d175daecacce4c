package extract

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestFormulas(t *testing.T) {
	// Elements are written as "name(child child)", and text as it is.
	for _, c := range expect.Table[struct{ In, Want string }](t, "testdata/formulas.tsv") {
		f := formula{}
		f.start("math", map[string]string{})
		parse(&f, c.In)
		f.end("math")
		expect.Equal(t, collapsed(f.text()), c.Want, c.In)
	}
}

// parse passes elements to a formula.
func parse(f *formula, in string) {
	var open []string
	for in != "" {
		i := strings.IndexAny(in, "() ")
		word, sign := in[:i], in[i]
		in = in[i+1:]
		name, value, property := strings.Cut(word, ":")
		switch {
		case sign == '(':
			f.start(word, map[string]string{})
			open = append(open, word)
		case property:
			f.start(name, map[string]string{"val": value})
			f.end(name)
		case word != "":
			f.chars(word)
		}
		if sign == ')' {
			f.end(open[len(open)-1])
			open = open[:len(open)-1]
		}
	}
}
