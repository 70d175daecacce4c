package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// existing returns rel if it exists, else the path that was shown as rel with its hidden characters escaped, else rel.
func existing(root *tree.Root, rel string) string {
	if _, err := root.Lstat(rel); err != nil {
		if real, ok := resolveShown(root, rel); ok {
			return real
		}
	}
	return rel
}

// resolve returns the root of a path, the path below it, and the path as it is shown. The path need not exist. If no
// such name exists, the lookup is retried without the surrounding quotes.
func (s Set) resolve(name string) (root *tree.Root, rel, shown string, err error) {
	if len(s.Roots) == 0 {
		return nil, "", "", s.noRoot()
	}
	root, rel, shown, err = s.inRoot(name)
	if plain, ok := unquote(name); ok && (err != nil || !exists(root, rel)) {
		if r, at, as, e := s.inRoot(plain); e == nil && exists(r, at) {
			name, root, rel, shown, err = plain, r, at, as, nil
		}
	}
	if errors.Is(err, tree.ErrOutside) {
		err = fmt.Errorf("%w; %s", err, s.nameHelp())
	}
	if err != nil {
		return nil, "", "", err
	}
	if strings.HasSuffix(name, "/") && rel != "." {
		rel += "/" // only a directory is meant: opening a file of that name fails
	}
	return root, rel, shown, nil
}

// inRoot splits a name into its root and the path below it. With several roots a name starts with the root's label,
// which may be left out if the path exists in one root only.
func (s Set) inRoot(name string) (root *tree.Root, rel, shown string, err error) {
	if len(s.Roots) == 1 {
		rel, err = s.Roots[0].Rel(name)
		return s.Roots[0], rel, rel, err
	}
	labels := s.Labels()
	if filepath.IsAbs(name) {
		for i, r := range s.Roots {
			if rel, err = r.Rel(name); err == nil {
				return r, rel, path.Join(labels[i], rel), nil
			}
		}
		return nil, "", "", err
	}
	clean := path.Clean(filepath.ToSlash(name))
	if clean == "." {
		return nil, "", "", fmt.Errorf("%s: it names all roots, not a file: find lists them; %s",
			content.ClipBytes(name, 200), s.nameHelp())
	}
	first, rest, _ := strings.Cut(clean, "/")
	at := slices.Index(labels, first)
	if at >= 0 {
		root = s.Roots[at]
		rel, err = root.Rel(cmp.Or(rest, "."))
		if err != nil || exists(root, rel) {
			return root, rel, path.Join(first, rel), err
		}
	}
	owners := s.rootsWith(clean)
	switch {
	case len(owners) == 1:
		return s.Roots[owners[0]], clean, path.Join(labels[owners[0]], clean), nil
	case at >= 0:
		return root, rel, path.Join(first, rel), nil
	}
	hint := ""
	for i, owner := range owners[:min(len(owners), maxMeant)] {
		hint += []string{"; did you mean ", " or "}[min(i, 1)]
		hint += content.ClipBytes(content.VisibleLine(quoteName(path.Join(labels[owner], clean))), 200)
	}
	if hint != "" {
		hint += "?"
	}
	return nil, "", "", fmt.Errorf("%s: %s%s", content.ClipBytes(name, 200), s.nameHelp(), hint)
}

// maxMeant is how many names an error offers for one that several roots have.
const maxMeant = 3

// rootsWith returns the indexes of the roots that have a path.
func (s Set) rootsWith(clean string) (owners []int) {
	for i, r := range s.Roots {
		if rel, err := r.Rel(clean); err == nil && exists(r, rel) {
			owners = append(owners, i)
		}
	}
	return owners
}

// nameHelp says how a path must begin. It does not reveal where the roots are.
func (s Set) nameHelp() string {
	if len(s.Roots) == 1 {
		return `a path is relative to the root, such as "src/a.go"; "." is the root itself`
	}
	return "a path begins with the name of a root: " + content.ClipBytes(strings.Join(s.Labels(), ", "), 200)
}

// RootNames lists the names of the roots, "src, docs", with which a path may have to begin. It returns "" for one root.
func (s Set) RootNames() string {
	if len(s.Roots) < 2 {
		return ""
	}
	return content.ClipBytes(content.VisibleLine(strings.Join(s.Labels(), ", ")), 200)
}

// Labels returns the names of the roots, made unique: "src", "src-2".
func (s Set) Labels() []string {
	out := make([]string, len(s.Roots))
	taken := map[string]bool{}
	for i, r := range s.Roots {
		label := r.Name()
		for n := 2; taken[label]; n++ {
			label = fmt.Sprintf("%s-%d", r.Name(), n)
		}
		taken[label] = true
		out[i] = label
	}
	return out
}

// quoteName returns how a call must name a path: a file called obs:x needs a "./" in front, or it would name an
// observation.
func quoteName(path string) string {
	if observations.IsName(path) {
		return "./" + path
	}
	return path
}

// suggest returns the end of an error on a missing name: up to three similar names of the wanted types, or that find
// lists files. before precedes a path below the root in its name.
func suggest(ctx context.Context, root *tree.Root, rel, before string, types ...tree.Type) string {
	dir, base := path.Split(strings.TrimSuffix(rel, "/"))
	var near []string
	_, err := root.Walk(ctx, tree.Options{Start: dir, Depth: 1}, func(e tree.Entry) error {
		name := path.Base(e.Path)
		if slices.Contains(types, e.Type) && len(base) < 100 && len(name) < 100 &&
			content.EditDistance(strings.ToLower(base), strings.ToLower(name)) <= 2 {
			near = append(near, content.VisibleLine(quoteName(before+e.Path)))
		}
		if len(near) == 3 {
			return tree.SkipAll
		}
		return nil
	})
	if err != nil || len(near) == 0 {
		return "; find lists the existing files"
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// File returns the absolute path that the name of a file below a root means, without opening it; ok is false for other
// names.
func (s Set) File(name string) (path string, ok bool) {
	if place, _, err := s.namedPlace(name); place != nil || err != nil || len(s.Roots) == 0 {
		return "", false
	}
	if plain, quoted := unquote(name); quoted {
		name = plain
	}
	root, rel, _, err := s.inRoot(name)
	if err != nil || root == nil {
		return "", false
	}
	return filepath.Join(root.Dir(), filepath.FromSlash(rel)), true
}
