package extract

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

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

const (
	maxFormat = 1 << 10 // bytes of a number format that are read: Excel takes 255 characters
	maxCodes  = 1 << 12 // sections of formats in a workbook, for which Excel takes 250 formats; others show plain numbers
)

var (
	formatTokens = content.Pattern(`(?is)"[^"]*"?|\\.|[_*].|\[[^\]]*\]?|AM/PM|A/P|General|E[+-]|` +
		`y+|m+|d+|h+|s+|e+|g+|[0#?]+|.`)
	condition    = content.Pattern(`^\[(<=|>=|<>|<|>|=)(-?[0-9.]+)\]$`)
	clock        = content.Pattern(`(?i)^(\[[hms]+\]|[ymdhseg]+|am/pm|a/p)$`)
	digits       = content.Pattern(`(?i)^([0#?]+|[.,%/]|e[+-])$`)
	elapsed      = content.Pattern(`(?i)\[[hms]`)
	language     = content.Pattern(`\[\$-[^\]]*\]`)
	digit        = content.Pattern(`[#?.,]`)
	noRatio      = content.Pattern(` +0/[0-9]+`)
	plainRatio   = content.Pattern(`^[^/]*[#0] \?+/(\?+|[0-9]+)[^/]*$`)
)

// numberFormat is a number format: up to three sections for numbers, and one for texts.
type numberFormat struct {
	sections []section
	text     *section // nil if texts are shown as they are
}

// section is the part of a number format for some numbers. Excelize ignores conditions and the section for zeros, drops
// fractions of seconds, rounds 1.005 down, and reads signs within literals: all that is done here.
type section struct {
	operator string // of its condition; "" if it is for all numbers
	limit    float64
	explicit bool // the condition is in the code
	unsigned bool // a negative number is shown without its sign

	code         string   // for excelize; each literal is one private character
	literals     []string // "" stands for the number in general form, the fraction of a second, or the text
	date, number bool
	subseconds   int // digits of a fraction of a second
	places       int // digits that are shown after the point; negative ones are hidden before it
}

