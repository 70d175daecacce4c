// Package marked rewrites the part of a Markdown page that a command makes, between two comments that name the command.
//
// It makes no text itself. It is used by the commands and tests of conformance/ only.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Replace puts text between the marks of a command ("make safety") in a page. A page without the marks is an error.
func Replace(page, command, text string) (string, error) {
	begin, end := "<!-- begin: "+command+" -->\n", "<!-- end: "+command+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the page has lost its marks %q and %q", begin, end)
	}
	return before + begin + text + end + after, nil
}

// Rewrite does as [Replace] with a file.
func Rewrite(path, command, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := Replace(string(old), command, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}
