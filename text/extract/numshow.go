package extract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// formatter shows numbers and texts by their formats.
type formatter struct {
	formats map[string]*numberFormat
	epoch   bool // days count from 1904
}

func newFormatter() *formatter { return &formatter{map[string]*numberFormat{}, false} }

func (f *formatter) format(code string) *numberFormat {
	if f.formats[code] == nil {
		f.formats[code] = parseFormat(code)
	}
	return f.formats[code]
}

// text returns a text as its format shows it.
func (f *formatter) text(text, code string) string {
	if s := f.format(code).text; s != nil {
		return s.words(text)
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
	shows := func(kind byte) bool {
		return slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == kind })
	}
	var text string
	zero := false
	switch {
	case s.mixed:
		return sign + general(v)
	case s.date:
		return f.moment(v, sign, s)
	case !s.number:
		text, zero = s.words(general(v)), !shows(whole)
	case shows('/'):
		text = s.ratio(v)
	case shows(exponent):
		text = s.scientific(v)
	default:
		text, zero = s.decimal(v)
	}
	if zero {
		sign = ""
	}
	return sign + strings.TrimLeft(text, " ")
}

// placesIn returns the number of digits in tokens.
func placesIn(tokens []token) (n int) {
	for _, t := range tokens {
		if t.kind == digit {
			n++
		}
	}
	return n
}

// atKind returns the index of the first token of a kind; the number of tokens if there is none.
func atKind(tokens []token, kind byte) int {
	if i := slices.IndexFunc(tokens, func(t token) bool { return t.kind == kind }); i >= 0 {
		return i
	}
	return len(tokens)
}

// decimal shows a number with a point; zero is true if no digit of it is shown but zeros.
func (s *section) decimal(v float64) (text string, zero bool) {
	tokens := slices.Clone(s.tokens)
	shift, grouped, after := 0, false, true // after: no digit follows before the point
	for i := len(tokens) - 1; i >= 0; i-- {
		switch tokens[i].kind {
		case '%':
			shift += 2
		case '.':
			after = true
		case digit:
			after = false
		case ',':
			switch before := i > 0 && (tokens[i-1].kind == digit || tokens[i-1].kind == ','); {
			case before && after:
				shift -= 3
				tokens[i].text = ""
			case before:
				grouped = true
				tokens[i].text = ""
			}
		}
	}
	point := atKind(tokens, '.')
	before, decimals := rounded(v, shift, placesIn(tokens[point:]))
	return fillWhole(tokens[:point], before, grouped) + fillDecimals(tokens[point:], decimals),
		strings.Trim(before+decimals, "0") == ""
}

// rounded returns the digits before and after the point of v times a power of ten. Spreadsheets calculate with 15
// digits, and round halves up. No zero is before the others.
func rounded(v float64, power, places int) (before, decimals string) {
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', 14, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	point, _ := strconv.Atoi(exp)
	point += 1 + power
	if point+places < 0 {
		return "", strings.Repeat("0", places)
	}
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if cut := point + places; cut < len(digits) {
		up := digits[cut] >= '5'
		b := []byte(digits[:cut])
		for i := cut - 1; i >= 0 && up; i-- {
			if up = b[i] == '9'; up {
				b[i] = '0'
			} else {
				b[i]++
			}
		}
		if digits = string(b); up {
			digits, point = "1"+digits, point+1
		}
	}
	digits += strings.Repeat("0", point+places-len(digits))
	return strings.TrimLeft(digits[:point], "0"), digits[point:]
}

