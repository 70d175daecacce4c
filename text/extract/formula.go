package extract

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Marks in the text of a line until [resolved] replaces them. XML has none of these characters.
const (
	superscript = '\x01' // its end is \x03
	subscript   = '\x02' // its end is \x04
	toEnd       = 2
	softBlank   = '\x05' // a blank if there are letters or digits on both sides
	marks       = "\x01\x02\x03\x04\x05"
)

var (
	withoutMarks = strings.NewReplacer("\x01", "", "\x02", "", "\x03", "", "\x04", "", "\x05", "")
	oneScript    = strings.NewReplacer("\x03\x01", "", "\x04\x02", "")
	// builtFraction is a fraction that is set as a superscript, a slash and a subscript.
	builtFraction = content.Pattern("\x01([0-9]+)\x03([/⁄])\x02([0-9]+)\x04")
	// ordinal is a superscript that belongs to the number before it, as in 5th and 1er.
	ordinal = content.Pattern(`^(st|nd|rd|th|er|re|ère|ème)$`)
	// plain is a text that needs no parentheses as a part of a formula.
	plain = content.Pattern(`^[-+−±]?[\pL\pM\pN.,'′°%∞]*[-+−]?$`)
)

// resolved returns the text of a line with "^" and "_" in place of the marks of scripts.
func resolved(text string) string {
	if !strings.ContainsAny(text, marks) {
		return text
	}
	text = builtFraction().ReplaceAllString(text, "\x05$1$2$3\x05")
	type script struct {
		at   int
		mark rune
	}
	var out []byte
	var open []script
	var pending rune // softBlank, or the end of a script
	for _, r := range oneScript.Replace(text) {
		switch r {
		case superscript, subscript:
			open = append(open, script{len(out), r})
		case softBlank:
			pending = r
		case superscript + toEnd, subscript + toEnd:
			if n := len(open) - 1; n >= 0 {
				base, _ := utf8.DecodeLastRune(out[:open[n].at])
				out = append(out[:open[n].at], scripted(base, open[n].mark, string(out[open[n].at:]))...)
				open, pending = open[:n], cmp.Or(pending, r)
			}
		default:
			last, _ := utf8.DecodeLastRune(out)
			if pending != 0 && isWord(last) && isWord(r) &&
				(pending == softBlank || unicode.IsDigit(last) == unicode.IsDigit(r)) {
				out = append(out, ' ')
			}
			out, pending = utf8.AppendRune(out, r), 0
		}
	}
	return string(out)
}

// scripted returns a script as it follows its base. A script that only marks a word, such as "[1]" or "®", and one
// that has no base remain as they are.
func scripted(base, mark rune, text string) string {
	inner := strings.TrimSpace(text)
	switch {
	case base == utf8.RuneError || unicode.IsSpace(base) || base == '⁄' || strings.HasPrefix(inner, "["),
		!strings.ContainsFunc(inner, isWord),
		mark == superscript && unicode.IsDigit(base) && ordinal().MatchString(inner):
		return text
	}
	sign, after := "^", text[len(strings.TrimRight(text, " ")):]
	if mark == subscript {
		sign = "_"
	}
	return sign + bracketed(inner) + after
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// bracketed returns a part of a formula, in parentheses if it is more than a number or a name.
func bracketed(text string) string {
	text = strings.Trim(text, " \x05")
	if plain().MatchString(text) || utf8.RuneCountInString(text) == 1 ||
		strings.HasPrefix(text, "(") && strings.IndexByte(text, ')') == len(text)-1 {
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

// start opens an element, with attributes that it keeps and changes. Elements beyond maxDepth are ignored.
func (f *formula) start(name string, attrs map[string]string) {
	if n := len(f.open); formulaOwn[name] && n > 1 {
		f.open[n-2].attr[name] = attrs["val"]
	}
	if len(f.open) < maxDepth {
		f.open = append(f.open, operation{name: name, attr: attrs})
	}
}

// invisible are operators of MathML that are not shown.
var invisible = strings.NewReplacer("\u2061", "\x05", "\u2062", "\x05", "\u2063", "", "\u2064", "")

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

// patterns has the lines of operations. {0} is the first argument, in parentheses if need be, ^{0} is it as a script,
// {a} is it as it is; {*} are all arguments, and {chr∫} is a character that the formula sets, or else ∫.
var patterns = map[string]string{
	"f": "{0}/{1}", "mfrac": "{0}/{1}", "noBar": "{0}¦{1}",
	"sSup": "{0}^{1}", "msup": "{0}^{1}", "mover": "{0}^{1}", "limUpp": "{0}^{1}",
	"sSub": "{0}_{1}", "msub": "{0}_{1}", "munder": "{0}_{1}", "limLow": "{0}_{1}",
	"sSubSup": "{0}_{1}^{2}", "msubsup": "{0}_{1}^{2}", "munderover": "{0}_{1}^{2}", "sPre": "_{0}^{1}{c}",
	"rad": "{1}^(1/{0})", "mroot": "{0}^(1/{1})", "sqrt": "√({b})", "msqrt": "√({*})",
	"nary": "{chr∫}_{0}^{1} {c}", "acc": "{*}{chr\u0302}", "bar": "{*}{chr\u0305}", "func": "{a} {b}",
	"m": "[{*}]", "mtable": "[{*}]", "d": "{begChr(}{*}{endChr)}", "mfenced": "{open(}{*}{close)}",
	"annotation": "", "annotation-xml": "", "mphantom": "", "phant": "",
}

// joints are the separators of elements that list others.
var joints = map[string]string{
	"m": "; ", "mtable": "; ", "eqArr": "; ", "mr": ", ", "mtr": ", ", "mmultiscripts": " ", "d": "|", "mfenced": ",",
}

var slot = content.Pattern(`([\^_]?)\{(\d|\*|[a-zA-Z]{2,}|[abc])([^}]*)\}`)

// text returns the line of an operation.
func (o operation) text() string {
	name := o.name
	switch {
	case o.attr["type"] == "noBar" || o.attr["linethickness"] == "0":
		name = "noBar"
	case name == "rad" && o.arg(0) == "":
		name = "sqrt"
	}
	pattern, ok := patterns[name]
	if !ok {
		return strings.Join(o.args, joints[name])
	}
	text := slot().ReplaceAllStringFunc(pattern, func(s string) string {
		m := slot().FindStringSubmatch(s)
		switch key := m[2]; {
		case key == "*":
			return strings.Join(o.args, cmp.Or(o.attr["sepChr"], joints[name]))
		case key[0] <= '9' && m[1] != "":
			return script(m[1], o.arg(int(key[0]-'0')))
		case key[0] <= '9':
			return bracketed(o.arg(int(key[0] - '0')))
		case len(key) == 1:
			return o.arg(int(key[0] - 'a'))
		}
		if c, ok := o.attr[m[2]]; ok {
			return c
		}
		return m[3]
	})
	if strings.Contains(pattern, "{0}") {
		return string(softBlank) + text + string(softBlank)
	}
	return text
}

// script returns a script with its sign; an accent or a prime has none.
func script(sign, text string) string {
	if !strings.ContainsFunc(text, isWord) {
		return strings.Trim(text, marks)
	}
	return sign + bracketed(text)
}

// arg returns an argument, "" if it is missing.
func (o operation) arg(i int) string {
	if i >= len(o.args) {
		return ""
	}
	return o.args[i]
}
