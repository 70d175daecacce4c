package policy

import "strings"

// windows are context windows in tokens, of models by the beginning of their names, the most special first. They are
// used only for a client that reports its usage without its window. As vendors published them by November 2026; of
// several the smallest, and the limit of the input where that is lower.
var windows = []struct {
	name   string
	tokens int
}{
	{"claude-", 200_000},
	{"gpt-5", 272_000},
	{"gpt-4.1", 1_047_576},
	{"gpt-4o", 128_000},
	{"gpt-4-turbo", 128_000},
	{"o1", 200_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"gemini-", 1_048_576},
}

// modelWindow returns the context window of a model; 0: unknown.
func modelWindow(name string) int {
	for _, w := range windows {
		if strings.HasPrefix(strings.ToLower(name), w.name) {
			return w.tokens
		}
	}
	return 0
}
