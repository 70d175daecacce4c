package extract

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// builtIns are the codes of number formats that a workbook does not spell out (ECMA-376 part 1, 18.8.30). Dates differ
// by country and are all shown in ISO form.
var builtIns = map[string]string{
	"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "11": "0.00E+00",
	"18": "h:mm", "19": "h:mm:ss", "20": "h:mm", "21": "h:mm:ss", "22": "yyyy-mm-dd h:mm",
	"37": "#,##0;(#,##0)", "38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)",
	"45": "[m]:ss", "46": "[h]:mm:ss", "47": "[m]:ss", "48": "0.0E+0",
}

// builtIn returns the code of a built-in number format; "" for the general one.
func builtIn(id string) string {
	n, err := strconv.Atoi(id)
	if err == nil && (n >= 14 && n <= 17 || n >= 27 && n <= 36 || n >= 50 && n <= 58) {
		return "yyyy-mm-dd"
	}
	return builtIns[id]
}

// literals matches the characters of a number format that stand for themselves, and its conditions and colors.
var literals = content.Pattern(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|(?i:AM/PM|A/P|General)`)

// elapsed matches a format of a time span.
var elapsed = content.Pattern(`(?i)\[(h+|m+|s+)\]`)

// formatNumber returns a number as its format shows it; dates and times in ISO form. epoch is true if days count from
// 1904. A number with a fraction or a condition in its format is returned as it is.
func formatNumber(v float64, code string, epoch bool) string {
	section, negative := sectionOf(code, v)
	plain := strings.ToLower(literals().ReplaceAllString(section, ""))
	switch {
	case elapsed().MatchString(section):
		return span(v)
	case strings.ContainsAny(plain, "ymdhs") && !strings.ContainsAny(plain, "0#?"):
		return moment(v, plain, epoch)
	case !strings.ContainsAny(plain, "0#?") || strings.Contains(plain, "/"):
		return general(v)
	}
	if negative {
		v = -v
	}
	return number(v, section)
}

// sectionOf returns the section of a format for a number; negative is true if the section shows the sign itself.
func sectionOf(code string, v float64) (section string, negative bool) {
	var sections []string
	from, quoted := 0, false
	for i := range len(code) {
		switch {
		case code[i] == '"':
			quoted = !quoted
		case code[i] == ';' && !quoted:
			sections = append(sections, code[from:i])
			from = i + 1
		}
	}
	sections = append(sections, code[from:])
	switch {
	case v < 0 && len(sections) > 1:
		return sections[1], true
	case v == 0 && len(sections) > 2:
		return sections[2], false
	}
	return sections[0], false
}

func general(v float64) string {
	if math.Abs(v) < 1e15 && math.Abs(v) >= 1e-5 || v == 0 {
		short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
		if err == nil {
			return strconv.FormatFloat(short, 'f', -1, 64)
		}
	}
	return strconv.FormatFloat(v, 'G', 15, 64)
}

// span returns a number of days as hours, minutes and seconds.
func span(days float64) string {
	sign := ""
	if days < 0 {
		sign, days = "-", -days
	}
	s := int64(math.Round(min(days, 1e9) * 86400))
	return fmt.Sprintf("%s%d:%02d:%02d", sign, s/3600, s/60%60, s%60)
}

// moment returns a date or time. plain is the format without literals, in lower case.
func moment(v float64, plain string, epoch bool) string {
	if v < 0 || v > 2958466 { // the year 10,000
		return general(v)
	}
	day := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case epoch:
		day = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case v < 60: // there was no 29 February 1900
		day = day.AddDate(0, 0, 1)
	}
	at := day.Add(time.Duration(math.Round(v*86400)) * time.Second)
	clock, seconds := strings.ContainsAny(plain, "hs"), strings.Contains(plain, "s")
	layout := time.DateOnly
	switch {
	case !strings.ContainsAny(plain, "dy") && clock && seconds:
		layout = time.TimeOnly
	case !strings.ContainsAny(plain, "dy") && clock:
		layout = "15:04"
	case seconds:
		layout = time.DateTime
	case clock:
		layout = "2006-01-02 15:04"
	}
	return at.Format(layout)
}

// number shows a number by a section with digits: its literals, and the number in the place of the digits.
func number(v float64, section string) string {
	var before, after, digits strings.Builder
	percent := false
	literal := func(s string) {
		if digits.Len() == 0 {
			before.WriteString(s)
		} else {
			after.WriteString(s)
		}
	}
	for i := 0; i < len(section); i++ {
		switch c := section[i]; {
		case strings.IndexByte("0#?.,", c) >= 0:
			digits.WriteByte(c)
		case (c == 'E' || c == 'e') && i+1 < len(section) && strings.IndexByte("+-", section[i+1]) >= 0:
			return strconv.FormatFloat(v, 'E', decimals(digits.String()), 64)
		case c == '"':
			end := strings.IndexByte(section[i+1:], '"')
			if end < 0 {
				end = len(section) - i - 1
			}
			literal(section[i+1 : i+1+end])
			i += end + 1
		case c == '[':
			end := strings.IndexByte(section[i:], ']')
			if end < 0 {
				end = len(section) - i - 1
			}
			if inside := section[i+1 : i+end]; strings.HasPrefix(inside, "$") { // a currency: [$€-407]
				symbol, _, _ := strings.Cut(inside[1:], "-")
				literal(symbol)
			}
			i += end
		case c == '\\' && i+1 < len(section):
			i++
			literal(section[i : i+1])
		case c == '_' || c == '*':
			_, n := utf8.DecodeRuneInString(section[i+1:])
			i += n
			literal(" ")
		case c == '%':
			percent = true
			literal("%")
		default:
			literal(section[i : i+1])
		}
	}
	if percent {
		v *= 100
	}
	pattern := digits.String()
	for strings.HasSuffix(pattern, ",") { // thousands
		pattern, v = pattern[:len(pattern)-1], v/1000
	}
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	if scale := math.Pow10(decimals(pattern)); v*scale < 1e15 { // spreadsheets round halves up
		if v = math.Round(v*scale) / scale; v == 0 {
			sign = ""
		}
	}
	text := strconv.FormatFloat(v, 'f', decimals(pattern), 64)
	if dot := strings.IndexByte(pattern, '.'); dot >= 0 && strings.IndexByte(text, '.') >= 0 {
		for n := len(pattern) - 1; n > dot && pattern[n] == '#' && strings.HasSuffix(text, "0"); n-- {
			text = text[:len(text)-1]
		}
		text = strings.TrimSuffix(text, ".")
	}
	whole, _, _ := strings.Cut(pattern, ".")
	whole = strings.ReplaceAll(whole, ",", "")
	if missing := strings.Count(whole, "0") - len(strings.Split(text, ".")[0]); missing > 0 {
		text = strings.Repeat("0", min(missing, 30)) + text
	}
	if strings.Contains(pattern, ",") {
		text = grouped(text)
	}
	return sign + before.String() + text + after.String()
}

// decimals counts the digits after the point in a pattern of digits.
func decimals(pattern string) int {
	_, after, _ := strings.Cut(pattern, ".")
	return min(len(strings.ReplaceAll(after, ",", "")), 30)
}

// grouped puts commas between thousands.
func grouped(text string) string {
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return whole + rest
}