// fillWhole puts the digits before the point into their places; the first place takes all that are left.
func fillWhole(tokens []token, digits string, grouped bool) string {
	out := make([]string, len(tokens))
	places, at := placesIn(tokens), 0
	for i := len(tokens) - 1; i >= 0; i-- {
		out[i] = tokens[i].text
		if tokens[i].kind != digit {
			continue
		}
		places--
		out[i] = ""
		for more := true; more; more = places == 0 && digits != "" {
			d := strings.NewReplacer("#", "", "?", " ").Replace(tokens[i].text)
			if n := len(digits); n > 0 {
				d, digits = digits[n-1:], digits[:n-1]
			}
			if grouped && at > 0 && at%3 == 0 && strings.Trim(d, " ") != "" {
				d += ","
			}
			out[i] = d + out[i]
			at++
		}
	}
	return strings.Join(out, "")
}

// fillDecimals puts the digits after the point into their places. Zeros at the end are hidden by # and ?, and so is the
// point before nothing but #.
func fillDecimals(tokens []token, digits string) string {
	var b strings.Builder
	significant := len(strings.TrimRight(digits, "0"))
	shown := func(t token) bool { return t.kind == digit && t.text != "#" }
	hidden := significant == 0 && !slices.ContainsFunc(tokens, shown)
	at := 0
	for _, t := range tokens {
		if t.kind == digit {
			switch at++; {
			case at <= significant || t.text == "0":
				t.text = digits[at-1 : at]
			case t.text == "#":
				t.text = ""
			default:
				t.text = " "
			}
		} else if t.kind == '.' && hidden {
			continue
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// scientific shows a number with an exponent, which is a multiple of the number of digits before the point.
func (s *section) scientific(v float64) string {
	e := atKind(s.tokens, exponent)
	point := min(atKind(s.tokens, '.'), e)
	n := max(1, placesIn(s.tokens[:point]))
	power := 0
	if v != 0 {
		_, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', 14, 64), "e")
		power, _ = strconv.Atoi(exp)
		power -= (power%n + n) % n
	}
	before, decimals := rounded(v, -power, placesIn(s.tokens[point:e]))
	if len(before) > n {
		power += n
		before, decimals = rounded(v, -power, placesIn(s.tokens[point:e]))
	}
	sign := strings.TrimSuffix(s.tokens[e].text, "-")
	if power < 0 {
		sign = "E-"
	}
	return fillWhole(s.tokens[:point], before, false) + fillDecimals(s.tokens[point:e], decimals) + sign +
		fillWhole(s.tokens[e+1:], strconv.Itoa(max(power, -power)), false)
}

// ratio shows a number as a fraction, with the whole number before it if there is a place for that.
func (s *section) ratio(v float64) string {
	slash := atKind(s.tokens, '/')
	start := slash
	for start > 0 && s.tokens[start-1].kind == digit {
		start--
	}
	end := slash + 1
	for end < len(s.tokens) && s.tokens[end].kind == digit {
		end++
	}
	under := s.tokens[slash+1 : end]
	fixed, most := 0, 1
	for _, t := range under[:min(len(under), 9)] {
		d, _ := strconv.Atoi(t.text)
		fixed, most = 10*fixed+d, min(10*most, 10_000)
	}
	mixed := placesIn(s.tokens[:start]) > 0
	number, part := 0.0, v
	if mixed {
		number, part = math.Modf(v)
	}
	n, d := nearest(part, fixed, most-1)
	if mixed && n == d {
		number, n = number+1, 0
	}
	before, _ := rounded(number, 0, 0)
	if mixed && n == 0 && s.tokens[start].text != "0" { // the fraction is hidden
		return fillWhole(s.tokens[:start], cmp.Or(before, "0"), false) + fillWhole(s.tokens[end:], "", false)
	}
	text := fillWhole(s.tokens[:start], before, false)
	if number == 0 && !slices.Contains(s.tokens[:start], token{digit, "0"}) {
		text = "" // with the words before the fraction
	}
	return text + fillWhole(s.tokens[start:slash], strconv.Itoa(n), false) + "/" + strconv.Itoa(d) +
		fillWhole(s.tokens[end:], "", false)
}

// nearest returns the fraction that is next to v: with a denominator, or with the smallest of those up to most.
func nearest(v float64, denominator, most int) (n, d int) {
	if v >= 1e9 {
		return int(min(v, 1e15)), 1
	}
	from, to := 1, most
	if denominator > 0 {
		from, to = denominator, denominator
	}
	least := math.Inf(1)
	for k := from; k <= to; k++ {
		near := math.Floor(v*float64(k) + 0.5)
		if off := math.Abs(v - near/float64(k)); off < least-1e-12 {
			n, d, least = int(near), k, off
		}
	}
	return n, max(d, 1)
}

// moment shows a date, a time or a span of time: v is a number of days. Names of months and days are English.
func (f *formatter) moment(v float64, sign string, s *section) string {
	span := slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == unit && t.text[0] == '[' })
	if sign != "" && !span || v > 2958466 { // the year 10,000
		return sign + general(v)
	}
	grain := math.Pow10(max(s.subseconds, 1)) // as LibreOffice rounds: to what is shown, or to tenths
	ticks := int64(math.Round(v * 86400 * grain))
	day := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case f.epoch:
		day = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case v < 60: // there was no 29 February 1900
		day = day.AddDate(0, 0, 1)
	}
	seconds := ticks / int64(grain)
	at := day.AddDate(0, 0, int(seconds/86400)).Add(time.Duration(seconds%86400) * time.Second)
	noon := slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == unit && strings.Contains(t.text, "/") })
	b := strings.Builder{}
	for i, t := range s.tokens {
		switch t.kind {
		case unit:
			b.WriteString(shownUnit(t.text, at, seconds, noon, s.minutes(i)))
		case subsecond:
			b.WriteString(fmt.Sprintf(".%06d", ticks%int64(grain)*int64(1e6/grain))[:1+s.subseconds])
		case whole:
			b.WriteString(general(v))
		default:
			b.WriteString(t.text)
		}
	}
	return sign + b.String()
}

