package secrets

import "bytes"

// placeholders stand for secrets in documentation. They are too long, or have characters too unusual, to occur in a
// random token by chance.
var placeholders = bytes.Fields([]byte("example placeholder changeme change-me change_me redacted replace " +
	"${ {{ $( < … not-a- notreal abcdefgh 12345678901234567890"))

// shortPlaceholders are short. About one in ten thousand random tokens contains one of them by chance, in upper or
// lower case.
var shortPlaceholders = bytes.Fields([]byte("your xxxx **** .... masked dummy insert"))

// isPlaceholder reports whether b is a placeholder for a secret: "EXAMPLE", "your-token-here", "xxxxxxxx", "${TOKEN}".
func isPlaceholder(b []byte) bool { return hasPlaceholder(b, looksRandom) }

func looksRandom(b []byte) bool {
	return len(b) >= 24 && isMixed(b, 4.2) || len(b) >= 12 && isRandom(b, usual)
}

func isToken([]byte) bool { return true }

// hasPlaceholder reports whether b has few distinct bytes or contains a placeholder. If b is random, a short placeholder
// counts only if it is a separate word or the rest of b is regular.
func hasPlaceholder(b []byte, random func([]byte) bool) bool {
	if distinct(b) < 5 {
		return true
	}
	b = b[:min(len(b), checkedBytes)]
	var folded [checkedBytes]byte
	lower := folded[:copy(folded[:], b)]
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c | 0x20
		}
	}
	seen, _ := byteSet(lower)
	for _, s := range placeholders {
		if seen.mayHold(s) && bytes.Contains(lower, s) {
			return true
		}
	}
	for _, s := range shortPlaceholders {
		for at := 0; seen.mayHold(s); at++ {
			n := bytes.Index(lower[at:], s)
			if n < 0 {
				break
			}
			if at += n; !random(b) || deliberate(b, at, at+len(s)) {
				return true
			}
		}
	}
	return false
}

// deliberate reports whether the short placeholder b[from:to] is in a random-looking b on purpose, not by chance.
func deliberate(b []byte, from, to int) bool {
	rest := make([]byte, 0, checkedBytes)
	rest = append(append(rest, b[:from]...), b[to:]...)
	if entropy(rest) < 3 {
		return true
	}
	if lower, upper, _, _ := countKinds(b[from:to]); lower > 0 && upper > 0 {
		return false
	}
	// A separate word starts b or follows a sign, and ends at a sign, at the end of b or before an upper-case letter.
	if from > 0 && alnum[b[from-1]] {
		return false
	}
	if to == len(b) || !alnum[b[to]] {
		return true
	}
	return from == 0 && b[0] >= 'a' && b[0] <= 'z' && b[to] >= 'A' && b[to] <= 'Z'
}
