package content

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// MostFrequent returns the names of counts, the largest count first; names with equal counts are in alphabetical order.
func MostFrequent[N cmp.Ordered](counts map[string]N) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}
