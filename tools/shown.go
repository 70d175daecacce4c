package tools

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// maxScanned is how many names of a directory are compared with one that was shown.
const maxScanned = 100_000

// asShown is the path that was shown as rel: with hidden characters made visible, quoted in an error, or marked
// because its line looked like one of ours. A name that is there as it stands means itself.
func asShown(root *tree.Root, rel string) (real string, ok bool) {
	at := ""
	for name := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		next, ok := child(root, at, name)
		if !ok {
			return "", false
		}
		at = next
	}
	if strings.HasSuffix(rel, "/") {
		at += "/"
	}
	return at, true
}

// there says that a name, as it stands or as it was shown, is that of something.
func there(root *tree.Root, rel string) bool {
	if _, err := root.Lstat(rel); err == nil {
		return true
	}
	_, ok := asShown(root, rel)
	return ok
}

// unquoted is a name in quotes without them, and what is escaped in it as it is: so tables of records, which are JSON, show one that
// takes more than a line, and errors one that cannot be printed.
func unquoted(name string) (plain string, ok bool) {
	if len(name) < 3 || name[0] != '"' || name[len(name)-1] != '"' {
		return "", false
	}
	if err := json.Unmarshal([]byte(name), &plain); err == nil {
		return plain, true
	}
	plain, err := strconv.Unquote(name)
	return plain, err == nil
}

// child is the path of what was shown as name in the directory dir, "" for the root.
func child(root *tree.Root, dir, name string) (string, bool) {
	for _, literal := range []string{name, content.Hidden(name)} {
		at := path.Join(dir, literal)
		if _, err := root.Lstat(at); err == nil {
			return at, true
		}
	}
	if !strings.ContainsAny(name, `\>�`) {
		return "", false
	}
	found, seen := "", 0
	_, err := root.Walk(context.Background(), tree.Options{Start: dir, Depth: 1, All: true}, func(e tree.Entry) error {
		if seen++; seen > maxScanned {
			return tree.SkipAll
		}
		if slices.Contains(showings(path.Base(e.Path)), name) {
			found = e.Path
			return tree.SkipAll
		}
		return nil
	})
	return found, err == nil && found != ""
}

// showings are the ways in which a file's name may have been shown.
func showings(name string) []string {
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	json, _ := jsontext.AppendQuote(nil, content.Visible(name, false)) // valid UTF-8, and JSON keeps the newlines of it
	plain := content.Visible(name, false)
	return []string{plain, VisibleName(name), inner(strconv.Quote(name)), inner(string(json)), ">" + plain, ">" + VisibleName(name)}
}

// VisibleName is a name as it stands in a line of text, and is accepted back so.
func VisibleName(name string) string { return content.VisibleLine(name) }
