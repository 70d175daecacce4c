package extract

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks in the text of a line until [resolved] replaces them. XML has none of these characters.
const (
	superscript = '\x01'
	subscript   = '\x02'
	endScript   = '\x03'
	softBlank   = '\x04' // a blank if there are letters or digits on both sides
	marks       = "\x01\x02\x03\x04"
)

var (
	withoutMarks = strings.NewReplacer("\x01", "", "\x02", "", "\x03", "", "\x04", "")
	oneScript    = strings.NewReplacer("\x03\x01", "", "\x03\x02", "")
	// builtFraction is a fraction that is set as a superscript, a slash and a subscript.
	builtFraction = regexp.MustCompile("\x01([0-9]+)\x03([/⁄])\x02([0-9]+)\x03")
	// ordinal is a superscript that belongs to the number before it, as in 5th and 1er.
	ordinal = regexp.MustCompile(`^(st|nd|rd|th|er|re|ère|e|ème|o|a)$`)
	// plain is a text that needs no parentheses as a part of a formula.
	plain = regexp.MustCompile(`^[-+−±]?[\pL\pM\pN.,'′°%∞]*[-+−]?$`)
)

// resolved returns the text of a line with "^" and "_" in place of the marks of scripts.
func resolved(text string) string {
	if !strings.ContainsAny(text, marks) {
		return text
	}
	text = builtFraction.ReplaceAllString(text, "\x04$1$2$3\x04")
	type script struct {
		at   int
		mark rune
	}
	var out []byte
	var open []script
	soft := false
	for _, r := range oneScript.Replace(text) {
		switch r {
		case superscript, subscript:
			open = append(open, script{len(out), r})
		case softBlank:
			soft = true
		case endScript:
			if n := len(open) - 1; n >= 0 {
				base, inner := string(out[:open[n].at]), string(out[open[n].at:])
				out = append(out[:open[n].at], scripted(base, open[n].mark, inner)...)
				open = open[:n]
			}
		default:
			if last, _ := utf8.DecodeLastRune(out); soft && isWord(last) && isWord(r) {
				out = append(out, ' ')
			}
			out, soft = utf8.AppendRune(out, r), false
		}
	}
	return string(out)
}

