package funnel

import "strings"

// WithoutVisible runs with hidden characters passed on as they are, as the control of what is promised of them.
func WithoutVisible(run func()) {
	was := visible
	visible = func(s string, _ bool) string { return s }
	defer func() { visible = was }()
	run()
}

// WithoutFence runs with lines that imitate this server's passed on as they are.
func WithoutFence(run func()) {
	was := fence
	fence = func(s string, _ place) string { return s }
	defer func() { fence = was }()
	run()
}

// WithOneMark runs with lines that imitate this server's marked only where no mark stands before them yet.
func WithOneMark(run func()) {
	was := fence
	fence = func(s string, at place) string {
		lines := strings.SplitAfter(s, "\n")
		for i, l := range lines {
			if !strings.HasPrefix(l, ">") {
				lines[i] = was(l, at)
			}
		}
		return strings.Join(lines, "")
	}
	defer func() { fence = was }()
	run()
}
