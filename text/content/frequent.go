package content

import (
	"cmp"
	"fmt"
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

// Frequent returns the most counts of [MostFrequent] with their names, as "12 name", and the number of the others.
func Frequent[N int | int64](counts map[string]N, most int) (list []string, others int) {
	names := MostFrequent(counts)
	for _, name := range names[:min(len(names), most)] {
		list = append(list, fmt.Sprintf("%d %s", counts[name], name))
	}
	return list, len(names) - len(list)
}