const (
	private = '\ue000'
	english = "[$-409]" // without a language, excelize looks through all that it knows
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
	var code, plain strings.Builder
	s := &section{date: slices.ContainsFunc(tokens, clock().MatchString)}
	for i, t := range tokens {
		literal := strings.Trim(t, `"`)
		switch {
		case t[0] == '[':
			if m := condition().FindStringSubmatch(t); m != nil {
				s.operator, s.explicit = m[1], true
				s.limit, _ = strconv.ParseFloat(m[2], 64)
				s.unsigned = s.limit < 0 && !strings.Contains(m[1], ">") || s.limit == 0 && m[1] == "<"
			} else if clock().MatchString(t) || s.date && strings.HasPrefix(t, "[$-") {
				code.WriteString(t)
			}
			literal, _, _ = strings.Cut(strings.Trim(t, "[]"), "-")
			if literal = strings.TrimPrefix(literal, "$"); literal == "" || t[1] != '$' {
				continue
			}
		case t[0] == '*':
			continue
		case t[0] == '_':
			literal = " "
		case t[0] == '\\':
			literal = t[1:]
		case strings.EqualFold(t, "general") || t == "@":
			literal = ""
		case s.date && t == "." && i+1 < len(tokens) && tokens[i+1][0] == '0':
			s.subseconds, literal = min(len(tokens[i+1]), 6), ""
		case s.date && digits().MatchString(t) && t[0] == '0':
			continue
		case clock().MatchString(t), !s.date && digits().MatchString(t), // and the digits of a denominator
			t >= "1" && t <= "9" && strings.Contains(plain.String(), "/"):
			code.WriteString(t)
			plain.WriteString(t)
			s.number = s.number || strings.ContainsAny(t, "0#?")
			continue
		}
		code.WriteString(`\` + string(rune(private+len(s.literals))))
		s.literals = append(s.literals, literal)
	}
	s.code = code.String()
	if s.date && !strings.Contains(s.code, "[$-") {
		s.code = english + s.code
	}
	shown := strings.TrimRight(plain.String(), "%")
	unscaled := strings.TrimRight(shown, ",")
	_, decimals, _ := strings.Cut(unscaled, ".")
	s.places = len(decimals) + 2*strings.Count(plain.String(), "%") - 3*(len(shown)-len(unscaled))
	return s
}

// holds reports whether the section is for a number.
func (s *section) holds(v float64) bool {
	at := cmp.Compare(v, s.limit) + 1
	return s.operator == "" || strings.Contains(s.operator, "<=>"[at:at+1])
}

// write returns what excelize made of the code, with the literals in their places.
func (s *section) write(shown, value string) string {
	var b strings.Builder
	for _, r := range shown {
		switch i := int(r - private); {
		case i < 0 || i >= len(s.literals):
			b.WriteRune(r)
		case s.literals[i] == "":
			b.WriteString(value)
		default:
			b.WriteString(s.literals[i])
		}
	}
	return b.String()
}

// words returns the literals of a section that shows no digits.
func (s *section) words() string { return strings.ReplaceAll(s.code, `\`, "") }

// formatter shows numbers. Its workbook has a cell for each code, which takes the numbers in turn.
type formatter struct {
	formats map[string]*numberFormat
	book    *excelize.File
	cells   map[string]string // by code
	memo    map[numberAs]string
	epoch   bool // days count from 1904
}

type numberAs struct {
	v    float64
	code string
}

func newFormatter() *formatter {
	return &formatter{map[string]*numberFormat{}, excelize.NewFile(), map[string]string{}, map[numberAs]string{}, false}
}

func (f *formatter) format(code string) *numberFormat {
	if f.formats[code] == nil {
		f.formats[code] = parseFormat(code)
	}
	return f.formats[code]
}

// text returns a text as its format shows it.
func (f *formatter) text(text, code string) string {
	if s := f.format(code).text; s != nil {
		return s.write(s.words(), text)
	}
	return text
}

// number returns a number as its format shows it.
func (f *formatter) number(v float64, code string) string {
	format := f.format(code)
	i := slices.IndexFunc(format.sections, func(s section) bool { return s.holds(v) })
	if i < 0 || code == "" || math.IsInf(v, 0) || math.IsNaN(v) {
		return general(v)
	}
	s := &format.sections[i]
	sign := ""
	if v < 0 {
		if v = -v; !s.unsigned {
			sign = "-"
		}
	}
	switch {
	case s.date:
		return f.moment(v, sign, s)
	case !s.number:
		if !slices.Contains(s.literals, "") {
			sign = ""
		}
		return sign + s.write(s.words(), general(v))
	case strings.Contains(s.code, "/"):
		if !plainRatio().MatchString(s.write(s.words(), "")) {
			return sign + general(v)
		}
		shown := strings.TrimSpace(noRatio().ReplaceAllString(s.write(f.shown(v, s.code), ""), ""))
		if shown == "" || shown == "0" {
			return "0"
		}
		return sign + strings.TrimPrefix(shown, "0 ")
	case !strings.ContainsAny(s.code, "Ee"):
		if v = rounded(v, s.places); v == 0 {
			sign = ""
		}
		if v == 0 && !strings.Contains(s.code, "0") {
			return s.write(digit().ReplaceAllString(s.words(), ""), "")
		}
	}
	return sign + strings.TrimLeft(s.write(f.shown(v, s.code), ""), " ")
}

// rounded rounds halves up, of the 15 digits with which spreadsheets calculate.
func rounded(v float64, places int) float64 {
	if scaled := v * math.Pow10(places); scaled < 1e15 && scaled != math.Trunc(scaled) {
		return math.Round(scaled*(1+1e-15)) / math.Pow10(places)
	}
	return v
}

// moment shows a date, a time or a span of time: v is a number of days.
func (f *formatter) moment(v float64, sign string, s *section) string {
	span := elapsed().MatchString(s.code)
	if sign != "" && !span || v > 2958466 { // the year 10,000
		return sign + general(v)
	}
	if f.epoch && !span {
		v += 1462
	}
	unit := math.Pow10(s.subseconds)
	if s.subseconds == 0 {
		unit = 1000 // hides errors of calculation
	}
	whole := int64(math.Round(v * 86400 * unit))
	seconds := float64(whole/int64(unit)) + 0.0005 // which excelize may drop
	return sign + s.write(f.shown(seconds/86400, s.code), fmt.Sprintf(".%0*d", s.subseconds, whole%int64(unit)))
}

// shown returns what excelize makes of a number and a code without sections; the number if excelize fails. It takes
// 10 µs, so that repeated numbers are remembered.
func (f *formatter) shown(v float64, code string) string {
	key := numberAs{v, code}
	if f.memo[key] == "" {
		if len(f.memo) >= 1<<16 {
			clear(f.memo)
		}
		raw := strconv.FormatFloat(v, 'f', -1, 64)
		text, err := f.byExcelize(raw, code)
		if n, e := strconv.ParseFloat(text, 64); e == nil && math.Abs(n-v) < 1 && language().MatchString(code) {
			text, err = f.byExcelize(raw, english+language().ReplaceAllString(code, "")) // it does not know the language
		}
		if err != nil {
			text = general(v)
		}
		f.memo[key] = text
	}
	return f.memo[key]
}

func (f *formatter) byExcelize(raw, code string) (string, error) {
	cell := f.cells[code]
	if cell == "" {
		if len(f.cells) >= maxCodes {
			return "", fmt.Errorf("more than %d number formats", maxCodes)
		}
		cell, _ = excelize.CoordinatesToCellName(len(f.cells)+1, 1)
		style, err := f.book.NewStyle(&excelize.Style{CustomNumFmt: &code})
		if err := errors.Join(err, f.book.SetCellStyle("Sheet1", cell, cell, style)); err != nil {
			return "", err
		}
		f.cells[code] = cell
	}
	if err := f.book.SetCellDefault("Sheet1", cell, raw); err != nil {
		return "", err
	}
	return f.book.GetCellValue("Sheet1", cell)
}

// general returns a number of 15 digits.
func general(v float64) string {
	if math.Abs(v) < 1e15 && math.Abs(v) >= 1e-5 || v == 0 {
		short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
		if err == nil {
			return strconv.FormatFloat(short, 'f', -1, 64)
		}
	}
	return strconv.FormatFloat(v, 'G', 15, 64)
}