// scripted returns a script as it follows its base. A script that only marks a word, such as "[1]" or "®", and one
// that has no base remain as they are.
func scripted(base string, mark rune, text string) string {
	last, _ := utf8.DecodeLastRuneInString(base)
	text = strings.TrimSpace(text)
	switch {
	case base == "" || unicode.IsSpace(last) || strings.HasPrefix(text, "[") || !strings.ContainsFunc(text, isWord):
		return text
	case last == '⁄' || mark == superscript && unicode.IsDigit(last) && ordinal.MatchString(text):
		return text
	case mark == superscript:
		return "^" + bracketed(text)
	}
	return "_" + bracketed(text)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// bracketed returns a part of a formula, in parentheses if it is more than a number or a name.
func bracketed(text string) string {
	text = strings.Trim(text, " \x04")
	if plain.MatchString(text) || strings.HasPrefix(text, "(") && strings.IndexByte(text, ')') == len(text)-1 {
		return text
	}
	return "(" + text + ")"
}

// formula writes a formula of Office (OMML) or MathML as one line, such as "(a+b)/2" or "√(x)".
type formula struct {
	open []operation
}

// operation is an open element of a formula.
type operation struct {
	name string
	args []string          // texts of the elements within
	attr map[string]string // chr, begChr, type …
}

// formulaText are the elements whose character data is shown.
var formulaText = map[string]bool{"t": true, "mi": true, "mn": true, "mo": true, "mtext": true, "ms": true}

// formulaOwn are elements that set a property of the element around their parent.
var formulaOwn = map[string]bool{"chr": true, "begChr": true, "endChr": true, "sepChr": true, "type": true, "pos": true}

// start opens an element. Elements beyond maxDepth are ignored.
func (f *formula) start(name string, attrs map[string]string) {
	if n := len(f.open); formulaOwn[name] && n > 1 {
		f.open[n-2].attr = withValue(f.open[n-2].attr, name, attrs["val"])
	}
	if len(f.open) < maxDepth {
		f.open = append(f.open, operation{name: name, attr: attrs})
	}
}

func withValue(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// invisible are operators of MathML that are not shown.
var invisible = strings.NewReplacer("\u2061", "\x04", "\u2062", "\x04", "\u2063", "", "\u2064", "")

func (f *formula) chars(text string) {
	o := &f.open[len(f.open)-1]
	if !formulaText[o.name] {
		return
	}
	if o.name != "t" && o.name != "mtext" {
		text = strings.TrimSpace(text)
	}
	o.args = append(o.args, invisible.Replace(text))
}

// end closes the innermost element of a name, and those within it. It returns true at the end of the formula.
func (f *formula) end(name string) bool {
	at := len(f.open) - 1
	for at > 0 && f.open[at].name != name {
		at--
	}
	if at == 0 && f.open[0].name != name {
		return false
	}
	for n := len(f.open) - 1; n >= max(at, 1); n-- {
		o, outer := f.open[n], &f.open[n-1]
		if f.open = f.open[:n]; !strings.HasSuffix(o.name, "Pr") && !formulaOwn[o.name] {
			outer.args = append(outer.args, o.text())
		}
	}
	return at == 0
}

// text returns what has been read of the formula.
func (f *formula) text() string {
	for len(f.open) > 1 {
		f.end(f.open[len(f.open)-1].name)
	}
	return string(softBlank) + f.open[0].text() + string(softBlank)
}

// joints are the separators of elements that list others.
var joints = map[string]string{"m": "; ", "mtable": "; ", "eqArr": "; ", "mr": ", ", "mtr": ", ", "mmultiscripts": " "}

// text returns the line of an operation.
func (o operation) text() string {
	if text, ok := o.scripts(); ok {
		return string(softBlank) + text + string(softBlank)
	}
	all := strings.Join(o.args, joints[o.name])
	switch o.name {
	case "msqrt":
		return "√(" + all + ")"
	case "m", "mtable":
		return "[" + all + "]"
	case "acc", "bar":
		return all + o.or("chr", map[string]string{"acc": "\u0302", "bar": "\u0305"}[o.name])
	case "d":
		return o.or("begChr", "(") + strings.Join(o.args, o.or("sepChr", "|")) + o.or("endChr", ")")
	case "mfenced":
		return o.or("open", "(") + strings.Join(o.args, o.or("separators", ",")) + o.or("close", ")")
	case "func":
		return o.arg(0) + " " + o.arg(1)
	case "annotation", "annotation-xml", "mphantom", "phant":
		return ""
	}
	return all
}

// scripts returns the line of an operation of two or three arguments.
func (o operation) scripts() (string, bool) {
	a, b, c := o.arg(0), o.arg(1), o.arg(2)
	switch o.name {
	case "f", "mfrac":
		if o.attr["type"] == "noBar" || o.attr["linethickness"] == "0" {
			return bracketed(a) + "¦" + bracketed(b), true
		}
		return bracketed(a) + "/" + bracketed(b), true
	case "sSup", "msup", "mover", "limUpp":
		return script(bracketed(a), "^", b), true
	case "sSub", "msub", "munder", "limLow":
		return script(bracketed(a), "_", b), true
	case "sSubSup", "msubsup", "munderover":
		return script(script(bracketed(a), "_", b), "^", c), true
	case "sPre":
		return script(script("", "_", a), "^", b) + c, true
	case "nary":
		return script(script(o.or("chr", "∫"), "_", a), "^", b) + " " + c, true
	case "rad":
		if a == "" {
			return "√(" + b + ")", true
		}
		return bracketed(b) + "^(1/" + bracketed(a) + ")", true
	case "mroot":
		return bracketed(a) + "^(1/" + bracketed(b) + ")", true
	}
	return "", false
}

// script appends a script to its base; an accent or a prime follows without a sign.
func script(base, sign, text string) string {
	text = bracketed(text)
	if !strings.ContainsFunc(text, isWord) {
		return base + strings.Trim(text, "()")
	}
	return base + sign + text
}

// arg returns an argument, "" if it is missing.
func (o operation) arg(i int) string {
	if i >= len(o.args) {
		return ""
	}
	return o.args[i]
}

func (o operation) or(key, other string) string {
	if v, ok := o.attr[key]; ok {
		return v
	}
	return other
}
