package viewer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	pageNodes  = 50
	nodeWindow = 4 << 10 // bytes of a value that are read to show it
	nodeText   = 200     // characters of a string, or of the beginning of a longer container
	inlineMost = 40      // values that are shown inside their container
)

// treeView shows the children of the value that at names, a JSON Pointer: of the whole text without it.
func treeView(q *request, o *opened) ([]any, error) {
	pointer := q.query.Get("at")
	ndjson := o.kind == content.NDJSON && pointer == ""
	l := q.listOf(o, "children of "+pointer, func(o *opened) (walk, error) {
		if ndjson {
			r, err := o.from(0)
			return spans(r, kinds.NDJSON.Records), err
		}
		return q.childrenOf(o, pointer)
	})
	from := q.number("top", max(q.number("record", 5)-5, 0))
	known, done, wrong := l.wait(q.ctx, from+pageNodes+1)
	_, first := l.near(0)
	object, err := o.isObject(first)
	if err != nil {
		return nil, err
	}
	object = object && !ndjson
	starts, err := l.page(q.ctx, from, pageNodes, func(start int64) (walk, int64) {
		r, err := o.from(start)
		if err != nil {
			return func(context.Context, func(int64, int64) bool) error { return err }, 0
		}
		if ndjson {
			return spans(r, kinds.NDJSON.Records), start
		}
		open := "["
		if object {
			open = "{"
		}
		r = io.MultiReader(strings.NewReader(open), r)
		return func(ctx context.Context, visit func(int64, int64) bool) error { return content.Starts(ctx, r, visit) }, start - 1
	})
	if err != nil {
		return nil, err
	}
	if done && known == 0 && wrong == nil && pointer != "" {
		return q.scalar(o, pointer)
	}
	t := &tree{Empty: "It has no children."}
	room := pageBytes
	for i, start := range starts {
		window, err := o.bytesAt(start, nodeWindow)
		if err != nil {
			return nil, err
		}
		if room -= min(len(window), nodeWindow); room < 0 && i > 0 {
			starts = starts[:i]
			break
		}
		n := q.node(o, window, pointer, from+int64(i), object)
		if n.More != "" {
			q.lists.seen.Put(q.who.Owner+o.key(n.Pointer), start+n.at, 1)
		}
		t.Nodes = append(t.Nodes, n)
	}
	blocks := []any{q.pointerLinks(pointer)}
	var syntax *content.SyntaxError
	switch {
	case errors.As(wrong, &syntax):
		blocks = append(blocks, note{"This JSON is damaged: " + wrong.Error() + ". What follows is not shown.", "bad"})
	case wrong != nil:
		blocks = append(blocks, note{wrong.Error(), "bad"})
	}
	t.Pager = q.partPager(from, int64(len(starts)), known, done, "children")
	return append(blocks, t), nil
}

// childrenOf returns a walk of the children of the value at a pointer.
func (q *request) childrenOf(o *opened, pointer string) (walk, error) {
	r, err := o.from(0)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, visit func(int64, int64) bool) error {
		base, seen := q.lists.seen.Get(q.who.Owner + o.key(pointer))
		if pointer != "" {
			if !seen {
				at, err := content.Point(ctx, r, o.kind, pointer)
				if err != nil {
					return err
				}
				base = at.Start
			}
			if r, err = o.from(base); err != nil {
				return err
			}
		}
		return content.Starts(ctx, r, func(i, start int64) bool { return visit(i, base+start) })
	}, nil
}

// isObject reports whether the first child of a container, which begins at an offset, is a member.
func (o *opened) isObject(first int64) (bool, error) {
	from := max(first-64, 0)
	b, err := o.bytesAt(from, first-from)
	return bytes.HasSuffix(bytes.TrimSpace(b), []byte("{")), err
}

// node returns the value that a window begins with: whole if it is small, else its beginning.
func (q *request) node(o *opened, window []byte, parent string, index int64, object bool) node {
	open := "["
	if object {
		open = "{"
	}
	d := json.NewDecoder(io.MultiReader(strings.NewReader(open), bytes.NewReader(window)))
	d.UseNumber()
	_, _ = d.Token()
	key, rest := itoa(index), window
	if object {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return node{Key: q.clip(window, 80), Class: "dim", Value: "a key of over " + size(nodeWindow)}
		}
		key = name
		rest = bytes.TrimLeft(window[d.InputOffset()-1:], " \t\r\n:")
	}
	pointer := parent + "/" + content.EscapeToken(key)
	left := inlineMost
	n, err := q.readNode(o, d, key, pointer, &left)
	if err != nil { // it is longer than the window, has more inside than is shown, or is broken
		n = node{
			Key: key, Pointer: pointer, Value: q.clip(rest, nodeText), Class: "dim", To: q.atPointer(pointer),
			Filter: filterOf(pointer, o.kind),
		}
		if len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
			n.More, n.at = "open it", int64(len(window)-len(rest))
		}
	}
	return n
}

