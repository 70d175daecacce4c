package tree

// pairs is a set of two adjacent bytes in a name, with "/" before the first and after the last; several pairs share a
// bit. Comparing the pairs of a name with those of a pattern excludes nine patterns of ten without matching.
type pairs uint64

func pair(a, b byte) pairs { return 1 << ((a*7 + b) & 63) }

// pairsOf returns the pairs of a name.
func pairsOf(name string) (has pairs) {
	last := byte('/')
	for i := range len(name) {
		has |= pair(last, name[i])
		last = name[i]
	}
	return has | pair(last, '/')
}

// requiredPairs returns the pairs that the base name of every match has, for a pattern that is not [neverMatches]. A
// "/" matches a "/" alone, or nothing after "**": in git even if other text precedes the "**", so that "a**/b" matches
// "ab".
func requiredPairs(p string) (all pairs) {
	last, known := byte('/'), true
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch c {
		case '*', '?':
			known = false
			continue
		case '[':
			_, next := matchClass(p, i+1, 'x')
			known, i = false, next-1
			continue
		case '\\':
			i++
			c = p[i]
		}
		switch {
		case c == '/':
			all, known = 0, i == 0 || p[i-1] != '*'
		case known:
			all |= pair(last, c)
		default:
			known = true
		}
		last = c
	}
	if known {
		all |= pair(last, '/')
	}
	return all
}
