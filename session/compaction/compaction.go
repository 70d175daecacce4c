// Package compaction makes a transcript fit a budget: outputs of tools become pointers to observations, and everything
// else stays byte for byte. The map of what was replaced restores the transcript exactly.
//
// A Keeper stores the outputs.
package compaction

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// Shares of the budget and of the whole: below the low mark nothing more is replaced, and at least the least share is,
// because every compaction costs the client its prompt cache once.
const (
	lowMark    = 0.8
	leastShare = 0.1
	keepLast   = 3

	keptBesides = 4 << 10           // bytes: a stored output also has a sidecar and an index
	leastOutput = 2 * pointerTokens // a smaller output is not worth a file
)

// maxRaw is the maximum size of the strings that a map holds verbatim, in bytes of base64: half of the largest map that
// is read.
const maxRaw = 32 << 20

// Writers is how many outputs are stored at once.
const Writers = 4

// Compact replaces outputs until what the client sends fits the budget. It returns the new bytes of the transcript,
// which read from the old ones. It first replaces the outputs that the map has, by the same bytes as before. It adds
// what it replaced to the map, unless there is an error: then it keeps no output and the map stays as it was.
func Compact(t *transcript.Transcript, m *Map, k Keeper, o Options) (out transcript.Bytes, r Report, err error) {
	if o.Mask == nil {
		o.Mask = func(args string) string { return args }
	}
	now := *m
	now.Swaps, now.Foreign = slices.Clone(m.Swaps), slices.Clip(m.Foreign)
	c := &compactor{
		t: t, m: &now, keeper: k, o: o, usage: t.Usage,
		cost: make([]int, len(t.Blocks)), was: make([]int, len(t.Blocks)), scale: 1,
		done: map[int]bool{}, calls: map[string][]int{}, outputs: map[string]int{}, taken: map[place]bool{},
		first: len(t.Blocks),
	}
	defer func() {
		if err == nil {
			*m = now
			return
		}
		for _, s := range now.Swaps[len(m.Swaps):] {
			k.Release(s.Observation)
		}
	}()
	c.rank()
	for i := range t.Blocks {
		if b := &t.Blocks[i]; b.Result() && len(b.Texts) > 0 {
			c.calls[b.ID] = append(c.calls[b.ID], i)
		}
	}
	for i := range t.Blocks {
		c.cost[i] = t.Tokens(&t.Blocks[i], o.Count)
		c.was[i] = c.cost[i]
		if _, cleared := t.Cleared(t.Blocks[i].ID); cleared {
			c.was[i] = t.TokensReported(&t.Blocks[i], o.Count)
		}
	}
	fits := c.replay(&r)
	c.compareReport()
	c.total = c.sum()
	r.Before, r.Rest = c.total, c.rest
	c.applyAll(fits)
	c.noteForeign(&r)
	if c.least() > o.Budget {
		r.After = c.total
		return nil, r, c.overBudget()
	}
	if c.total > o.Budget || c.most() > o.Budget {
		if err := c.replace(&r); err != nil {
			return nil, r, err
		}
	}
	r.After, r.Most, r.Doubt, r.Note = c.total, c.most(), c.doubt(), c.note()
	for _, cost := range c.cost[min(c.first, len(c.cost)):] {
		r.Rewritten += cost
	}
	if saved := r.Before - r.After; saved > 0 {
		r.BreakEven = int(math.Ceil((1.25 - 0.1) * float64(r.Rewritten) / (0.1 * float64(saved))))
	}
	if r.After > o.Budget {
		return nil, r, c.overBudget()
	}
	if c.raw > maxRaw {
		return nil, r, fmt.Errorf("the transcript writes its outputs in a way that no known program does: a map of %d MiB would be"+
			" needed to restore them, and nothing was changed; let fewer go (--keep, --budget)", c.raw>>20)
	}
	out = t.Apply(c.edits)
	if err := c.verify(out); err != nil {
		return nil, r, err
	}
	if r.Replaced > 0 {
		now.Budget = o.Budget
	}
	return out, r, nil
}

