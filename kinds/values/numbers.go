package values

import (
	"math/big"
	"strconv"
	"strings"
)

// decimal returns a decimal number as JSON writes it, with all its digits: 017 is 17, +.5 is 0.5, 1. is 1.0.
func decimal(s string) string {
	sign := ""
	switch s[0] {
	case '-':
		sign, s = "-", s[1:]
	case '+':
		s = s[1:]
	}
	exponent := ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s, exponent = s[:i], s[i:]
	}
	whole, fraction, dotted := strings.Cut(s, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if dotted {
		if fraction == "" {
			fraction = "0"
		}
		whole += "." + fraction
	}
	return sign + whole + exponent
}

// integer returns an integer with a prefix of its base, 0x or 0o, in decimal digits; "" if it is too long to be
// converted in a millisecond.
func integer(s string) string {
	if len(s) > 10_000 {
		return ""
	}
	i, ok := new(big.Int).SetString(s, 0)
	if !ok {
		return ""
	}
	return i.String()
}

// decimalOf returns a number in decimal digits, with no more of them than tell it from others.
func decimalOf(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
