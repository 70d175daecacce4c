package viewer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/delta"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

const (
	compareBytes = 2 << 20   // of each of two texts that are compared within a request
	compareLines = 1 << 20   // different lines of a longer text, of which hashes are held: about 32 MiB
	onlyBytes    = 512 << 10 // of its lines that the other one lacks
	wholeRecord  = "(all of it)"
)

// compare is the page of what differs between the observations a and b: by records if both have some, else by lines.
func (q *request) compare() (*page, error) {
	both, closed, err := q.openBoth()
	if err != nil {
		return nil, err
	}
	defer closed()
	p := &page{Title: "What changed", Crumbs: []link{{Text: "Observations", To: q.url("obs")}}, Blocks: []any{
		table{Caption: "Before and after", Heads: observationHeads,
			Rows: [][]cell{q.observationRow(both[0].o), q.observationRow(both[1].o)}},
	}}
	var texts [2][]byte
	long, records := false, true
	for i, o := range both {
		if texts[i], err = o.bytesAt(0, compareBytes+1); err != nil {
			return nil, err
		}
		long, records = long || len(texts[i]) > compareBytes, records && of(content.JSON, content.NDJSON, content.Table)(o)
	}
	by := &form{To: q.url("compare"), Submit: "Compare", Fields: []field{
		hidden("a", q.query.Get("a")), hidden("b", q.query.Get("b")),
		{Name: "by", Label: "By", Value: q.query.Get("by"), Options: []string{"records", "lines"}},
	}}
	if records && !long {
		p.Blocks = append(p.Blocks, by)
	}
	blocks := []any{note{"Both are equal, byte for byte.", ""}}
	switch {
	case both[0].o.SHA256 == both[1].o.SHA256:
	case long:
		blocks, err = q.onlyLines(both)
	case records && q.query.Get("by") != "lines":
		blocks, err = q.changedRecords(both, texts, by)
	default:
		blocks, err = q.changedLines(both, texts)
	}
	p.Blocks = append(p.Blocks, blocks...)
	return p, err
}

// openBoth opens the observations a and b.
func (q *request) openBoth() (both [2]*opened, closed func(), err error) {
	if both[0], err = q.openID(q.query.Get("a")); err != nil {
		return both, nil, err
	}
	if both[1], err = q.openID(q.query.Get("b")); err != nil {
		both[0].Close()
	}
	return both, func() { both[0].Close(); both[1].Close() }, err
}

// changedLines shows the lines that differ. Each leads to where it stands.
func (q *request) changedLines(both [2]*opened, texts [2][]byte) ([]any, error) {
	if x, ok := delta.Indented(texts[0]); ok {
		if y, ok := delta.Indented(texts[1]); ok {
			said := note{"Each value of the JSON is on a line of its own.", ""}
			blocks, err := q.changes([2][]byte{x, y}, nil)
			return append([]any{said}, blocks...), err
		}
	}
	return q.changes(texts, func(side int, n string) cell {
		return cell{Text: n, Num: true}.to(q.url("obs/"+string(both[side].o.ID), "line", n))
	})
}

// changes shows the lines of two texts that differ, beside each other, with three lines around them. Secrets are masked
// before lines are compared. at is the cell of a line's number; nil: lines have none.
func (q *request) changes(texts [2][]byte, at func(side int, n string) cell) ([]any, error) {
	for i, text := range texts {
		texts[i] = []byte(q.masked(string(text)))
		if len(text) > 0 && text[len(text)-1] != '\n' {
			texts[i] = append(texts[i], '\n')
		}
	}
	_, all, _ := bytes.Cut(diff.Diff("a", texts[0], "b", texts[1]), []byte("\n+++ b\n"))
	if len(all) == 0 {
		return []any{note{"Only masked secrets, the order or the layout differ.", ""}}, nil
	}
	count := func(mark string) int64 { return int64(bytes.Count(all, []byte("\n"+mark))) }
	said := content.Plural(count("+"), "line", "lines") + " added, " + grouped(count("-")) + " removed"
	size := int64(len(all))
	text := &opened{Source: &source.Source{ReaderAt: bytes.NewReader(all), Size: size, Encoding: "utf-8"}}
	blocks, err := q.hunks(text, content.Span{End: size}, "")
	if err != nil {
		return nil, err
	}
	t := blocks[len(blocks)-1].(*table) //nolint:forcetypeassert // hunks ends with its table
	for _, row := range t.Rows {
		for side := range texts {
			if n := &row[2*side]; at == nil || n.Text == "" {
				n.Text = ""
			} else {
				*n = at(side, n.Text)
			}
		}
	}
	return append([]any{note{said, ""}}, blocks...), nil
}