// replace replaces outputs until the low mark is reached.
func (c *compactor) replace(r *Report) error {
	target := min(int(lowMark*float64(c.o.Budget)), c.total-int(leastShare*float64(c.total)))
	over := func() int { return max(c.total-target, c.most()-c.o.Budget) }
	c.sizePointers()
	order := c.order()
	if err := c.room(order, over()); err != nil {
		return err
	}
	for left := over(); len(order) > 0 && left > 0; left = over() {
		batch := 0
		for batch < len(order) && left > 0 {
			left -= max(c.low(c.cost[order[batch]])-pointerTokens, 0)
			batch++
		}
		if err := c.replaceAll(order[:batch], r); err != nil {
			return err
		}
		order = order[batch:]
	}
	return nil
}

// replaceAll replaces blocks. Outputs are stored side by side: each takes some files, and most of the time is theirs.
func (c *compactor) replaceAll(blocks []int, r *Report) error {
	kept := make([]Kept, len(blocks))
	failed := make([]error, len(blocks))
	var group sync.WaitGroup
	slots := make(chan struct{}, Writers)
	for n, i := range blocks {
		b := &c.t.Blocks[i]
		if c.cost[i] <= leastOutput {
			continue
		}
		slots <- struct{}{}
		args, output := c.o.Mask(b.Args.Text()), b.Output() // half of a secret has no known format: it is masked whole
		group.Go(func() {
			defer func() { <-slots }()
			kept[n], failed[n] = c.keeper.Keep(b.Name, args, output)
		})
	}
	group.Wait()
	if at := slices.IndexFunc(failed, func(err error) bool { return err != nil }); at >= 0 {
		for _, k := range kept {
			if k.ID != "" {
				c.keeper.Release(k.ID)
			}
		}
		return fmt.Errorf("an output cannot be stored, the transcript was not changed: %w", failed[at])
	}
	for n, i := range blocks {
		b := &c.t.Blocks[i]
		if kept[n].ID == "" {
			continue // its pointer would be no shorter
		}
		elsewhere := ""
		if len(c.done) == 0 && c.o.Path != "" {
			elsewhere = fmt.Sprintf("or: "+c.o.Path, kept[n].ID)
		}
		p := NewPointer(kept[n], b.Name, c.o.Mask(b.Args.Text()), elsewhere, c.pointer, c.o.Count)
		for _, k := range append([]int{i}, c.copies(i)...) { // a client may read either of two lines with one id
			s := c.swap(k, kept[n], p)
			c.m.Swaps = append(c.m.Swaps, s)
			c.apply(k, s)
		}
		r.Replaced++
	}
	return nil
}

func (c *compactor) swap(i int, kept Kept, p Pointer) Swap {
	s := newSwap(&c.t.Blocks[i], kept, p)
	s.Literals = slices.DeleteFunc(s.Literals, func(l SwappedAt) bool { return c.taken[l.place()] }) // by another result
	for _, l := range s.Literals {
		c.raw += base64.StdEncoding.EncodedLen(len(l.Raw))
	}
	s.Lines = c.t.Lines()
	return s
}

// copies returns the blocks that repeat a result, but are not sent.
func (c *compactor) copies(i int) (all []int) {
	b := &c.t.Blocks[i]
	for _, k := range c.calls[b.ID] {
		if other := &c.t.Blocks[k]; !other.Sent && !c.done[k] && b.ID != "" && other.Text() == b.Text() {
			all = append(all, k)
		}
	}
	return all
}

// least returns how many tokens remain at least, whatever is replaced.
func (c *compactor) least() int {
	rest, pointers := c.remain()
	return rest + pointers*c.leastPointer()
}

// remain returns the tokens that remain beside the pointers, and how many pointers there would be, if everything that
// may go is replaced.
func (c *compactor) remain() (rest, pointers int) {
	rest = c.total
	for _, i := range c.order() {
		if c.cost[i] > leastOutput {
			rest -= c.cost[i]
			pointers++
		}
	}
	return rest, pointers
}

