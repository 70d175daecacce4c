package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// errComment is returned for a comment of JSON in YAML, which would be part of a key or of a value.
var errComment = errors.New(`a comment is written with # here; put a text that begins with // or /* in quotes`)

// commentIn returns the first key or value at or below a node that is a text without quotes and begins like a comment
// of JSON; nil if there is none.
func commentIn(n *yaml.Node) *yaml.Node {
	for _, one := range nodesIn(n) {
		is := func(begin string) bool { return strings.HasPrefix(one.Value, begin) }
		if one.Kind == yaml.ScalarNode && one.Style == 0 && (is("//") || is("/*")) {
			return one
		}
	}
	return nil
}

var (
	quotedText = content.Pattern(`"(?:[^"\\]|\\.)*"|'[^']*'|#.*`)
	beginning  = content.Pattern(`(?:^|[\s,{\[])(//|/\*)`)
)

// invalid returns the error for a text that the parser of YAML refuses: its own, unless there is a comment of JSON.
func invalid(path string, text []byte, err error) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = quotedText().ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
		if at := beginning().FindStringSubmatchIndex(line); at != nil {
			return commented(path, text, &yaml.Node{Line: n, Column: at[2] + 1})
		}
	}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if line, after, ok := strings.Cut(strings.TrimPrefix(message, "line "), ": "); ok && line != message {
		path, message = path+":"+line, after
	}
	return fmt.Errorf("%s: %s", path, content.ClipBytes(message, 500))
}

// commented returns the error for a comment of JSON. A file that is JSON as a whole may have comments: its error is
// that of the parser of JSON.
func commented(path string, text []byte, n *yaml.Node) error {
	_, err := hujson.Parse(text)
	if err == nil || !isJSON(string(text)) {
		return fmt.Errorf("%s:%d:%d: %w", path, n.Line, n.Column, errComment)
	}
	var line, column int
	message := strings.TrimPrefix(err.Error(), "hujson: ")
	if n, _ := fmt.Sscanf(message, "line %d, column %d:", &line, &column); n == 2 {
		_, message, _ = strings.Cut(message, ": ")
		path = fmt.Sprintf("%s:%d:%d", path, line, column)
	}
	return fmt.Errorf("%s: %s", path, content.ClipBytes(message, 500))
}

// isJSON reports whether a text is an object of JSON, after white space and comments.
func isJSON(text string) bool {
	for {
		text = strings.TrimSpace(text)
		end := "\n"
		if strings.HasPrefix(text, "/*") {
			end = "*/"
		} else if !strings.HasPrefix(text, "//") {
			return strings.HasPrefix(text, "{")
		}
		_, text, _ = strings.Cut(text[len("//"):], end)
	}
}