// comparedRecords returns the fields of each record of a text as JSON: of elements of an array, of lines, of rows.
// The field of a value that is no object is "". damage says where records end before the text does.
func comparedRecords(ctx context.Context, kind content.Kind, text []byte) (all []map[string]string, damage error) {
	r := io.Reader(bytes.NewReader(text))
	switch kind {
	case content.Table:
		var rows bytes.Buffer
		damage = kinds.Table.Objects(ctx, r, &rows)
		r = &rows
	case content.NDJSON: // without lines that are not JSON
		var whole bytes.Buffer
		damage = kinds.NDJSON.Records(ctx, r, func(_ int64, at content.Span) bool {
			whole.Write(append(text[at.Start:at.End:at.End], '\n'))
			return true
		})
		r = &whole
	}
	d := json.NewDecoder(r)
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); err != nil {
			if !errors.Is(err, io.EOF) {
				damage = errors.Join(damage, err)
			}
			return all, damage
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, one := range list {
			fields, ok := one.(map[string]any)
			if !ok {
				fields = map[string]any{"": one}
			}
			record := map[string]string{}
			for name, value := range fields {
				raw, _ := content.PlainJSON(value) // it was decoded from JSON
				record[name] = string(raw)
			}
			all = append(all, record)
		}
	}
}

const onlyRecord = "the only record" // no record has it, so that two are the same

// keysOf returns the fields that all records of both texts have, no two of one text with the same value. The best is
// the first: most of its values are in both.
func keysOf(texts [2][]map[string]string) (keys []string) {
	seen, count, shared := [2]map[string]bool{{}, {}}, map[string]int{}, map[string]int{}
	for i, all := range texts {
		for _, record := range all {
			for name, v := range record {
				if v = name + "\x00" + v; !seen[i][v] {
					seen[i][v] = true
					count[name]++
					shared[name] += map[bool]int{true: 1}[i == 1 && seen[0][v]]
				}
			}
		}
	}
	for name, n := range count {
		if name != "" && n == len(texts[0])+len(texts[1]) {
			keys = append(keys, name)
		}
	}
	named := func(name string) int {
		return slices.Index([]string{"name", "key", "uuid", "_id", "id"}, strings.ToLower(name))
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(shared[y]-shared[x], named(y)-named(x), cmp.Compare(x, y))
	})
	return append(keys[:min(len(keys), 50)], wholeRecord)
}

// matched returns the fields of records, each on a line behind the record's key, by that key, which is numbered where
// it repeats.
func matched(all []map[string]string, key string) map[string]string {
	by, seen := make(map[string]string, len(all)), map[string]int{}
	for _, record := range all {
		var rows []string
		for _, f := range slices.Sorted(maps.Keys(record)) {
			rows = append(rows, f+": "+record[f])
		}
		name := record[key]
		if key == wholeRecord {
			name, rows = strings.Join(rows, "  "), []string{""}
		}
		if seen[name]++; seen[name] > 1 {
			name += fmt.Sprintf(" (%d)", seen[name])
		}
		for _, row := range rows {
			by[name] += name + "  " + row + "\n"
		}
	}
	return by
}