var errMany = errors.New("more than is shown inside its container")

// readNode reads the next value; left is how many more may be shown.
func (q *request) readNode(o *opened, d *json.Decoder, key, pointer string, left *int) (n node, err error) {
	if *left--; *left < 0 {
		return n, errMany
	}
	n = node{Key: key, Pointer: pointer, Filter: filterOf(pointer, o.kind)}
	t, err := d.Token()
	if err != nil {
		return n, err
	}
	switch t := t.(type) {
	case json.Delim:
		n.To, n.Class = q.atPointer(pointer), "dim"
		for i := 0; d.More(); i++ {
			name := strconv.Itoa(i)
			if t == '{' {
				k, err := d.Token()
				if err != nil {
					return n, err
				}
				name, _ = k.(string)
			}
			child, err := q.readNode(o, d, name, pointer+"/"+content.EscapeToken(name), left)
			if err != nil {
				return n, err
			}
			n.Nodes = append(n.Nodes, child)
		}
		n.Value = map[json.Delim]string{'{': "{" + strconv.Itoa(len(n.Nodes)) + "}", '[': "[" + strconv.Itoa(len(n.Nodes)) + "]"}[t]
		_, err = d.Token()
	case string:
		quoted, _ := content.PlainJSON(t)
		n.Value, n.Class = string(quoted), "string"
		if len(quoted) > nodeText {
			n.Value, n.To = q.clip(quoted, nodeText), q.atPointer(pointer)
		}
	case json.Number:
		n.Value, n.Class = t.String(), "number"
	case bool:
		n.Value, n.Class = strconv.FormatBool(t), "literal"
	default:
		n.Value, n.Class = "null", "literal"
	}
	return n, err
}

func (q *request) atPointer(pointer string) href {
	return q.with("at", pointer, "top", "", "record", "", "from", "")
}

// scalar shows a value without children, as JSON writes it.
func (q *request) scalar(o *opened, pointer string) ([]any, error) {
	r, err := o.from(0)
	if err != nil {
		return nil, err
	}
	at, err := content.Point(q.ctx, r, o.kind, pointer)
	if err != nil {
		return nil, problemf(http.StatusNotFound, "%s", err)
	}
	blocks, err := q.window(o, at, "value at "+cmp.Or(pointer, "the top"))
	return append([]any{q.pointerLinks(pointer)}, blocks...), err
}

// pointerLinks leads to each container around a value.
func (q *request) pointerLinks(pointer string) any {
	all := links{{Text: "top", To: q.atPointer(""), On: pointer == ""}}
	for i := 1; i < len(pointer); i++ {
		if end := i + strings.IndexByte(pointer[i:]+"/", '/'); i == 1 || pointer[i-1] == '/' {
			all = append(all, link{
				Text: q.clip([]byte(strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[i:end])), 60), To: q.atPointer(pointer[:end]),
				On: end == len(pointer),
			})
		}
	}
	return all
}

var plainKey = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// filterOf returns the jq filter of a pointer. In NDJSON its first token is the record, and the filter is for that.
func filterOf(pointer string, kind content.Kind) string {
	tokens := strings.Split(pointer, "/")[1:]
	if kind == content.NDJSON {
		tokens = tokens[min(len(tokens), 1):]
	}
	out := ""
	for _, t := range tokens {
		t = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
		_, err := strconv.ParseUint(t, 10, 32)
		switch {
		case err == nil:
			out += "[" + t + "]"
		case plainKey.MatchString(t):
			out += "." + t
		default:
			quoted, _ := content.PlainJSON(t)
			out += "[" + string(quoted) + "]"
		}
	}
	if !strings.HasPrefix(out, ".") {
		out = "." + out
	}
	return out
}

// partPager leads through pages of parts, of which some are known.
func (q *request) partPager(from, shown, known int64, done bool, parts string) *pager {
	at := func(n int64) href { return q.with("top", itoa(n), "record", "", "from", "") }
	p := &pager{Text: parts + " " + grouped(from) + "–" + grouped(from+max(shown-1, 0)) + " of " + grouped(known), Jump: q.jump("record", "Record", "top", "from")}
	if shown == 0 {
		p.Text = "no " + parts + " of " + grouped(known)
	}
	if q.wait = q.wait || !done; !done {
		p.Text += " found so far; the rest is being read"
	}
	if from > 0 {
		p.First, p.Prev = at(0), at(max(from-pageNodes, 0))
	}
	if from+shown < known {
		p.Next = at(from + shown)
		p.Last = at(max(known-pageNodes, 0))
	}
	return p
}
