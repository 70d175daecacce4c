package viewer

import (
	"html/template"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// page is what a template shows. Every string in it but an [href] and a [markup] is taken for one from outside: render
// masks it, and makes its hidden characters visible.
type page struct {
	Title  string
	Crumbs []link // to the pages above this one
	Notes  []string
	Blocks []any // of the types below
	Wait   bool  // something is still being read: the page is loaded again after a second
	Live   bool  // it changes with new calls
}

// href is an address of this server, or below an element of the page. Only [request.url] makes one with parts from
// outside.
type href string

type (
	// link is a text that leads somewhere.
	link struct {
		Text, Title string
		To          href
		Download    bool
		On          bool // it is the page that is shown
	}
	// links are shown in a row.
	links []link

	// cell is one value of a table or of facts. A zero Time is none.
	cell struct {
		Text, Title string
		To          href
		Num         bool
		Class       string // one of the style sheet: bad, warn, dim, code
		Time        time.Time
		Share       float64 // of a bar, 0 to 1
		Act         *action
	}
	fact struct {
		Name string
		Cell cell
	}
	facts []fact

	// table is rows below a header. Its key names the element.
	table struct {
		Caption string
		Heads   []cell
		Rows    [][]cell
		Empty   string // what to read where there is no row, and what to do
		Pager   *pager
		Key     string
	}
	// pager leads through what is shown by pages; an empty address is not shown.
	pager struct {
		Text                    string
		First, Prev, Next, Last href
		Jump                    *form
	}

	// line is a line of a text.
	line struct {
		N     int64 // from 1; 0: none
		To    href
		Class string
		Text  string
		Found bool // it is what the address names
	}
	lines struct {
		Lines []line
		Empty string
		Pager *pager
	}

	// node is a value of a JSON text.
	node struct {
		Key, Pointer, Value, Class string
		To                         href // to the page of the value, if it has children that are not shown here
		Filter                     string
		Nodes                      []node
		More                       string // how much of it is left out
		at                         int64  // where the value begins in what was read of it
	}
	tree struct {
		Nodes []node
		Empty string
		Pager *pager
	}

	field struct {
		Name, Label, Value, Hint string
		Options                  []string
		Hidden, Check, Secret    bool
		Size                     int
	}
	form struct {
		To     href
		Post   bool
		Fields []field
		Submit string
		Hint   string
	}
	// action is a button that changes something: a POST with the token of the page.
	action struct {
		To     href
		Fields []field
		Submit string
		Danger bool
	}

	// section is a part of a page with a heading; closed shows its heading until it is opened.
	section struct {
		Title  string
		Key    string // of the element
		Blocks []any
		Closed bool
	}
	// columns are shown beside each other where there is room.
	columns []section

	note struct{ Text, Class string }
	pre  string
	// markup is HTML that this package made.
	markup template.HTML
	image  struct {
		Alt string
		To  href
	}
)

// words returns a cell of text.
func words(s string) cell { return cell{Text: s} }

// code returns a cell of text that is written as it stands.
func code(s string) cell { return cell{Text: s, Class: "code"} }

// heads returns the heads of columns; # begins that of a column of numbers.
func heads(names ...string) (all []cell) {
	for _, name := range names {
		text := strings.TrimPrefix(name, "#")
		all = append(all, cell{Text: text, Num: text != name})
	}
	return all
}

// to adds an address to a cell.
func (c cell) to(at href) cell {
	c.To = at
	return c
}

// number returns a cell of a count.
func number(n int64) cell { return cell{Text: grouped(n), Num: true} }

// bytesCell returns a cell of a size, with the exact one as its title.
func bytesCell(n int64) cell { return cell{Text: size(n), Title: grouped(n) + " bytes", Num: true} }

func when(t time.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{Time: t}
}

// duration returns a cell of milliseconds.
func duration(ms float64) cell {
	text := strconv.FormatFloat(ms, 'f', map[bool]int{true: 1}[ms < 10], 64) + " ms"
	if ms >= 60_000 {
		text = time.Duration(ms * 1e6).Round(time.Second).String()
	} else if ms >= 1000 {
		text = strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
	}
	return cell{Text: text, Num: true}
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := len(s) - len(strings.TrimLeft(s, "-"))
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes with its unit, in powers of 1024.
func size(n int64) string { return backend.FormatBytes(n) }

// shown replaces every string that can be reached from v, which is addressable, by what show makes of it.
func shown(v reflect.Value, show func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[href]() && v.Type() != reflect.TypeFor[markup]() {
			v.SetString(show(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			shown(v.Elem(), show)
		}
	case reflect.Interface:
		if !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			shown(inner, show)
			v.Set(inner)
		}
	case reflect.Slice:
		for i := range v.Len() {
			shown(v.Index(i), show)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			shown(v.Field(i), show)
		}
	}
}

// visible makes hidden characters visible, but keeps line ends and tabs: those of pre and of lines are wanted.
func visible(s string) string { return content.Visible(s, false) }

// masked masks the secrets of a whole text, unless the person sees them.
func (q *request) masked(s string) string {
	if !q.plain {
		s, _ = q.o.Mask.String(s)
	}
	return s
}

// name returns a cell of a name, without the middle of over n characters.
func (q *request) name(s string, n int) cell { return words(q.short(s, n)) }

// text returns a cell of the beginning of a text, in one line.
func (q *request) text(s string, n int) cell { return words(q.clip([]byte(s), n)) }

// listing is a page with a row for each of a list.
func listing[T any](q *request, title, empty string, heads []cell, all []T, row func(T) []cell) *page {
	t := &table{Heads: heads, Key: strings.ToLower(title), Empty: empty}
	listed(q, t, all, row)
	return &page{Title: title, Blocks: []any{t}}
}

// pick returns the page of the one of a list that the path names.
func pick[T any](q *request, all []T, idOf func(T) string, show func(T) (*page, error)) (*page, error) {
	at := slices.IndexFunc(all, func(one T) bool { return idOf(one) == q.path[1] })
	if at < 0 {
		return nil, problemf(http.StatusNotFound, "There is no %s:%s, or it is too old.",
			q.path[0], content.ClipBytes(q.path[1], 40))
	}
	return show(all[at])
}

// short returns a name in which the middle of over n characters is left out; it is masked before.
func (q *request) short(s string, n int) string { return content.Clip(q.masked(s), n) }
