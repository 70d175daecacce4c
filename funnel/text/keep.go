package text

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// Range is a range of bytes of the left part of a line, which begins and ends between two graphemes.
type Range struct {
	From, To int
	Weight   int // how much it is worth to see the range
}

// At most mostKept of the first mostTried ranges are kept, and only the first keptBytes of each. A range is seen
// if its first seenBytes are shown.
const (
	mostKept  = 8
	mostTried = 24
	keptBytes = 40
	seenBytes = 10
)

// Keeper clips a line to several widths so that ranges of it stay.
type Keeper struct {
	Line
	json        bool
	keep        []Range
	left, right ruler // measured by the first Clip that needs them
}

// NewKeeper returns a Keeper of a line, the most important ranges first.
func NewKeeper(l Line, json bool, keep []Range) *Keeper {
	if !l.Whole() {
		l.Left = l.Left[:runes.Complete(l.Left)]
	}
	keep = slices.Clone(keep[:min(len(keep), mostTried)])
	keep = slices.DeleteFunc(keep, func(r Range) bool { return r.From < 0 || r.To > len(l.Left) || r.From >= r.To })
	return &Keeper{Line: l, json: json, keep: keep}
}

// Clip returns the line like [Line.Clip], or with less of both ends and with as many ranges as there is room for, the
// first ones first, if ranges of more weight are seen so.
func (k *Keeper) Clip(width int) string {
	plain := k.Line.Clip(width, k.json)
	if len(k.keep) == 0 || k.MultiLine || !strings.Contains(plain, "… ") {
		return plain
	}
	if k.left.at == nil {
		k.left = newRuler(string(k.Left), k.json)
		k.right = newRuler(string(runes.TrimStart(k.Right)), k.json)
	}
	width = max(width, MinWidth)
	if k.Whole() && k.left.total() <= width {
		return plain // it is not cut
	}
	room := width - leftOutWidth(k.Chars)
	from, to := k.left.prefix(room*3/5), len(k.Left)
	if k.Whole() {
		to = k.left.suffix(room - room*3/5)
	}
	seen := k.seen([]Range{{To: from}, {From: to, To: len(k.Left)}})
	chosen := k.choose(width)
	if len(chosen) == 0 {
		return plain
	}
	// The largest number of further columns at both ends that fits.
	more := sort.Search(width, func(more int) bool { _, _, n := k.layout(chosen, more+1); return n > width })
	shown, right, _ := k.layout(chosen, more)
	if k.seen(shown) <= seen {
		return plain
	}
	if s := k.render(shown, right); utf8.RuneCountInString(s) <= width {
		return s
	}
	return plain
}

// seen returns the weight of the first ranges that are seen if these parts of the line are shown.
func (k *Keeper) seen(shown []Range) (weight int) {
	for _, r := range k.keep[:min(len(k.keep), mostKept)] {
		if slices.ContainsFunc(
			shown,
			func(s Range) bool { return s.From <= r.From && min(r.To, r.From+seenBytes) <= s.To },
		) {
			weight += r.Weight
		}
	}
	return weight
}

// choose returns the ranges for which there is room, cut to their first bytes.
func (k *Keeper) choose(width int) (chosen []Range) {
	for _, r := range k.keep {
		if len(chosen) == mostKept {
			break
		}
		r.To = r.From + CutBefore(k.Left[r.From:r.To], min(keptBytes, width/2))
		next := append(slices.Clone(chosen), r)
		if _, _, n := k.layout(next, 0); n <= width {
			chosen = next
		}
	}
	return chosen
}

