package compaction

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// replay replaces what an earlier compaction replaced. A swap is of the result of its call that has its text or its
// pointer: at the place that the map names, else at the first other one, because lines may have moved. A swap without
// such a result changes nothing, and stays in the map for the transcript that has it.
func (c *compactor) replay(r *Report) {
	type output struct{ call, observation string }
	replayed := map[output]bool{} // a result in two lines has two swaps, and counts once
	var moved []int
	for n, s := range c.m.Swaps {
		results := c.calls[s.ToolUse]
		at := slices.IndexFunc(results, func(i int) bool {
			l := c.t.Blocks[i].Texts[0]
			return place{l.Line, l.Number} == s.Literals[0].place()
		})
		if at >= 0 && c.replaySwap(n, results[at:at+1]) {
			replayed[output{s.ToolUse, s.Observation}] = true
		} else {
			moved = append(moved, n)
		}
	}
	for _, n := range moved {
		s := c.m.Swaps[n]
		of := output{s.ToolUse, s.Observation}
		replayed[of] = c.replaySwap(n, c.calls[s.ToolUse]) || replayed[of]
	}
	for _, ok := range replayed {
		if ok {
			r.Replayed++
		} else {
			r.Gone++
		}
	}
}

// replaySwap replaces the first of some results that a swap fits, and reports whether there was one.
func (c *compactor) replaySwap(n int, results []int) bool {
	s := c.m.Swaps[n]
	for _, i := range results {
		b := &c.t.Blocks[i]
		if c.done[i] {
			continue
		}
		switch {
		case b.Texts[0].Text == s.Pointer.Text(): // the transcript is a compacted one
			c.done[i] = true
		case hash(b.Text()) == s.SHA256 && c.keeper.Has(s.Observation, s.SHA256):
			s = s.moved(place{b.Texts[0].Line, b.Texts[0].Number})
			c.m.Swaps[n] = s
			c.apply(i, s)
		default:
			continue
		}
		return true
	}
	return false
}

// noteForeign enters in the map which outputs are pointers already, of another store or as a text, so that Expand does
// not take them for what it could not restore.
func (c *compactor) noteForeign(r *Report) {
	for i := range c.t.Blocks {
		b := &c.t.Blocks[i]
		if !b.Result() || len(b.Texts) == 0 || c.done[i] || !IsPointer(b.Texts[0].Text) {
			continue
		}
		r.Foreign++
		if sum := hash(b.Texts[0].Text); !slices.Contains(c.m.Foreign, sum) {
			c.m.Foreign = append(c.m.Foreign, sum)
		}
	}
}

// verify returns an error if the compacted transcript would not be restored to the one that was read.
func (c *compactor) verify(out []byte) error {
	t, err := transcript.Read(out)
	if err != nil {
		return fmt.Errorf("the compacted transcript cannot be read, nothing was written: %w", err)
	}
	e := expander{t: t, m: c.m, read: func(s Swap) ([]byte, bool, error) {
		text, now := c.texts[s.Observation]
		return []byte(text), now, nil
	}}
	restored, err := e.expand()
	if err == nil && !bytes.Equal(restored, bytes.Join(c.t.Lines, nil)) {
		err = fmt.Errorf("the bytes differ")
	}
	if err != nil {
		return fmt.Errorf("the compacted transcript could not be restored, nothing was written: %w", err)
	}
	return nil
}
