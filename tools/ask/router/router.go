// Package router reads which of the tools of ask answers a question, from the words of the question alone.
// words.txt has the words, scan.go finds them in a text, router.go has the rules. A question that asks for
// anything but files, or that no rule fits, goes to semantic_search.
package router

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/text/words"
)

// Route is the tool that answers a question, with its arguments.
type Route struct {
	Tool       string   // count_files, directory_tree, list_files, file_metadata, grep_files, semantic_search
	Extensions []string // all extensions that are meant, without a dot, in lower case; nil for any
	NameHint   string   // file name or part of one; set for grep_files and file_metadata, and if it narrows a count
	Query      string   // of semantic_search: the question
	Limit      int      // of list_files: "the 3 newest files"; 0 if none is given
	MaxDepth   int      // of directory_tree
	Folder     string   // of count_files and list_files: the folder that the question names; "" if none
	Unread     []string // of the same: conditions of the question that no tool applies, such as "larger", "than"
}

// question is a text with its tokens. Rules take the tokens that they understand.
type question struct {
	text            string
	tokens          []token
	counted, listed int // index of the file word that "how many", or "list" and "is there", ask for; or -1
	hint, folder    string
}

// Read returns the route of a question. It takes any text, in time linear in its length.
func Read(text string) Route {
	text = strings.TrimSpace(strings.ToValidUTF8(text, " "))
	r, whole := Route{}, question{text: text, tokens: scan(text)}
	whole.counted, whole.listed = whole.after(count), whole.after(list|find)
	contents := whole.asksForContents()
	for i := 0; whole.counted >= 0 && !whole.is(i, count|prep|fileName); i++ { // "Necesito saber cuántos archivos hay"
		whole.tokens[i].taken = whole.is(i, content)
	}
	for _, tool := range strings.Fields("grep_files count_files directory_tree list_files file_metadata") {
		q := whole
		q.tokens = slices.Clone(whole.tokens)
		if r.Tool == "" && !contents && q.fits(tool) && q.isAboutFiles() {
			r = Route{Tool: tool, NameHint: q.hint, Extensions: q.extensions()}
			if tool == "count_files" || tool == "list_files" {
				r.Folder, r.Unread = q.folder, conditions().FindAllString(words.Fold(text), -1)
			}
		}
	}
	switch r.Tool {
	case "":
		if r.Tool, r.Query = "semantic_search", text; whole.counted >= 0 || whole.listed >= 0 {
			r.Extensions = whole.extensions()
		}
	case "directory_tree":
		r.MaxDepth = 2
	case "list_files":
		r.Limit = whole.limit()
	}
	return r
}

func (q *question) any(k kind) bool { return q.both(k, k) }

// both reports whether a token has a kind of a and one of b.
func (q *question) both(a, b kind) bool {
	return slices.ContainsFunc(q.tokens, func(t token) bool { return t.is(a) && t.is(b) })
}

// is reports whether there is a token at i and it has a kind of k.
func (q *question) is(i int, k kind) bool { return i >= 0 && i < len(q.tokens) && q.tokens[i].is(k) }

// asksForContents reports whether a question asks for contents or instructions, whatever else it says.
func (q *question) asksForContents() bool {
	asks := false
	for i, t := range q.tokens {
		if t.word == "how" && q.is(i+1, steps) || t.is(mention) &&
			!(t.is(stop) && !asks) && // "I need a list of files", but not "which files do I need"
			!(t.is(prep) && q.is(i-1, plain) && q.is(q.skip(i+1, 1, stop), folder)) { // "Überblick über die Ordner"
			return true
		}
		asks = asks || t.is(count|list)
	}
	return false
}

// skip returns the first index from i on, in steps, of a token without a kind of k. Backwards it stops at prepositions.
func (q *question) skip(i, step int, k kind) int {
	for q.is(i, k) && (step > 0 || !q.is(i, prep)) {
		i += step
	}
	return i
}

// after returns the index of the file word that a word of kind k asks for, with nothing but modifiers between them.
// It is -1 if there is none. The first word of "file types" and "PDF pages" only modifies the next.
func (q *question) after(k kind) int {
	open := false
	for i, t := range q.tokens {
		if open && t.is(object|ext) && !t.is(shape) && (t.is(plural) || !q.is(i+1, shape|object|ext)) {
			return i
		}
		open = t.is(k) && !t.is(shape) ||
			open && t.is(stop|plain|order|number|ext|object|known) && !t.is(quoted|prep|shape) ||
			open && t.is(meta) && q.is(i+1, object|ext) // "recently changed files"
	}
	return -1
}

