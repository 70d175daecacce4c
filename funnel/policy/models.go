package policy

import "strings"

// windows are context windows in tokens, of models by the beginning of their names, the most special first. They are
// used only for a client that reports its usage without its window. As vendors published them by November 2026; of
// several the smallest, and the limit of the input where that is lower.
var windows = []struct {
	name   string
	tokens int
}{
	{claudeName, 200_000},
	{"gpt-5", 272_000},
	{"gpt-4.1", 1_047_576},
	{"gpt-4o", 128_000},
	{"gpt-4-turbo", 128_000},
	{"o1", 200_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"gemini-", 1_048_576},
}

// Claude models have the window of the table, or the long one: their API's name does not say which, but Claude Code's
// name of the model may end in longName.
const (
	claudeName = "claude-"
	longName   = "[1m]"
	longWindow = 1_000_000
)

// modelWindow returns the context window of a model; 0: unknown.
func modelWindow(name string) int {
	name = strings.ToLower(name)
	for _, w := range windows {
		if strings.HasPrefix(name, w.name) {
			if w.name == claudeName && strings.HasSuffix(name, longName) {
				return longWindow
			}
			return w.tokens
		}
	}
	return 0
}

// tableWindow returns the context window of the reported model, else that of the policy's; 0: unknown. A Claude model
// has the long window if a report was over the short one, or if the policy names the model so.
func (p Policy) tableWindow(s Spent) int {
	name := strings.ToLower(s.Model)
	if modelWindow(name) == 0 {
		name = strings.ToLower(p.Model)
	}
	window := modelWindow(name)
	base, long := strings.CutSuffix(strings.ToLower(p.Model), longName)
	reported := max(s.Peak, s.Tokens-s.Shown)
	if strings.HasPrefix(name, claudeName) && (reported > window || long && strings.HasPrefix(name, base)) {
		return longWindow
	}
	return window
}
