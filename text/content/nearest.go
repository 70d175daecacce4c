package content

// Nearest returns the element of names that is most similar to name, which may be a misspelling of it: at most two
// bytes differ. It returns "" if no element is that similar, or if name is longer than 100 bytes.
func Nearest(name string, names []string) string {
	best, at := 3, ""
	if len(name) > 100 {
		return at
	}
	for _, n := range names {
		if d := EditDistance(name, n); d < best && d < len(n) {
			best, at = d, n
		}
	}
	return at
}

// EditDistance returns the Levenshtein distance of two strings, in bytes.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
