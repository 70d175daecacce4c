package shown_test

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
)

// with runs with another value of a variable.
func with[T any](variable *T, value T, run func()) {
	was := *variable
	*variable = value
	defer func() { *variable = was }()
	run()
}

// withoutVisible runs with hidden characters passed on as they are, as the control of what is promised of them.
func withoutVisible(run func()) {
	with(&text.Visible, func(s string, _ bool) string { return s }, run)
}

// withoutFence runs with lines that imitate this server's passed on as they are.
func withoutFence(run func()) {
	with(&text.Escape, func(s string, _ text.Position) string { return s }, run)
}

// withOneMark runs with lines that imitate this server's marked only where no mark stands before them yet.
func withOneMark(run func()) {
	was := text.Escape
	with(&text.Escape, func(s string, at text.Position) string {
		lines := strings.SplitAfter(s, "\n")
		for i, l := range lines {
			if !strings.HasPrefix(l, ">") {
				lines[i] = was(l, at)
			}
		}
		return strings.Join(lines, "")
	}, run)
}
