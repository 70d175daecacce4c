package extract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// builtIns are the codes of number formats that a workbook does not spell out (ECMA-376 part 1, 18.8.30). Dates that
// differ by country are in ISO form.
var builtIns = map[string]string{
	"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "5": "$#,##0;($#,##0)", "6": "$#,##0;($#,##0)",
	"7": "$#,##0.00;($#,##0.00)", "8": "$#,##0.00;($#,##0.00)", "9": "0%", "10": "0.00%", "11": "0.00E+00", "12": "# ?/?",
	"13": "# ??/??", "14": "yyyy-mm-dd", "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy", "18": "h:mm AM/PM",
	"19": "h:mm:ss AM/PM", "20": "h:mm", "21": "h:mm:ss", "22": "yyyy-mm-dd h:mm", "37": "#,##0;(#,##0)",
	"38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)", "41": "#,##0;(#,##0);-",
	"42": "$#,##0;($#,##0);$-", "43": "#,##0.00;(#,##0.00);-", "44": "$#,##0.00;($#,##0.00);$-", "45": "mm:ss",
	"46": "[h]:mm:ss", "47": "mm:ss.0", "48": "##0.0E+0",
}

// builtIn returns the code of a built-in number format; "" for the general one.
func builtIn(id string) string {
	if n, err := strconv.Atoi(id); err == nil && (n >= 27 && n <= 36 || n >= 50 && n <= 58) {
		id = "14"
	}
	return builtIns[id]
}

const maxFormat = 1 << 10 // bytes of a number format that are read: Excel takes 255 characters

var (
	formatTokens = content.Pattern(`(?is)"[^"]*"?|\\.|[_*].|\[[^\]]*\]?|AM/PM|A/P|General|Standard|G/通用格式|E[+-]|` +
		`y+|m+|d+|h+|s+|e+|g+|[0#?]|.`)
	condition = content.Pattern(`^\[(<=|>=|<>|<|>|=)(-?[0-9.]+)\]$`)
	clock     = content.Pattern(`(?i)^(\[(h+|m+|s+)\]|[ymdhseg]+|am/pm|a/p)$`)
	dated     = content.Pattern(`(?i)^(\[(h+|m+|s+)\]|[ymdhs]+)$`) // e and g are signs of units, too
	plainly   = content.Pattern(`(?i)^(General|Standard|G/通用格式|@)$`)
)

// numberFormat is a number format: up to three sections for numbers, and one for texts.
type numberFormat struct {
	sections []section
	text     *section // nil if texts are shown as they are
}

// section is the part of a number format for some numbers.
type section struct {
	operator string // of its condition; "" if it is for all numbers
	limit    float64
	explicit bool // the condition is in the code
	unsigned bool // a negative number is shown without its sign

	tokens       []token
	date, number bool
	mixed        bool // it has the letters of a date and places for digits: of words without quotes
	subseconds   int  // digits of a fraction of a second
}

// token is a part of a section: a literal text, or what its kind says.
type token struct {
	kind byte // one of the constants below, or '.', ',', '%', '/'
	text string
}

// Kinds of tokens.
const (
	literalText = 'l'
	whole       = '@' // the number in general form, or the text
	digit       = '0' // text is 0, # or ?, or a digit of a fixed denominator
	exponent    = 'E' // text is E+ or E-
	unit        = 't' // of a date or time: "yyyy", "[h]", "am/pm"
	subsecond   = 'f'
)

func parseFormat(code string) *numberFormat {
	f, parts := &numberFormat{}, [][]string{nil}
	for _, t := range formatTokens().FindAllString(code[:min(len(code), maxFormat)], -1) {
		if t == ";" {
			parts = append(parts, nil)
		} else {
			parts[len(parts)-1] = append(parts[len(parts)-1], t)
		}
	}
	if last := parts[len(parts)-1]; len(parts) > 3 || slices.Contains(last, "@") {
		f.text, parts = parseSection(last), parts[:len(parts)-1]
	}
	for i, operator := range [][]string{{}, {""}, {">=", "<"}, {">", "<", ""}}[min(len(parts), 3)] {
		s := parseSection(parts[i])
		if others := i == 1 && len(parts) == 2 && f.sections[0].explicit; !s.explicit && !others {
			s.operator, s.unsigned = operator, operator == "<"
		}
		f.sections = append(f.sections, *s)
	}
	return f
}

func parseSection(tokens []string) *section {
	s := &section{date: slices.ContainsFunc(tokens, dated().MatchString)}
	add := func(kind byte, text string) { s.tokens = append(s.tokens, token{kind, text}) }
	divided, point := false, slices.Contains(tokens, ".")
	place := func(i int) bool {
		return i >= 0 && i < len(tokens) && strings.ContainsAny(tokens[i][:1], "0123456789#?")
	}
	for i, t := range tokens {
		switch c := t[0]; {
		case plainly().MatchString(t):
			add(whole, "")
		case s.date && clock().MatchString(t):
			add(unit, strings.ToLower(t))
		case c == '[':
			if m := condition().FindStringSubmatch(t); m != nil {
				s.operator, s.explicit = m[1], true
				s.limit, _ = strconv.ParseFloat(m[2], 64)
				s.unsigned = s.limit == 0 && m[1] == "<"
			} else if currency, _, _ := strings.Cut(strings.Trim(t, "[]"), "-"); strings.HasPrefix(currency, "$") {
				add(literalText, currency[1:])
			}
		case c == '"':
			add(literalText, strings.Trim(t, `"`))
		case c == '_':
			add(literalText, " ")
		case c == '\\':
			add(literalText, t[1:])
		case c == '*':
		case s.date && t == "." && i+1 < len(tokens) && tokens[i+1] == "0":
			add(subsecond, "")
		case s.date && t == "0" && i > 0 && (tokens[i-1] == "." || s.subseconds > 0 && tokens[i-1] == "0"):
			s.subseconds = min(s.subseconds+1, 6)
		case s.date:
			s.mixed = s.mixed || place(i)
			add(literalText, t)
		case strings.Contains("0#?", t), divided && c >= '1' && c <= '9':
			s.number = true
			add(digit, t)
		case t == "/" && (point || !place(i-1) || !place(i+1)): // not of a fraction
			add(literalText, t)
		case strings.Contains(".,%/", t):
			divided = divided || t == "/"
			add(c, t)
		case len(t) == 2 && strings.EqualFold(t[:1], "E"):
			add(exponent, strings.ToUpper(t))
		default:
			add(literalText, t)
		}
	}
	return s
}

// holds reports whether the section is for a number.
func (s *section) holds(v float64) bool {
	at := cmp.Compare(v, s.limit) + 1
	return s.operator == "" || strings.Contains(s.operator, "<=>"[at:at+1])
}

// words returns the section with value in the place of the number in general form, or of the text.
func (s *section) words(value string) string {
	var b strings.Builder
	for _, t := range s.tokens {
		if t.kind == whole {
			t.text = value
		}
		b.WriteString(t.text)
	}
	return b.String()
}
