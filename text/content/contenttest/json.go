// Package contenttest draws values for the tests of packages that scan JSON.
//
// Only test files import this package.
package contenttest

import "pgregory.net/rapid"

// DrawJSON draws a value of the types to which encoding/json decodes. Strings and keys come from the generator key;
// lists and objects have at most 4 elements, and depth is their maximum nesting depth.
func DrawJSON(t *rapid.T, key *rapid.Generator[string], depth int) any {
	most := 5
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "what") {
	case 0:
		return key.Draw(t, "string")
	case 1:
		return float64(rapid.IntRange(-1e6, 1e6).Draw(t, "number")) / 8
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return nil
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			list = append(list, DrawJSON(t, key, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		object[key.Draw(t, "key")] = DrawJSON(t, key, depth-1)
	}
	return object
}
