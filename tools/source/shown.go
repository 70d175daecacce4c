package source

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxScanned is the maximum number of names in a directory that are compared with a shown name.
const maxScanned = 100_000

// resolveShown returns the path that was shown as rel: with hidden characters escaped, quoted in an error, or prefixed
// with ">" because its line looked like a line of this program; or that has another normal form of Unicode. A name that
// exists literally wins.
func resolveShown(root *tree.Root, rel string) (real string, ok bool) {
	at := ""
	for name := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		next, ok := findShown(root, at, name)
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

// exists reports whether a path exists, literally or as it was shown, or the database of a table.
func exists(root *tree.Root, rel string) bool {
	if _, err := root.Lstat(rel); err == nil {
		return true
	}
	_, ok := resolveShown(root, rel)
	if !ok {
		_, _, ok = cutTable(root, rel)
	}
	return ok
}

// unquote removes the quotes around a name and decodes its escapes, first as JSON, then as Go. JSON records show names
// with newlines that way, and errors show unprintable names that way.
func unquote(name string) (plain string, ok bool) {
	if len(name) < 3 || name[0] != '"' || name[len(name)-1] != '"' {
		return "", false
	}
	if err := json.Unmarshal([]byte(name), &plain); err == nil {
		return plain, true
	}
	plain, err := strconv.Unquote(name)
	return plain, err == nil
}

// findShown returns the path of the entry that was shown as name in the directory dir ("" is the root).
func findShown(root *tree.Root, dir, name string) (string, bool) {
	for _, literal := range []string{name, content.Hidden(name), norm.NFC.String(name), norm.NFD.String(name)} {
		at := path.Join(dir, literal)
		if _, err := root.Lstat(at); err == nil {
			return at, true
		}
	}
	if !strings.ContainsAny(name, `\>�`) {
		return "", false
	}
	found, scanned := "", 0
	_, err := root.Walk(context.Background(), tree.Options{Start: dir, Depth: 1, All: true}, func(e tree.Entry) error {
		if scanned++; scanned > maxScanned {
			return tree.SkipAll
		}
		if slices.Contains(shownForms(path.Base(e.Path)), name) {
			found = e.Path
			return tree.SkipAll
		}
		return nil
	})
	return found, err == nil && found != ""
}

// shownForms returns the forms in which a file name may have been shown.
func shownForms(name string) []string {
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	plain, line := content.Visible(name, false), content.VisibleLine(name)
	json, _ := jsontext.AppendQuote(nil, plain) // Visible returns valid UTF-8 and keeps newlines
	return []string{
		plain, line, inner(strconv.Quote(name)), inner(string(json)), ">" + plain, ">" + line,
	}
}