// changedRecords shows the fields of records that were added, removed or changed, and adds the choice of a key to by.
func (q *request) changedRecords(both [2]*opened, texts [2][]byte, by *form) ([]any, error) {
	var all [2][]map[string]string
	var damage [2]error
	for i, o := range both {
		if all[i], damage[i] = comparedRecords(q.ctx, o.kind, texts[i]); damage[i] != nil {
			damage[i] = fmt.Errorf("obs:%s: %w", o.o.ID, damage[i])
		}
	}
	keys := keysOf(all)
	if len(all[0]) == 1 && len(all[1]) == 1 {
		keys = append([]string{onlyRecord}, keys...)
	}
	asked := q.query.Get("key")
	key := keys[max(slices.Index(keys, asked), 0)]
	by.Fields = append(by.Fields, field{Name: "key", Label: "the same if equal:", Value: key, Options: keys})
	before, after := matched(all[0], key), matched(all[1], key)
	added, changed := len(after), 0
	for name, was := range before {
		now, both := after[name]
		if both {
			added--
		}
		if was == now { // only records that differ are compared by lines
			delete(before, name)
			delete(after, name)
		} else if both {
			changed++
		}
	}
	removed := len(before) - changed
	for i, by := range []map[string]string{before, after} {
		texts[i] = nil
		for _, name := range slices.Sorted(maps.Keys(by)) {
			if _, both := after[name]; both && before[name] != "" && key != wholeRecord { // apart from those beside it
				texts[i] = append(texts[i], name+"\n"...)
			}
			texts[i] = append(texts[i], by[name]...)
		}
	}
	blocks := []any{note{fmt.Sprintf("%d of %d records added, %d of %d removed, %d changed",
		added, len(all[1]), removed, len(all[0]), changed), ""}}
	if asked != "" && asked != key {
		text := q.short(asked, 60) + " does not tell the records of both apart: they are the same if their " + key + " is."
		blocks = append(blocks, note{text, "warn"})
	}
	if err := errors.Join(damage[:]...); err != nil {
		blocks = append(blocks, note{"What is damaged is not compared: " + err.Error(), "bad"})
	}
	rows, err := q.changes(texts, nil)
	return append(blocks, rows...), err
}

// onlyLines shows the lines that only one of two long texts has, wherever they stand. They are found in the background.
func (q *request) onlyLines(both [2]*opened) ([]any, error) {
	background, mine := *q, &[2][]byte{}
	background.ctx = q.Viewer.ctx
	l := q.list(q.who.Owner+"\x00"+both[0].Name+both[1].Name, "", mine, func() (walk, func(), error) {
		again, closed, err := background.openBoth()
		return func(ctx context.Context, _ func(int64, int64) bool) error { return only(ctx, again, mine) }, closed, err
	})
	_, done, wrong := l.wait(q.ctx, 1)
	if !done {
		q.wait = true
		return []any{note{"Both texts are being read.", ""}}, nil
	}
	blocks := []any{note{"One has over " + size(compareBytes) + ": shown are lines that one of them alone has, " +
		"not what moved. Of a line over " + size(readLine) + " its beginning and its length are compared.", ""}}
	texts := *l.beside.(*[2][]byte) //nolint:forcetypeassert // it is of this list
	changed, err := q.changes(texts, nil)
	return slices.Concat(blocks, remarks(wrong), changed), err
}

// only finds the lines that one of two texts alone has.
func only(ctx context.Context, both [2]*opened, found *[2][]byte) (wrong error) {
	seed, left := maphash.MakeSeed(), map[uint64]int64{}
	for pass, o := range []*opened{both[0], both[1], both[0]} {
		r, err := o.from(0)
		if err != nil {
			return err
		}
		in := record.NewLines(ctx, r, readLine)
		for b, err := in.Next(); !errors.Is(err, io.EOF); b, err = in.Next() {
			if err != nil {
				return err
			}
			sum := maphash.Bytes(seed, b)
			if !in.Whole() {
				sum += uint64(in.At.End - in.At.Start) //nolint:gosec // any number will do
			}
			if pass == 0 {
				if left[sum]++; len(left) > compareLines {
					return fmt.Errorf("the first has over %d different lines: compare parts of both that grep or jq save",
						compareLines)
				}
				continue
			}
			has := left[sum] > 0
			if has {
				left[sum]--
			}
			to := &found[pass&1]
			if has != (pass == 2) {
				continue
			}
			if len(*to)+len(b) > onlyBytes {
				wrong = fmt.Errorf("only the first %s of such lines of each text are shown", size(onlyBytes))
				continue
			}
			*to = append(append(*to, b...), '\n')
		}
	}
	return wrong
}
