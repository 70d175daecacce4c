package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	maxPointer = 4 << 10 // bytes
	maxAbove   = 8       // containers around a value that a page leads to
)

// treeView shows the children of the value that at names, a JSON Pointer: of the whole text without it.
func treeView(q *request, o *opened) ([]any, error) {
	pointer, value := q.query.Get("at"), &content.Span{}
	if len(pointer) > maxPointer {
		return nil, problemf(http.StatusBadRequest, "The pointer has %d bytes, at most %d.", len(pointer), maxPointer)
	}
	if err := o.toValues(q.ctx); err != nil {
		return nil, err
	}
	blocks, noted := []any{q.pointerLinks(pointer)}, o.Notes()
	if o.IsConverted() {
		blocks = append(blocks, note{"It is shown as JSON, as jq reads it.", ""})
	}
	ofKind := func(object bool) parts {
		return func(o *opened, start int64) walk {
			return func(ctx context.Context, visit func(int64, int64) bool) error {
				err := o.toValues(ctx)
				if err == nil && o.kind == content.NDJSON && pointer == "" {
					err = recordsBy(kinds.NDJSON.Records)(o, start)(ctx, visit)
				} else if err == nil {
					err = q.children(o, pointer, value, object, start)(ctx, visit)
				}
				if err == nil && start == 0 && pointer == "" {
					err = o.noticed(noted)
				}
				return err
			}
		}
	}
	l := q.listOf(o, "children of "+pointer, value, ofKind(false))
	from := q.number("top", max(q.number("record", 5)-5, 0))
	known, done, wrong := l.wait(q.ctx, from+pageNodes+1)
	value = l.beside.(*content.Span) //nolint:forcetypeassert // it is of this list
	if errors.Is(wrong, content.ErrNoValue) {
		return nil, problemf(http.StatusNotFound, "%s", wrong)
	}
	if done && known == 0 && wrong == nil && pointer == "" && o.kind == content.JSON { // perhaps the text is one scalar
		b, err := o.bytesAt(0, readLine)
		if b = bytes.TrimSpace(b); err == nil && len(b) > 0 && b[0] != '{' && b[0] != '[' {
			*value = content.Span{End: o.Size}
			if !o.Plain() {
				if _, err := o.from(math.MaxInt64); err != nil { // to its end
					return nil, err
				}
				value.End = o.at
			}
		}
	}
	if done && known == 0 && wrong == nil && value.End > 0 {
		shown, err := q.window(o, *value, "value at "+pointer)
		return append(blocks, shown...), err
	}
	_, first := l.near(0)
	before, err := o.bytesAt(max(first-readLine, 0), min(first, readLine))
	if err != nil {
		return nil, err
	}
	object := known > 0 && bytes.HasSuffix(bytes.TrimSpace(before), []byte("{"))
	starts, err := l.page(q.ctx, o, ofKind(object), from, pageNodes+1)
	t, room, seen := &tree{Empty: "It has no children."}, maxMarkup, map[string]bool{}
	for i := 0; err == nil && i < min(len(starts), pageNodes) && room > 0; i++ {
		length := int64(nodeWindow)
		if i+1 < len(starts) {
			length = min(length, starts[i+1]-starts[i])
		}
		var window []byte
		if window, err = o.bytesAt(starts[i], length); o.IsConverted() && len(window) > 0 {
			err = nil // the list has it: what follows is damaged
		}
		if err == nil {
			n := q.node(o, window, pointer, from+int64(i), object)
			if n.More != "" {
				q.lists.seen.Put(q.seenAt(o, n.Pointer), starts[i]+n.at, 1)
			}
			n.repeated(seen)
			room -= n.cost()
			t.Nodes = append(t.Nodes, n)
		}
	}
	t.Pager = q.partPager(from, int64(len(t.Nodes)), known, done, "children")
	var syntax *content.SyntaxError
	if said := "This JSON is damaged: %s. What follows is not shown."; errors.As(wrong, &syntax) {
		if syntax.Lines > 0 {
			said = content.Plural(syntax.Lines, "line is", "lines are") + " no JSON and not shown, the first: %s."
		}
		wrong = fmt.Errorf(said, wrong)
	}
	return append(append(blocks, remarks(wrong)...), t), err
}

// seenAt is the key of the offset of a container that a page has shown.
func (q *request) seenAt(o *opened, pointer string) string {
	return strings.Join([]string{q.who.Owner, o.Name, o.version(), pointer}, "\x00")
}

// children returns a walk of the children of the value at a pointer, from one of them on if start is not 0. If it has
// to look for the value, it sets its span.
func (q *request) children(o *opened, pointer string, value *content.Span, object bool, start int64) walk {
	return func(ctx context.Context, visit func(int64, int64) bool) error {
		base, known := start, start > 0 || pointer == ""
		if !known {
			base, known = q.lists.seen.Get(q.seenAt(o, pointer))
		}
		r, err := o.from(base)
		if err == nil && !known {
			if *value, err = content.Point(ctx, r, o.kind, pointer); err == nil {
				base = value.Start
				r, err = o.from(base)
			}
		}
		if err != nil {
			return err
		}
		if start > 0 {
			r, base = io.MultiReader(strings.NewReader(opening(object)), r), base-1
		}
		return content.Starts(ctx, r, func(i, start int64) bool { return visit(i, base+start) })
	}
}

func opening(object bool) string {
	if object {
		return "{"
	}
	return "["
}