// leastPointer returns the tokens of the shortest pointer.
func (c *compactor) leastPointer() int {
	none := Kept{ID: "obs:aaaaaaaaaaaa", Kind: "log", Lines: 99, Tokens: 999}
	return c.count(NewPointer(none, "", "", "", 0, c.o.Count).Text())
}

// sizePointers sets how many tokens a pointer may have, so that all pointers fit the budget if every output is
// replaced.
func (c *compactor) sizePointers() {
	rest, pointers := c.remain()
	if c.pointer = pointerTokens; pointers > 0 {
		c.pointer = max(min(c.pointer, (c.o.Budget-rest)/pointers), 0)
	}
}

// Replaceable returns how many tokens a compaction could remove at most.
func Replaceable(t *transcript.Transcript, o Options) (tokens int) {
	c := &compactor{t: t, o: o}
	c.rank()
	for _, i := range c.order() {
		if cost := t.Tokens(&t.Blocks[i], o.Count); cost > leastOutput {
			tokens += cost - pointerTokens
		}
	}
	return tokens
}

// room returns an error if the store has no room for the outputs that would be pinned to save that many tokens.
func (c *compactor) room(order []int, save int) error {
	room, err := c.keeper.Room()
	if err != nil {
		return err
	}
	need := int64(0)
	for _, i := range order {
		if save <= 0 {
			break
		}
		if c.cost[i] <= leastOutput {
			continue
		}
		save -= max(c.low(c.cost[i])-pointerTokens, 0)
		need += int64(c.t.Blocks[i].Size()) + keptBesides
	}
	if need > room {
		return fmt.Errorf("the outputs to replace take %d bytes, and %d may be pinned in the store: nothing was changed;"+
			" raise --quota, or unpin with compact --forget", need, room)
	}
	return nil
}

func (c *compactor) apply(i int, s Swap) {
	b := &c.t.Blocks[i]
	by := map[place]string{}
	for _, l := range s.Literals {
		c.taken[l.place()] = true
		if at, ok := find(b, l.place()); ok {
			c.edits = append(c.edits, transcript.NewEdit(l.Line, at.Span, []byte(l.By)))
			var text string
			_ = json.Unmarshal([]byte(l.By), &text) // it was written by quote
			by[l.place()] = text
		}
	}
	c.done[i], c.outputs[s.Observation] = true, i
	if !b.Sent {
		return
	}
	c.first = min(c.first, i)
	texts := make([]string, len(b.Texts))
	for n, l := range b.Texts {
		var replaced bool
		if texts[n], replaced = by[place{l.Line, l.Number}]; !replaced {
			texts[n] = l.Text()
		}
	}
	cost := c.count(strings.Join(texts, "\n"))
	c.total += cost - c.cost[i]
	c.cost[i] = cost
}

// rank finds the blocks that may be replaced: first what a later result supersedes or repeats, then receipts, then the
// others, the oldest first.
func (c *compactor) rank() {
	repeated, results := c.t.Repeated(), c.results()
	class := map[int]int{}
	for _, i := range results[:max(len(results)-c.stay(), 0)] {
		b := &c.t.Blocks[i]
		if !c.mayGo(b) {
			continue
		}
		_, superfluous := repeated[i]
		switch {
		case superfluous:
			class[i] = 0
		case b.Receipt:
			class[i] = 1
		default:
			class[i] = 2
		}
	}
	c.ranked = slices.SortedFunc(maps.Keys(class), func(a, b int) int {
		return cmp.Or(cmp.Compare(class[a], class[b]), cmp.Compare(a, b))
	})
}

// order returns the blocks that may still be replaced, in their order.
func (c *compactor) order() []int {
	return slices.DeleteFunc(slices.Clone(c.ranked), func(i int) bool { return c.done[i] })
}