// isAboutFiles reports whether no content is left over once the names of folders are taken: "the docs folder",
// "Ordner Rechnungen", and "in src" at the end. Folders on their own may be of any kind: "the company directory".
func (q *question) isAboutFiles() bool {
	last, files := len(q.tokens)-1, q.any(object|ext) || q.any(folder) && q.any(shape)
	for i := 0; i <= last && files; i++ {
		if !q.is(i, folder) {
			continue
		} else if next := q.skip(i+1, 1, of); q.is(next, content) || q.is(next, ext) && !q.is(next, object) {
			q.take(next)
		}
		for before := i - 1; q.is(before, content); before-- {
			q.take(before)
		}
	}
	for q.is(last, stop|plain) {
		last--
	}
	if files && q.is(last, content) && q.is(last-1, prep) && !q.is(last-1, of) {
		q.take(last)
	}
	return !slices.ContainsFunc(q.tokens, func(t token) bool { return t.is(content) && !t.taken })
}

// take takes the name of a folder.
func (q *question) take(i int) {
	q.tokens[i].taken = true
	q.folder = q.text[q.tokens[i].from:q.tokens[i].to]
}

// conditions matches words of folded questions for what is not compared: sizes, times, and what files are not.
var conditions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(larger|largest|bigger|biggest|heaviest|smaller|smallest|greater|less|fewer|over|under|above|` +
		`below|older|oldest|newer than|before|after|since|until|between|modified in|changed in|created in|not|without|` +
		`except|total|sum|average|grosser|grosste[nrs]?|kleiner|kleinste[nrs]?|alteste[nrs]?|alter|uber|unter|vor|nach|seit|` +
		`nicht|ohne|ausser|plus|moins|avant|apres|depuis|sans|mas|menos|antes|despues|desde|sin)\b`)
})

// takeHint takes the run of content and numbers that begins at i, or that ends there if step is -1, as the name.
func (q *question) takeHint(i, step int) bool {
	j := i
	for q.is(j, content|number) && (j == i || !q.is(j-step, quoted|fileName)) {
		q.tokens[j].taken = true
		j += step
	}
	if j != i {
		q.hint = q.text[q.tokens[min(i, j-step)].from:q.tokens[max(i, j-step)].to]
	}
	return j != i
}

// fits reports whether the words that ask for a tool are there, and takes the name of a file. Content may be left over.
func (q *question) fits(tool string) bool {
	files := q.any(object | ext)
	switch tool {
	case "grep_files": // by name, or the place or existence of a named file
		return (!q.any(meta) || q.counted >= 0 || q.listed >= 0) &&
			(q.takeNamed() || (files || q.any(name)) && q.takePartOfName() || !q.any(count) && q.takeFound())
	case "count_files": // a known name is the hint: "how many README files"; a verb may end the question
		_ = q.is(q.counted-1, known) && q.takeHint(q.counted-1, -1)
		n := len(q.tokens)
		return q.counted >= 0 || q.any(count) && (q.skip(0, 1, stop|plain|object|ext) == n ||
			q.is(n-1, count) && q.is(n-1, plain) && q.any(plural|ext))
	case "directory_tree": // the structure of files and folders, and either of them alone
		return q.any(shape) && (q.any(folder) || files && q.listed < 0) || q.any(folder|shape) && !files
	case "list_files": // "list" or "which" before files, and files with nothing else
		first := q.is(q.skip(0, 1, article), plural) // and, without "when", "last modified files":
		sorted := q.any(order) && (q.any(plural) || q.both(order, meta)) && !q.both(meta, stop)
		if q.any(contain) && !q.any(folder) || q.listed < 0 && q.any(meta) && !first && !sorted {
			return false
		}
		return first || q.listed >= 0 && (q.is(q.listed, plural|ext) || q.any(order)) ||
			files && q.any(order) || q.any(plural|ext) && q.skip(0, 1, stop|plain|object|ext|number) == len(q.tokens)
	default: // times and sizes of a named file, or of "the file"; but not "When was the document signed?"
		dated := !q.any(folder) && slices.ContainsFunc(q.tokens, func(t token) bool { return t.is(meta) && !t.is(stop) })
		for i := 0; i < len(q.tokens) && q.hint == "" && (i > 0 || !q.takeNamed()); i++ {
			_ = q.is(i, fileName) && q.takeHint(i, 1) ||
				dated && q.is(i, object) && (q.takeHint(i+1, 1) || q.takeHint(i-1, -1))
		}
		return q.any(meta) && (q.hint != "" || files && !q.any(folder))
	}
}

// takeNamed takes a name that a word such as "called" links with a file: "file called X", "Dateien, die X heißen".
func (q *question) takeNamed() bool {
	file := false
	for i, t := range q.tokens {
		if t.is(called) && file && (q.takeHint(q.skip(i+1, 1, stop), 1) || q.takeHint(i-1, -1)) {
			return true
		}
		file = t.is(object|ext) || file && t.is(stop|plain|prep|content)
	}
	return false
}

// takePartOfName takes the X of "with X in the name", "whose name contains X", "files starting with X", "mit X enden".
func (q *question) takePartOfName() bool {
	for i, t := range q.tokens {
		if t.is(begin) && (q.is(i+1, stop|prep) && q.takeHint(i+2, 1) ||
			i > 1 && q.tokens[i-2].word == "mit" && q.takeHint(i-1, -1)) {
			return true
		} else if !t.is(name) {
			continue
		}
		if before := q.skip(i-1, -1, stop|object); q.is(before, prep) && q.takeHint(before-1, -1) ||
			q.takeHint(q.skip(i+1, 1, stop|contain|begin|prep), 1) {
			return true
		}
	}
	return false
}

// takeFound takes the name of a file that is looked for, unless it stands after a preposition: "is there a README".
func (q *question) takeFound() bool {
	i := slices.IndexFunc(q.tokens, func(t token) bool { return t.is(fileName) })
	return i >= 0 && !q.any(meta|contain) && (q.any(find|folder) || strings.Contains(q.tokens[i].word, "*")) &&
		!q.is(q.skip(i-1, -1, stop), prep) && q.takeHint(i, 1)
}

// extensions returns the extensions that the question names. Of two words next to each other the narrower one counts:
// "Excel spreadsheets".
func (q *question) extensions() (all []string) {
	var before []string
	for _, t := range q.tokens {
		wider := len(before) > 0 && slices.Contains(t.extensions, before[0])
		for _, e := range t.extensions {
			if !wider && (t.is(ext) && !t.taken || t.is(fileName)) && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
		before = t.extensions
	}
	return all
}

// limit returns the number next to a file word or a word of order, or 0. Numbers over 1000 are years.
func (q *question) limit() int {
	for i, t := range q.tokens {
		if t.is(number) && t.value <= 1000 && (q.is(i+1, order|object|ext) || q.is(i-1, order)) {
			return t.value
		}
	}
	return 0
}

// ContentWords returns the words of a question that carry its content, as they are written and in their order. It
// leaves out function words and, if there is other content, words for files and for what to do: "Which file mentions
// cats?"
func ContentWords(text string) (words []string) {
	text = strings.ToValidUTF8(text, " ")
	q := question{tokens: scan(text)}
	contents := q.any(content) && Read(text).Tool == "semantic_search"
	first, end := contents, 0 // no content precedes; where the last word ends
	for i, t := range q.tokens {
		told := first && !t.is(content) && (t.is(task) || t.is(list|find) && q.is(i+1, stop))
		first = first && t.is(stop|prep|lead|object|list|find|task)
		switch drop := told || t.is(stop|prep|back|lead) || contents && t.kinds&^plural == object; {
		case drop || t.from < end: // "well-known" is two tokens and one word
		case end > 0 && slices.Contains([]string{",", "'", "’"}, text[end:t.from]): // 450,000
			words[len(words)-1] += text[end:t.to]
			end = t.to
		default:
			words = append(words, text[t.from:t.to])
			end = t.to
		}
	}
	return words
}

// PlainWords returns the words of a question that say little about contents, such as "came", "total" and "first".
func PlainWords(text string) (words []string) {
	for _, t := range scan(strings.ToValidUTF8(text, " ")) {
		if t.is(plain) && !t.is(content) {
			words = append(words, t.word)
		}
	}
	return words
}

// IsFollowUp reports whether a question means the one before it: it has no content, adds to something, or has a
// pronoun for what was mentioned before.
func IsFollowUp(text string) bool {
	text = strings.ToValidUTF8(text, " ")
	tokens := scan(text)
	words, pronoun, asks := 0, false, false // words counts those of content and for files
	for i, t := range tokens {
		asks = asks || t.is(list|find|count|meta)
		formal := t.word == "sie" && t.from > 0 && text[t.from] == 'S' // the German "you"
		if pronoun = pronoun || words < 3 && !formal && refersBack(tokens, i); t.is(object|folder|shape|ext) ||
			!t.is(stop|prep|plain|order|number|lead|list|find|count|back) {
			words++
		}
	}
	if len(tokens) == 0 || words == 0 || pronoun {
		return len(tokens) > 0
	}
	return words <= 3 && tokens[0].is(lead) || words <= 2 && tokens[0].is(prep) && !asks
}

// refersBack reports whether a word means what was mentioned before. Not so the numeral in "one invoice", and "that"
// where it begins a clause: "the invoice that Quillon sent", "says that it ends"; but "Did the supplier send that
// invoice?".
func refersBack(tokens []token, at int) bool {
	q := question{tokens: tokens}
	switch word := tokens[at].word; {
	case !q.is(at, back) || word == "one" && q.is(at+1, content|object) || word == "that" && q.is(at-1, mention):
		return false
	case word != "that" || at == len(tokens)-1:
		return true
	}
	const most = 3 // words of a name for a thing, with its adjectives
	begin := at
	for at-begin < most && q.is(begin-1, content|object|plain|order) && !q.is(begin-1, stop) {
		begin--
	}
	switch long := at-begin > 1; {
	case begin == at || begin > 0 && !q.is(begin-1, article|list|stop):
		return true
	case long: // the verb of a question may be the last of them
		return slices.Contains([]string{"did", "does", "do", "has", "have", "had", "will", "would", "can"}, tokens[0].word)
	default:
		return begin > 0 && !q.is(begin-1, article|list) && !q.is(begin, object)
	}
}
