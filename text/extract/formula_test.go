package extract

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestFormulas(t *testing.T) {
	// Elements are written as "name(child child)", and text as it is.
	for in, want := range map[string]string{
		"f(num(t(1)) den(t(2)))":                                "1/2",
		"f(num(t(a+b)) den(t(c)))":                              "(a+b)/c",
		"f(fPr(type:noBar) num(t(n)) den(t(k)))":                "n¦k",
		"sSup(e(t(10)) sup(t(−6)))":                             "10^−6",
		"sSup(e(t(x)) sup(f(num(t(1)) den(t(2)))))":             "x^(1/2)",
		"t(3) f(num(t(1)) den(t(2))) t(x)":                      "3 1/2 x",
		"sSubSup(e(t(x)) sub(t(i)) sup(t(2)))":                  "x_i^2",
		"sPre(sub(t(6)) sup(t(14)) e(t(C)))":                    "_6^14C",
		"rad(radPr() deg() e(t(x)))":                            "√(x)",
		"rad(deg(t(3)) e(t(x)))":                                "x^(1/3)",
		"nary(naryPr(chr:∑) sub(t(i=1)) sup(t(n)) e(t(i)))":     "∑_(i=1)^n i",
		"d(dPr(begChr:[ endChr:⟩) e(t(0)) e(t(1)))":             "[0|1⟩",
		"func(fName(t(sin)) e(t(x)))":                           "sin x",
		"acc(accPr(chr:\u0303) e(t(x)))":                        "x\u0303",
		"m(mr(e(t(1)) e(t(2))) mr(e(t(3)) e(t(4))))":            "[1, 2; 3, 4]",
		"mfrac(mn(1) mn(2))":                                    "1/2",
		"msup(mi(f) mo(′))":                                     "f′",
		"msubsup(mi(x) mn(1) mn(2))":                            "x_1^2",
		"munderover(mo(∑) mrow(mi(i) mo(=) mn(1)) mi(n)) mi(i)": "∑_(i=1)^n i",
		"msqrt(mi(x) mo(+) mn(1))":                              "√(x+1)",
		"mroot(mi(x) mn(3))":                                    "x^(1/3)",
		"mtable(mtr(mtd(mn(1)) mtd(mn(2))) mtr(mtd(mn(3))))":    "[1, 2; 3]",
		"mi(sin) mo(\u2061) mi(x)":                              "sin x",
		"mover(mi(x) mo(¯))":                                    "x¯",
		"semantics(mn(1) annotation(one))":                      "1",
	} {
		f := formula{}
		f.start("math", map[string]string{})
		parse(&f, in)
		f.end("math")
		expect.Equal(t, collapsed(f.text()), want, in)
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
