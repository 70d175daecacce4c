package secrets

import "bytes"

// In a JSON string a quote, a tab and a line's end are written as a backslash and a letter, and in a JSON string within one as
// several backslashes and a letter. To a matcher these are what they stand for: they end a value. And whatever a matcher took,
// a mask begins and ends between escapes, never in one: else what was JSON were none any more.

// maxSlashes is how many backslashes before a letter are looked at: seven levels of JSON in JSON.
const maxSlashes = 128

var slash = classOf(`\`)

// within is how many backslashes at the beginning of b belong to a value: none where they escape a quote, a tab or a line's
// end, at whatever depth, or a character that is no ASCII.
func within(b []byte) int {
	k := slash.run(b, maxSlashes)
	if k == maxSlashes || k == len(b) || bytes.IndexByte([]byte("nrtu\"'`"), b[k]) >= 0 {
		return 0
	}
	return k
}

// value is run for a class of which values are: it stops at an escape that ends one.
func (c *class) value(b []byte, limit int) int {
	stop := min(len(b), limit)
	i := 0
	for i < stop {
		switch {
		case b[i] == '\\':
			n := within(b[i:])
			if n == 0 {
				return i
			}
			i += n
		case c[b[i]]:
			i++
		default:
			return i
		}
	}
	return min(i, stop)
}

// escaped is how much of an escape stands behind i, and how much before it; 0, 0 where i is within none.
func escaped(b []byte, i int) (behind, before int) {
	if i == 0 || i >= len(b) {
		return 0, 0
	}
	if b[i-1] == '\\' {
		end := i + slash.run(b[i:], maxSlashes)
		switch {
		case end+5 <= len(b) && b[end] == 'u' && isHex(b[end+1:end+5]):
			end += 5
		case end < len(b) && bytes.IndexByte([]byte("nrtbf"), b[end]) >= 0:
			end++
		}
		return end - i, slash.back(b[:i], maxSlashes)
	}
	for k := 1; k < 5 && i-k > 0; k++ {
		if u := i - k; b[u] == 'u' && b[u-1] == '\\' && u+5 <= len(b) && isHex(b[u+1:u+5]) {
			return u + 5 - i, k + slash.back(b[:u], maxSlashes)
		}
	}
	return 0, 0
}

func isHex(b []byte) bool {
	for _, c := range b {
		if nibble(c) < 0 {
			return false
		}
	}
	return len(b) == 4
}

// whole takes from a secret what of an escape it has at its ends.
func (s *scan) whole(f found) found {
	if f.block {
		return f
	}
	n, _ := escaped(s.b, f.from)
	f.from, f.public, f.lead = f.from+n, max(0, f.public-n), f.lead+n
	if f.from >= f.to {
		return f
	}
	_, n = escaped(s.b, f.to)
	f.to = max(f.from, f.to-n)
	f.to -= slash.back(s.b[f.from:f.to], unbounded)
	return f
}

// unopened is how many characters at the end of v close what stands around it: brackets that nothing in v opens, commas.
func unopened(v []byte) int {
	end := len(v)
	var open [3]int
	for k, pair := range brackets {
		open[k] = bytes.Count(v, pair[:1]) - bytes.Count(v, pair[1:])
	}
	for end > 0 {
		k := bytes.IndexByte([]byte(")]}"), v[end-1])
		switch {
		case k >= 0 && open[k] < 0:
			open[k]++
		case v[end-1] != ',' && v[end-1] != ';':
			return len(v) - end
		}
		end--
	}
	return len(v)
}

var brackets = [3][]byte{[]byte("()"), []byte("[]"), []byte("{}")}