// minutes reports whether m of a token stands for minutes: after hours or before seconds.
func (s *section) minutes(i int) bool {
	isUnit := func(t token) bool { return t.kind == unit }
	before, after := slices.Clone(s.tokens[:i]), s.tokens[i+1:]
	slices.Reverse(before)
	if k := slices.IndexFunc(before, isUnit); k >= 0 && strings.Contains(before[k].text, "h") {
		return true
	}
	k := slices.IndexFunc(after, isUnit)
	return k >= 0 && strings.ContainsAny(after[k].text, "s")
}

// shownUnit shows one unit of a date or time.
func shownUnit(of string, at time.Time, seconds int64, noon, minutes bool) string {
	n := strconv.Itoa(min(len(strings.Trim(of, "[]")), 2)) // digits
	switch {
	case of == "am/pm":
		return at.Format("PM")
	case of == "a/p":
		return at.Format("PM")[:1]
	case of[0] == '[':
		per := map[byte]int64{'h': 3600, 'm': 60, 's': 1}[of[1]]
		return fmt.Sprintf("%0"+n+"d", seconds/per)
	case of[0] == 'h' && noon:
		return fmt.Sprintf("%0"+n+"d", (at.Hour()+11)%12+1)
	case of[0] == 'h':
		return fmt.Sprintf("%0"+n+"d", at.Hour())
	case of[0] == 's':
		return fmt.Sprintf("%0"+n+"d", at.Second())
	case of[0] == 'm' && minutes && len(of) <= 2:
		return fmt.Sprintf("%0"+n+"d", at.Minute())
	case of[0] == 'm' && len(of) == 5:
		return at.Format("Jan")[:1]
	case of[0] == 'g':
		return ""
	}
	layouts := map[byte][]string{
		'y': {"06", "06", "2006"}, 'e': {"2006"}, 'm': {"1", "01", "Jan", "January"}, 'd': {"2", "02", "Mon", "Monday"},
	}[of[0]]
	return at.Format(layouts[min(len(of), len(layouts))-1])
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
