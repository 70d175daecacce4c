package ask

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/router"
)

const defaultList = 20 // files that a list shows

// answer answers the question by the function that the router chose.
func (q *question) answer(r *Result) error {
	route := q.route
	switch route.Tool {
	case "count_files":
		r.Arguments = map[string]any{"extension": strings.Join(route.Extensions, ",")}
		files := q.matching(route)
		r.count(len(files), what(len(files), route)+q.placeIn(files, route))
		r.list(files)
	case "list_files":
		limit := cmp.Or(route.Limit, defaultList)
		r.Arguments = map[string]any{"extension": strings.Join(route.Extensions, ","), "limit": limit}
		files := q.matching(route)
		slices.SortStableFunc(files, func(a, b *file) int { return b.Modified.Compare(a.Modified) })
		r.count(len(files), what(len(files), route)+q.placeIn(files, route)+", the newest first")
		r.list(files[:min(len(files), limit)])
	case "grep_files":
		r.Arguments = map[string]any{"pattern": route.NameHint}
		files := q.byName(route.NameHint)
		r.count(len(files), plural(files)+" with "+quoted(route.NameHint)+" in the name"+q.placeText())
		r.list(files)
	case "file_metadata":
		r.Arguments = map[string]any{"name_hint": route.NameHint}
		files := q.byName(route.NameHint)
		r.count(len(files), plural(files)+" called "+quoted(route.NameHint)+q.placeText())
		r.describe(files, q.readAs)
	case "directory_tree":
		depth := cmp.Or(route.MaxDepth, 2)
		r.Arguments = map[string]any{"max_depth": depth}
		q.tree(r, depth)
	default:
		r.Tool = "semantic_search"
		r.Arguments = map[string]any{"query": q.readAs, "top_k": q.top}
		return q.search(r)
	}
	return nil
}

// answerOrSearch answers the question by the function that the router chose. If the question names files and no file has
// that name, it searches what files say.
func (q *question) answerOrSearch(r *Result) error {
	if err := q.answer(r); err != nil || r.Count == nil || *r.Count > 0 || q.route.NameHint == "" {
		return err
	}
	none := *r
	q.route.Tool, q.readAs = "semantic_search", q.route.NameHint
	r.Count, r.Answer, r.By = nil, "", byFacts
	err := q.answer(r)
	if q.readAs = r.ReadAs; err != nil {
		return err
	}
	if len(r.Facts) == 0 {
		*r = none
		return nil
	}
	q.note("%s", none.Answer)
	return nil
}

func plural(files []*file) string { return content.Plural(int64(len(files)), "file", "files") }

func quoted(s string) string { return fmt.Sprintf("%q", content.ClipBytes(s, 80)) }

// what names what was counted: "12 .pdf files".
func what(n int, route router.Route) string {
	kind := ""
	if len(route.Extensions) > 0 {
		kind = "." + strings.Join(route.Extensions, "/.") + " "
	}
	if n == 1 {
		return fmt.Sprintf("1 %sfile", kind)
	}
	return fmt.Sprintf("%d %sfiles", n, kind)
}

// placeText names where files were counted, unless it is everything.
func (q *question) placeText() string {
	if q.args.Path == "" || q.args.Path == "." {
		return ""
	}
	return " in " + content.ClipBytes(q.args.Path, 80)
}

// placeIn is [question.placeText] with the folder that the question names, if all files are below it.
func (q *question) placeIn(files []*file, route router.Route) string {
	if route.Folder == "" || slices.ContainsFunc(files, func(f *file) bool { return !isBelow(f, route.Folder) }) {
		return q.placeText()
	}
	return " in " + content.ClipBytes(route.Folder, 80)
}

// every returns all files, in the order of places and paths.
func (q *question) every() (all []*file) {
	for _, c := range q.places {
		all = append(all, c.files...)
	}
	return all
}

// matching returns the files with the extensions that a question names.
func (q *question) matching(route router.Route) []*file {
	files := q.every()
	if exts := route.Extensions; len(exts) > 0 {
		files = slices.DeleteFunc(files, func(f *file) bool { return !slices.Contains(exts, f.ext()) })
	}
	if route.NameHint != "" {
		files = slices.DeleteFunc(files, func(f *file) bool { return !hasName(f, route.NameHint) })
	}
	if len(route.Unread) > 0 {
		q.note("not applied, of the question: %s", strings.Join(route.Unread, ", "))
	}
	if route.Folder == "" {
		return files
	}
	within := slices.DeleteFunc(slices.Clone(q.every()), func(f *file) bool { return !isBelow(f, route.Folder) })
	if len(within) == 0 {
		q.note("no directory is called %s: files of all directories are counted", quoted(route.Folder))
		return files
	}
	return slices.DeleteFunc(files, func(f *file) bool { return !isBelow(f, route.Folder) })
}

// isBelow reports whether a file is below a directory of a name, or of names with a slash between them.
func isBelow(f *file, folder string) bool {
	in := "/" + words.Fold(path.Dir(f.Path)) + "/"
	return strings.Contains(in, "/"+strings.Trim(words.Fold(folder), "/")+"/")
}

