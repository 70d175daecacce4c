package tree

// pairs is a set of two bytes that stand side by side in a name, "/" before its first byte and behind its last; several
// share a bit. What a name lacks of those in a pattern tells at once, for nine patterns of ten, that it does not match.
type pairs uint64

func pair(a, b byte) pairs { return 1 << ((a*7 + b) & 63) }

// pairsOf are those of a name.
func pairsOf(name string) (has pairs) {
	last := byte('/')
	for i := range len(name) {
		has |= pair(last, name[i])
		last = name[i]
	}
	return has | pair(last, '/')
}

// needs are the pairs in the last name of whatever matches a pattern that is not [hopeless]. A "/" is matched by a "/"
// alone, or by nothing behind "**": to git even where the "**" stands behind other text, "a**/b" for "ab".
func needs(p string) (all pairs) {
	last, known := byte('/'), true
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch c {
		case '*', '?':
			known = false
			continue
		case '[':
			_, next := class(p, i+1, 'x')
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
