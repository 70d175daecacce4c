package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"github.com/tailscale/hujson"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// errComment is returned for a comment of JSON in YAML, which would be part of a key or of a value.
var errComment = errors.New(`a comment is written with # here; put a text that begins with // or /* in quotes`)

// isComment reports whether a token of YAML is a text without quotes that begins like a comment of JSON.
func isComment(t *token.Token) bool {
	return t.Type == token.StringType && (strings.HasPrefix(t.Value, "//") || strings.HasPrefix(t.Value, "/*"))
}

// commentIn returns the first key or value at or below a node that is a comment of JSON; nil if there is none.
func commentIn(n ast.Node) *token.Token {
	var f commentFinder
	ast.Walk(&f, n)
	return f.found
}

type commentFinder struct{ found *token.Token }

// Visit implements [ast.Visitor].
func (f *commentFinder) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.LiteralNode: // a block of text
		return nil
	case *ast.StringNode:
		if t := n.GetToken(); f.found == nil && isComment(t) {
			f.found = t
		}
	}
	return f
}

// invalid returns the error for a text that the parser of YAML refuses: its own, unless there is a comment of JSON.
func invalid(path string, text []byte, err error) error {
	for _, t := range lexer.Tokenize(string(text)) {
		if isComment(t) {
			return commented(path, text, t)
		}
	}
	return fmt.Errorf("%s: %s", path, content.ClipBytes(err.Error(), 500)) // the parser quotes whole lines
}

// commented returns the error for a comment of JSON. A file that is JSON as a whole may have comments: its error is
// that of the parser of JSON.
func commented(path string, text []byte, t *token.Token) error {
	_, err := hujson.Parse(text)
	if err == nil || !isJSON(string(text)) {
		return fmt.Errorf("%s:%d:%d: %w", path, t.Position.Line, t.Position.Column, errComment)
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