// byName returns the files with a text in their name: the exact name alone where there is one.
func (q *question) byName(hint string) []*file {
	files := slices.DeleteFunc(q.every(), func(f *file) bool { return !hasName(f, hint) })
	exact := slices.DeleteFunc(slices.Clone(files), func(f *file) bool {
		return !strings.EqualFold(path.Base(f.Path), hint) && !strings.EqualFold(f.Path, hint)
	})
	if len(exact) > 0 {
		return exact
	}
	return files
}

// hasName reports whether a hint is a glob that the file's name matches, a part of it, or its words in any order.
func hasName(f *file, hint string) bool {
	base := words.Fold(path.Base(f.Path))
	hint = words.Fold(strings.TrimSpace(hint))
	if hint == "" {
		return false
	}
	if tree.IsGlob(hint) {
		g, err := tree.CompileGlob(hint)
		return err == nil && (g.Match(base) || g.Match(words.Fold(f.Path)))
	}
	if strings.Contains(base, hint) || strings.Contains(hint, "/") && strings.Contains(words.Fold(f.Path), hint) {
		return true
	}
	have := words.Terms(path.Base(f.Path))
	wanted := words.Terms(hint)
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t string) bool { return !slices.Contains(have, t) })
}

// tree counts the files of each directory by extension, down to a depth.
func (q *question) tree(r *Result, depth int) {
	type dir struct {
		files int
		exts  map[string]int
	}
	dirs := map[string]*dir{}
	for _, f := range q.every() {
		at := path.Dir(f.Name())
		if parts := strings.Split(at, "/"); len(parts) > depth {
			at = strings.Join(parts[:depth], "/")
		}
		d := dirs[at]
		if d == nil {
			d = &dir{exts: map[string]int{}}
			dirs[at] = d
		}
		d.files++
		kind := "without an extension"
		if ext := f.ext(); ext != "" {
			kind = "." + ext
		}
		d.exts[kind]++
	}
	names := slices.Sorted(maps.Keys(dirs))
	r.count(len(q.every()), plural(q.every())+" in "+
		content.Plural(int64(len(names)), "directory", "directories")+q.placeText())
	for _, name := range names {
		d := dirs[name]
		var exts []string
		for _, e := range content.MostFrequent(d.exts) {
			exts = append(exts, fmt.Sprintf("%d %s", d.exts[e], e))
		}
		if len(exts) > 6 {
			exts = append(exts[:6:6], "…")
		}
		r.Facts = append(r.Facts, facts.Fact{File: name + "/", Text: fmt.Sprintf("%s: %s",
			content.Plural(int64(d.files), "file", "files"), strings.Join(exts, ", "))})
	}
	r.shown = len(r.Facts)
}

// list adds one record for each file: size and time.
func (r *Result) list(files []*file) {
	for _, f := range files {
		r.Files = append(r.Files, f.Name())
		r.Facts = append(r.Facts, facts.Fact{File: f.Name(), Text: fmt.Sprintf("%s, modified %s",
			content.Plural(f.Size, "byte", "bytes"), f.Modified.UTC().Format("2006-01-02 15:04"))})
	}
	r.shown = len(r.Facts)
}

// Words of a folded question for the size and for the birth of a file, in English, German, French and Spanish.
var (
	asksSize = content.Pattern(`\b(size|big|large|heavy|bytes|[kmg]b|gross(e|er)?|taille|poids|pese|gros(se)?|tamano` +
		`|pesa|grande)\b`)
	asksBorn = content.Pattern(`\b(created|creation|born|erstellt|angelegt|erstellungsdatum|cree[es]*|creado|creacion)\b`)
)

// describe adds what is known of each file. The answer begins with what the question asks for, of the first few.
func (r *Result) describe(files []*file, question string) {
	const first = 3
	question = words.Fold(question)
	r.list(files)
	var told []string
	for i, f := range files {
		created := "not known"
		if at, err := f.at.at.Created(f.Path); err == nil {
			created = at.UTC().Format("2006-01-02 15:04")
		} else if !errors.Is(err, errors.ErrUnsupported) {
			created = "not known (" + content.ClipBytes(err.Error(), 60) + ")"
		}
		size, times := r.Facts[i].Text, "created "+created
		size, modified, _ := strings.Cut(size, ", ")
		switch name := content.VisibleLine(f.Name()); {
		case asksSize().MatchString(question):
			told = append(told, name+" has "+size)
		case asksBorn().MatchString(question):
			told = append(told, name+" was created "+created+" UTC")
		default:
			told = append(told, name+" was last "+modified+" UTC")
		}
		r.Facts[i].Text += ", " + times
	}
	if len(told) > 0 && len(told) <= first {
		r.Answer = strings.Join(told, "; ")
	}
}

func (r *Result) count(n int, answer string) {
	count := int64(n)
	r.Count, r.Answer = &count, answer
	r.By = byFiles
}