// layout returns the ranges of the left part that are shown with the chosen ones and with more columns at both ends,
// three fifths of them at the beginning; the offset in the right part from which on that is shown; and the columns that
// the line takes.
func (k *Keeper) layout(chosen []Range, more int) (shown []Range, right, columns int) {
	size := len(k.Left)
	parts := append([]Range{{To: k.left.prefix(more * 3 / 5)}}, chosen...)
	if k.Whole() {
		parts = append(parts, Range{From: k.left.suffix(more - more*3/5), To: size})
	} else {
		right = k.right.suffix(more - more*3/5)
		if right == 0 { // the first grapheme may be incomplete
			right = k.right.at[min(1, len(k.right.at)-1)]
		}
		columns = k.right.total() - k.right.columnsAt(right)
	}
	slices.SortFunc(parts, func(a, b Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, p := range parts {
		last := len(shown) - 1
		switch {
		case last < 0:
			shown = append(shown, p)
		case p.From <= shown[last].To || k.left.between(shown[last].To, p.From) <=
			leftOutWidth(k.left.chars(shown[last].To, p.From)): // a marker would take as much
			shown[last].To = max(shown[last].To, p.To)
		default:
			shown = append(shown, p)
		}
	}
	at := 0
	for _, p := range shown {
		if p.From > at {
			columns += leftOutWidth(k.left.chars(at, p.From))
		}
		columns += k.left.between(p.From, p.To)
		at = p.To
	}
	if rest := k.rest(at, right); rest > 0 {
		columns += leftOutWidth(rest)
	}
	return shown, right, columns
}

// rest returns the number of chars between an offset in the left part and one in the right part.
func (k *Keeper) rest(left, right int) int64 {
	if k.Whole() {
		return k.left.chars(left, len(k.Left))
	}
	return k.Chars - k.left.chars(0, left) - k.right.chars(right, k.right.at[len(k.right.at)-1])
}

func (k *Keeper) render(shown []Range, right int) string {
	var b strings.Builder
	at := 0
	for _, p := range shown {
		if p.From > at {
			b.WriteString(LeftOut(k.left.chars(at, p.From)))
		}
		b.WriteString(VisibleLine(string(k.Left[p.From:p.To]), k.json))
		at = p.To
	}
	if rest := k.rest(at, right); rest > 0 {
		b.WriteString(LeftOut(rest))
	}
	if !k.Whole() {
		b.WriteString(VisibleLine(string(runes.TrimStart(k.Right))[right:], k.json))
	}
	return b.String()
}

func leftOutWidth(chars int64) int { return utf8.RuneCountInString(LeftOut(chars)) }

// ruler has the offsets between the graphemes of a text, and the columns and chars before each.
type ruler struct {
	at, columns []int
	runes       []int64
}

func newRuler(s string, json bool) ruler {
	r := ruler{[]int{0}, []int{0}, []int64{0}}
	for g := graphemes.FromString(s); g.Next(); {
		v := g.Value()
		last := len(r.at) - 1
		r.at = append(r.at, r.at[last]+len(v))
		r.columns = append(r.columns, r.columns[last]+utf8.RuneCountInString(VisibleLine(v, json)))
		r.runes = append(r.runes, r.runes[last]+int64(utf8.RuneCountInString(v)))
	}
	return r
}

func (r ruler) total() int { return r.columns[len(r.columns)-1] }

// prefix returns the last offset before which there are at most room columns.
func (r ruler) prefix(room int) int {
	return r.at[max(0, sort.Search(len(r.at), func(i int) bool { return r.columns[i] > room })-1)]
}

// suffix returns the first offset after which there are at most room columns.
func (r ruler) suffix(room int) int {
	return r.at[sort.Search(len(r.at)-1, func(i int) bool { return r.total()-r.columns[i] <= room })]
}

func (r ruler) index(offset int) int {
	i, _ := slices.BinarySearch(r.at, offset)
	return min(i, len(r.at)-1)
}

func (r ruler) columnsAt(offset int) int { return r.columns[r.index(offset)] }
func (r ruler) between(from, to int) int { return r.columnsAt(to) - r.columnsAt(from) }
func (r ruler) chars(from, to int) int64 { return r.runes[r.index(to)] - r.runes[r.index(from)] }
