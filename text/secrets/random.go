package secrets

import "bytes"

// pairs has, for each pair of letters, how much more frequent it is in identifiers and in words than in random text:
// 6 plus the binary logarithm, as a digit. A row is the first letter, a column the second. It was counted in 235,580
// identifiers of Go, Python and JavaScript and in English prose.
const pairs = "" +
	"56773461605867061878553441" +
	"85657432762843741664812163" +
	"83558427607742941658622040" +
	"75469443832634731664632141" +
	"64775542302667355887344640" +
	"75657841910733830756601140" +
	"63439367701647630775633133" +
	"93349322703444821647512041" +
	"55766560212769761677050405" +
	"73549544746423861374833443" +
	"73559464833636543574535042" +
	"73369431803733840266631061" +
	"86249211703564780264611140" +
	"72777684615435742378551031" +
	"55673451425678660866756421" +
	"82448325604732762857632060" +
	"53434333323534344764923321" +
	"73559451704565840677542050" +
	"62638336704543663379623150" +
	"72549417802543740766523161" +
	"66657651602768470878220202" +
	"83529332811333631342233222" +
	"82457337912547731864224421" +
	"74757624722463482349332762" +
	"55646443623667591588445365" +
	"73449335822443633344333457"

// Costs of a text as an identifier in place of a random text, in bits, as for pairs.
const (
	hump      = -2 // a capital letter after a small one
	digitStep = -2 // between a letter and a digit
	digitPair = -1
)

// wordness returns how much more likely t is made of words than random, in bits: about 20 for an identifier of 12
// letters, −18 for 12 random letters and digits.
func wordness(t []byte) int {
	mixed := isMixedCase(t)
	sum := 0
	for i := 1; i < len(t); i++ {
		a, b := t[i-1], t[i]
		switch {
		case !alnum[a] || !alnum[b]:
		case digits[a] && digits[b]:
			sum += digitPair
		case digits[a] || digits[b]:
			sum += digitStep
		case a >= 'a' && b < 'a':
			sum += hump
		default:
			sum += int(pairs[26*int(a&31-1)+int(b&31-1)]-'0') - 6
			switch {
			case !mixed:
			case b >= 'a':
				sum++
			default:
				sum--
			}
		}
	}
	return sum
}

// Evidence that [isRandom] needs in addition, in bits.
const (
	usual  = 0
	inCode = 6  // the text is probably source code
	named  = 8  // the name says little
	secret = 16 // the text has words such as password, as names of variables have
)

// isRandom reports whether the letters and digits of t are too irregular for words or an identifier.
func isRandom(t []byte, evidence int) bool {
	t = bytes.TrimRight(t, "=")
	lower, upper, digit, sign := countKinds(t)
	for _, c := range t {
		if c >= 0x80 { // words of another language
			return false
		}
	}
	mixed := isMixedCase(t)
	if sign*3 > len(t) || sign > 0 && digit == 0 && !mixed { // words joined by signs
		return false
	}
	n := len(t) - sign
	limit := 0
	switch {
	case n < 8 || lower+upper == 0:
		return false
	case mixed && n < 10:
		limit = 0
	case mixed && n < 12:
		limit = 6
	case mixed && n < 16:
		limit = 11
	case mixed:
		limit = 16
	case n < 10:
		limit = -4
	case n < 16:
		limit = 2
	default:
		limit = 6
	}
	return wordness(t) < limit-evidence
}

// isMixedCase reports whether a letter of t stands next to one of the other case.
func isMixedCase(t []byte) bool {
	for i := 1; i < len(t); i++ {
		if a, b := t[i-1], t[i]; (a^b)&0x20 != 0 && alnum[a] && alnum[b] && !digits[a] && !digits[b] {
			return true
		}
	}
	return false
}
