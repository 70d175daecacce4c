package linesearch

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
)

// explainParseError returns the message for a parse error: the cause, what to do about it if that is known, and the
// pattern with a caret under the error.
func explainParseError(expr string, flags syntax.Flags, err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("pattern: %w", err)
	}
	at := errorOffset(expr, flags, e)
	what := e.Code.String()
	switch e.Code {
	case syntax.ErrLarge, syntax.ErrInvalidRepeatSize:
		var from, to int
		if n, _ := fmt.Sscanf(e.Expr, "{%d,%d}", &from, &to); n == 2 && from > to {
			what += fmt.Sprintf(": %d is more than %d", from, to)
		} else {
			what += ": at most 1000 repeats, nested ones multiplied"
		}
	case syntax.ErrNestingDepth:
		return errors.New("pattern: it nests too deeply: at most 1000 levels")
	case syntax.ErrInvalidUTF8:
		return errors.New("pattern: it is not valid UTF-8")
	}
	if w := unsupported(expr[at:]); w != "" {
		what = w
	}
	line, caret := excerpt(expr, at)
	return fmt.Errorf("pattern: %s\n  %s\n  %s^", what, line, strings.Repeat(" ", caret))
}

// unsupported returns a message if rest starts with a Perl feature that RE2 lacks, else "".
func unsupported(rest string) string {
	for _, c := range []struct{ prefix, says string }{
		{"(?<=", "RE2 has no look-behind; match what stands before it too"},
		{"(?<!", "RE2 has no negative look-behind; match more, and filter the result"},
		{"(?=", "RE2 has no look-ahead; match what follows too"},
		{"(?!", "RE2 has no negative look-ahead; match more, and filter the result"},
		{"(?>", "RE2 has no atomic groups; it never backtracks, so a plain group does"},
		{"(?P=", "RE2 has no back-references"},
		{`\k`, "RE2 has no back-references"},
		{`\G`, `RE2 has no \G`},
		{`\Z`, `RE2 has no \Z; use \z`},
		{`\h`, `RE2 has no \h; use [ \t]`},
		{`\R`, `RE2 has no \R; use \r?\n`},
		{"++", "RE2 has no possessive repeats; it never backtracks, so a plain one does"},
		{"*+", "RE2 has no possessive repeats; it never backtracks, so a plain one does"},
		{"?+", "RE2 has no possessive repeats; it never backtracks, so a plain one does"},
	} {
		if strings.HasPrefix(rest, c.prefix) {
			return c.says
		}
	}
	if len(rest) > 1 && rest[0] == '\\' && '1' <= rest[1] && rest[1] <= '9' {
		return "RE2 has no back-references"
	}
	return ""
}

// errorOffset returns the offset of the error in the pattern, in bytes. The parser reports only the text of the invalid
// part, which may occur several times. errorOffset returns the first occurrence for which the pattern up to the next
// occurrence fails with the same error.
func errorOffset(expr string, flags syntax.Flags, e *syntax.Error) int {
	switch e.Code {
	case syntax.ErrMissingParen:
		if e.Expr == expr {
			open, _ := unbalancedParens(expr)
			return open
		}
	case syntax.ErrUnexpectedParen:
		_, unexpected := unbalancedParens(expr)
		return unexpected
	case syntax.ErrTrailingBackslash:
		return max(len(expr)-1, 0)
	}
	if e.Expr == "" {
		return 0
	}
	at := max(strings.Index(expr, e.Expr), 0)
	for range 50 {
		next := strings.Index(expr[at+1:], e.Expr)
		if next < 0 {
			break
		}
		next += at + 1
		_, err := syntax.Parse(expr[:next], flags)
		var now *syntax.Error
		if errors.As(err, &now) && now.Code == e.Code && now.Expr == e.Expr {
			break
		}
		at = next
	}
	return at
}

// unbalancedParens returns the offset of the last "(" without a ")" and that of the first ")" without a "("; 0 if there
// is none.
func unbalancedParens(expr string) (open, unexpected int) {
	var stack []int
	unexpected = -1
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '\\':
			if strings.HasPrefix(expr[i:], `\Q`) {
				end := strings.Index(expr[i:], `\E`)
				if end < 0 {
					end = len(expr) - i
				}
				i += end
			}
			i++
		case '[':
			i = classEnd(expr, i)
		case '(':
			stack = append(stack, i)
		case ')':
			if len(stack) == 0 && unexpected < 0 {
				unexpected = i
			} else if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
		}
	}
	if len(stack) > 0 {
		open = stack[len(stack)-1]
	}
	return open, max(unexpected, 0)
}

// classEnd returns the index of the "]" of the bracket expression that starts at i; len(expr) if there is none.
func classEnd(expr string, i int) int {
	j := i + 1
	if j < len(expr) && expr[j] == '^' {
		j++
	}
	for first := true; j < len(expr); first = false {
		switch {
		case expr[j] == '\\':
			j += 2
		case expr[j] == ']' && !first:
			return j
		case strings.HasPrefix(expr[j:], "[:"):
			if end := strings.Index(expr[j:], ":]"); end > 0 {
				j += end + 2
				continue
			}
			j++
		default:
			j++
		}
	}
	return len(expr)
}

// excerpt returns the pattern around offset at on one line of at most 46 characters, and the number of characters
// before that offset.
func excerpt(expr string, at int) (line string, caret int) {
	const left, right = 26, 18 // and two ellipses: 46 characters
	visible := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '·'
			}
			return r
		}, s))
	}
	head, tail := visible(expr[:at]), visible(expr[at:])
	if n := len(head) - left; n > 0 {
		head = append([]rune("…"), head[n:]...)
	}
	if len(tail) > right {
		tail = append(tail[:right], '…')
	}
	return string(head) + string(tail), len(head)
}
