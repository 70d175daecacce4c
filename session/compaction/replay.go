package compaction

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// fit is a swap of the map, and the block that it fits.
type fit struct{ block, swap int }

// replay returns which blocks an earlier compaction replaced, for applyAll. It matches a swap with a result of the same
// call that has the text or the pointer of the swap: at the place that the map names, or else at the first other one,
// because lines may have moved. A swap without a match changes nothing; it stays in the map for another transcript.
func (c *compactor) replay(r *Report) (fits []fit) {
	type output struct{ call, observation string }
	replayed := map[output]bool{} // a result in two lines has two swaps, and counts once
	try := func(n int, results []int) bool {
		i := c.replaySwap(n, results)
		if i >= 0 {
			c.done[i] = true
			fits = append(fits, fit{i, n})
		}
		of := output{c.m.Swaps[n].ToolUse, c.m.Swaps[n].Observation}
		replayed[of] = replayed[of] || i >= 0
		return i >= 0
	}
	var moved []int
	for n, s := range c.m.Swaps {
		results := c.calls[s.ToolUse]
		at := slices.IndexFunc(results, func(i int) bool {
			l := c.t.Blocks[i].Texts[0]
			return place{l.Line, l.Number} == s.Literals[0].place()
		})
		if at < 0 || !try(n, results[at:at+1]) {
			moved = append(moved, n)
		}
	}
	for _, n := range moved {
		try(n, c.calls[c.m.Swaps[n].ToolUse])
	}
	for _, ok := range replayed {
		if ok {
			r.Replayed++
		} else {
			r.Gone++
		}
	}
	return fits
}

// replaySwap returns the first of some results that a swap fits; −1 if there is none.
func (c *compactor) replaySwap(n int, results []int) int {
	s := c.m.Swaps[n]
	for _, i := range results {
		b := &c.t.Blocks[i]
		switch {
		case c.done[i]:
		case b.Texts[0].Is(s.Pointer.Text()): // the transcript is a compacted one
			c.reportedWhole(i, s)
			return i
		case s.replaced(b) && c.keeper.Has(s.Observation, s.SHA256):
			return i
		}
	}
	return -1
}

// applyAll replaces what replay has found, where the transcript has it whole.
func (c *compactor) applyAll(fits []fit) {
	for _, f := range fits {
		b, s := &c.t.Blocks[f.block], c.m.Swaps[f.swap]
		if !b.Texts[0].Is(s.Pointer.Text()) {
			c.m.Swaps[f.swap] = s.moved(place{b.Texts[0].Line, b.Texts[0].Number})
			c.apply(f.block, c.m.Swaps[f.swap])
		}
	}
}

// noteForeign enters in the map which outputs are pointers already, of another store or as a text, so that Expand does
// not report them as not restored.
func (c *compactor) noteForeign(r *Report) {
	for i := range c.t.Blocks {
		b := &c.t.Blocks[i]
		if !b.Result() || len(b.Texts) == 0 || c.done[i] || !isPointer(b.Texts[0]) {
			continue
		}
		r.Foreign++
		if sum := hash(b.Texts[0].Text()); !slices.Contains(c.m.Foreign, sum) {
			c.m.Foreign = append(c.m.Foreign, sum)
		}
	}
}

// verify returns an error if the compacted transcript would not be restored to the one that was read.
func (c *compactor) verify(out transcript.Bytes) error {
	t, err := transcript.ReadFrom(out)
	if err != nil {
		return fmt.Errorf("the compacted transcript cannot be read, nothing was written: %w", err)
	}
	e := expander{t: t, m: c.m, read: func(s Swap) ([]byte, bool, error) {
		i, now := c.outputs[s.Observation]
		if !now {
			return nil, false, nil
		}
		b := &c.t.Blocks[i]
		if text := b.Output(); hash(text) == s.SHA256 {
			return []byte(text), true, nil
		}
		return []byte(b.Text()), true, nil // of an older map
	}}
	restored, err := e.expand()
	if err == nil {
		err = equal(restored, c.t.Bytes())
	}
	err = cmp.Or(c.t.Err(), err)
	if err != nil {
		return fmt.Errorf("the compacted transcript could not be restored, nothing was written: %w", err)
	}
	return nil
}

func equal(a, b transcript.Bytes) error {
	var sums [2][]byte
	for i, of := range []transcript.Bytes{a, b} {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(of, 0, of.Size())); err != nil {
			return err
		}
		sums[i] = h.Sum(nil)
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return errors.New("the bytes differ")
	}
	return nil
}