// node returns the value that a window begins with: whole if it is small, else its beginning.
func (q *request) node(o *opened, window []byte, parent string, index int64, object bool) node {
	d := json.NewDecoder(io.MultiReader(strings.NewReader(opening(object)), bytes.NewReader(window)))
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
	filter := step(filterOf(parent, o.kind), key, object)
	if o.kind == content.NDJSON && parent == "" {
		filter = "." // of the record
	}
	n, err := q.readNode(d, key, pointer, filter, &left)
	if err != nil || len(window) == nodeWindow && d.InputOffset() > nodeWindow {
		// It is longer than the window, has more inside than is shown, or is broken.
		n = node{
			Key: key, Pointer: pointer, Value: q.cell(key, rest, nodeText), Class: "dim", To: q.atPointer(pointer),
			Filter: copied(filter),
		}
		if len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
			n.More, n.at = "open it", int64(len(window)-len(rest))
		}
	}
	return n
}

var errMany = errors.New("more than is shown inside its container")

// readNode reads the next value; left is how many more may be shown.
func (q *request) readNode(d *json.Decoder, key, pointer, filter string, left *int) (n node, err error) {
	if *left--; *left < 0 {
		return n, errMany
	}
	n = node{Key: key, Pointer: pointer, Filter: copied(filter)}
	t, err := d.Token()
	if err != nil {
		return n, err
	}
	begin, container := t.(json.Delim)
	if !container {
		raw, _ := content.PlainJSON(t) // it was decoded from JSON
		if n.Value, n.Class = q.cell(key, raw, nodeText), "literal"; len(raw) > nodeText {
			n.To = q.atPointer(pointer)
		}
		switch t.(type) {
		case string:
			n.Class = "string"
		case json.Number:
			n.Class = "number"
		}
		return n, nil
	}
	n.To, n.Class = q.atPointer(pointer), "dim"
	seen := map[string]bool{}
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if begin == '{' {
			k, err := d.Token()
			if err != nil {
				return n, err
			}
			name, _ = k.(string)
		}
		child, err := q.readNode(d, name, pointer+"/"+content.EscapeToken(name), step(filter, name, begin == '{'), left)
		if err != nil {
			return n, err
		}
		child.repeated(seen)
		n.Nodes = append(n.Nodes, child)
	}
	n.Value = begin.String() + strconv.Itoa(len(n.Nodes)) + string(begin+2) // the closing one
	_, err = d.Token()
	return n, err
}

// repeated notes that a key was seen in the same object.
func (n *node) repeated(seen map[string]bool) {
	if seen[n.Pointer] {
		n.More = strings.TrimPrefix(n.More+"; this key is repeated: jq has the last value", "; ")
	}
	seen[n.Pointer] = true
}

// cost is about how many bytes of HTML a node has.
func (n *node) cost() int {
	all := 300 + len(n.Value) + 4*len(n.Pointer)
	for i := range n.Nodes {
		all += n.Nodes[i].cost()
	}
	return all
}

func (q *request) atPointer(pointer string) href {
	return q.with("at", pointer, "top", "", "record", "", "from", "")
}

// pointerLinks leads to each container around a value.
func (q *request) pointerLinks(pointer string) any {
	all, left := links{{Text: "top", To: q.atPointer(""), On: pointer == ""}}, strings.Count(pointer, "/")
	if left > maxAbove {
		all = append(all, link{Text: "…", To: q.atPointer("")})
	}
	for end, c := range pointer + "/" {
		if above := pointer[:end]; c == '/' && end > 0 {
			if left--; left >= maxAbove {
				continue
			}
			text := q.clip([]byte(unescape.Replace(above[strings.LastIndexByte(above, '/')+1:])), 60)
			all = append(all, link{Text: text, To: q.atPointer(above), On: above == pointer})
		}
	}
	return all
}

// unescape replaces what stands for other characters in a JSON Pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

var plainKey = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// copied returns a filter that a page offers: none that is too long to be read.
func copied(filter string) string {
	if len(filter) > 1000 {
		return ""
	}
	return filter
}

// step returns the filter of a child: of a member of an object, or of an element of an array.
func step(filter, key string, object bool) string {
	switch {
	case !object:
		return filter + "[" + key + "]"
	case plainKey.MatchString(key):
		return strings.TrimSuffix(filter, ".") + "." + key
	}
	quoted, _ := content.PlainJSON(key)
	return filter + "[" + string(quoted) + "]"
}

// filterOf returns the jq filter of a pointer. In NDJSON its first token is the record, and the filter is for that. A
// number in it may be an index or a key.
func filterOf(pointer string, kind content.Kind) string {
	tokens := strings.Split(pointer, "/")[1:]
	if kind == content.NDJSON {
		tokens = tokens[min(len(tokens), 1):]
	}
	out := "."
	for _, t := range tokens {
		if _, err := strconv.ParseUint(t, 10, 32); err == nil {
			out += ` | .[if type == "object" then "` + t + `" else ` + strings.TrimLeft(t[:len(t)-1], "0") + t[len(t)-1:] + ` end]`
		} else {
			out = step(out, unescape.Replace(t), true)
		}
	}
	return out
}

// partPager leads through pages of parts, of which some are known.
func (q *request) partPager(from, shown, known int64, done bool, of string) *pager {
	text := of + " " + grouped(from) + "–" + grouped(from+shown-1) + " of " + grouped(known)
	if shown == 0 {
		text = "no " + of + " of " + grouped(known)
	}
	if q.wait = q.wait || !done; !done {
		text += " found so far; the rest is being read"
	}
	p := q.pager(text, "top", 0, from, from+shown, pageNodes, known)
	p.Jump = q.jump("record", "Record", "top", "from")
	return p
}
