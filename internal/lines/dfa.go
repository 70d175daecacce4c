package lines

import (
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
)

// automaton answers which lines match, byte by byte, as [regexp] does for each line as a text of its own. Its states are made as a
// text needs them, and hold what RE2's do: a set of instructions, and what stands before them.
//
// Where a line is not valid UTF-8 before it is known to match, regexp is asked: it takes each bad byte for U+FFFD, and how many bytes
// are bad is only seen later.
type automaton struct {
	*alphabet
	prog     *syntax.Prog
	pool     sync.Pool    // of *walker: their states serve the next text too
	off      *atomic.Bool // it needed new states so often that regexp is no slower
	room     int          // states of a walker, as many as its table has rows
	held     int          // bytes of them
	patience int          // see anew
}

// newAutomaton returns nil for a program that is not worth one, or may not have one: with needs of memory that are not bounded well.
func newAutomaton(tree *syntax.Regexp, crlf bool) *automaton {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxInsts {
		return nil
	}
	alpha := newAlphabet(prog, crlf)
	if alpha == nil {
		return nil
	}
	return &automaton{alphabet: alpha, prog: prog, off: new(atomic.Bool), room: 1 << (16 - alpha.shift), held: maxKeys, patience: maxWasted}
}

const maxInsts = 1 << 16 // of two bytes each in a state

// walker walks over texts. Its table is 128 KB whatever the pattern; a state's number is where its row starts in it.
type walker struct {
	*automaton
	ctx     context.Context // of the text that is walked over
	trans   *[1 << 16]uint16
	keys    []string // of the states, by row
	ids     map[string]uint16
	size    int // bytes of keys
	start   uint16
	event   uint16 // smaller numbers are the rows below, up to ask
	ended   uint16 // smaller numbers end the look at a line
	work    int    // instructions looked at since the context was
	seen    int    // bytes walked over since the table was last emptied
	skipped int    // bytes of lines that were known to match before them
	wasted  int    // times that was too soon

	list, next []uint16 // of instructions
	stack      []uint16
	mark       []uint32 // by instruction: the turn in which it was added
	turn       uint32
	key        []byte
}

// The first rows of each table.
const (
	unknown = iota // not yet made
	hit            // the line that has ended matches
	ask            // the line that has ended is for regexp to say
	matched        // the line matches, whatever follows
	bad            // the line is not valid UTF-8
	fixedRows
)

// Bounds of a walker beside its table.
const (
	maxKeys   = 1 << 20 // bytes of states
	minWalk   = 16      // bytes for each state that was made, or the table was emptied too soon
	maxWasted = 4
)

func (a *automaton) walker() *walker {
	if w, ok := a.pool.Get().(*walker); ok {
		return w
	}
	w := &walker{automaton: a, trans: new([1 << 16]uint16), mark: make([]uint32, len(a.prog.Inst))}
	w.event, w.ended = matched<<a.shift, fixedRows<<a.shift
	w.empty()
	return w
}

// empty forgets all states.
func (w *walker) empty() {
	if len(w.keys) > 0 { // a new table is empty
		clear(w.trans[:])
	}
	w.keys = append(w.keys[:0], make([]string, fixedRows)...)
	w.ids, w.size, w.seen = map[string]uint16{}, 0, 0
	for c := range w.bytes {
		w.trans[matched<<w.shift+c] = matched << w.shift
		w.trans[bad<<w.shift+c] = bad << w.shift
	}
	w.trans[matched<<w.shift+int(w.class['\n'])] = hit << w.shift
	w.trans[bad<<w.shift+int(w.class['\n'])] = ask << w.shift

	w.begin()
	if w.add(uint16(w.prog.Start), true) { // 0 or 1
		w.start = matched << w.shift
		return
	}
	w.start, _ = w.intern(w.next, noNode, atStart)
}

// anew empties a full table but for the states in use. It returns false where that happens so often that the automaton is given up.
func (w *walker) anew(walked int, inUse []uint16) bool {
	if w.seen+walked < minWalk*len(w.keys) {
		if w.wasted++; w.wasted >= w.patience {
			w.off.Store(true)
			return false
		}
	} else {
		w.wasted = 0
	}
	keys := make([]string, len(inUse))
	for i, q := range inUse {
		keys[i] = w.keys[q>>w.shift]
	}
	w.empty()
	w.seen = -walked
	for i, k := range keys {
		if k == "" { // a fixed row
			continue
		}
		inUse[i], _ = w.internKey(k)
	}
	return true
}

// What stands before a state.
const (
	atStart   = 1 << iota // the line's start
	afterWord             // a byte of a word
	afterCR               // a \r that is not yet taken: it may be a part of the line end
)

// intern is the number of a state; false where the table is full. list becomes sorted.
func (w *walker) intern(list []uint16, node int16, before byte) (uint16, bool) {
	slices.Sort(list)
	k := append(w.key[:0], before)
	k = binary.LittleEndian.AppendUint16(k, uint16(node)) // as it is taken out again
	for _, pc := range list {
		k = binary.LittleEndian.AppendUint16(k, pc)
	}
	w.key = k
	if id, ok := w.ids[string(k)]; ok {
		return id, true
	}
	return w.internKey(string(k))
}

func (w *walker) internKey(k string) (uint16, bool) {
	if id, ok := w.ids[k]; ok {
		return id, true
	}
	if len(w.keys) >= w.room || len(w.keys) > fixedRows+lanes && w.size+len(k) > w.held {
		return 0, false
	}
	id := uint16(len(w.keys) << w.shift) // just bounded
	w.keys = append(w.keys, k)
	w.ids[k] = id
	w.size += len(k)
	return id, true
}

// step makes the transition of a state by a byte; false where the table is full.
func (w *walker) step(q uint16, b byte) (uint16, bool) {
	to, ok := w.take(w.keys[q>>w.shift], b)
	if ok {
		w.trans[q+uint16(w.class[b])] = to
	}
	return to, ok
}

// take is where a state goes by a byte.
func (w *walker) take(key string, b byte) (uint16, bool) {
	before, node := w.open(key)
	if node != noNode {
		return w.within(node, b)
	}
	if before&afterCR != 0 && b != '\n' {
		if w.consume('\r', before) {
			return matched << w.shift, true
		}
		before = w.before('\r')
		w.list, w.next = w.next, w.list
	}
	switch {
	case b == '\n':
		if w.atEnd(before) {
			return hit << w.shift, true
		}
		return w.start, true
	case b == '\r' && w.crlf:
		return w.intern(w.list, noNode, before|afterCR)
	case b < 0x80:
		if w.consume(rune(b), before) {
			return matched << w.shift, true
		}
		return w.intern(w.next, noNode, w.before(rune(b)))
	case w.lead[b] == noNode:
		return bad << w.shift, true
	}
	if w.resolve(before, flagsAt(before, false)) {
		return matched << w.shift, true
	}
	return w.intern(w.list, w.lead[b], 0)
}

// within goes on inside a rune.
func (w *walker) within(node int16, b byte) (uint16, bool) {
	if b == '\n' {
		return ask << w.shift, true
	}
	n := &w.nodes[node]
	if b&0xC0 != 0x80 || n.to[b&0x3F] == noNode {
		return bad << w.shift, true
	}
	to := n.to[b&0x3F]
	if !n.last {
		return w.intern(w.list, to, 0)
	}
	if w.move(w.letters[to]) {
		return matched << w.shift, true
	}
	return w.intern(w.next, noNode, 0)
}

// open takes a state apart, its instructions into w.list.
func (w *walker) open(key string) (before byte, node int16) {
	w.list = w.list[:0]
	for i := 3; i < len(key); i += 2 {
		w.list = append(w.list, uint16(key[i])|uint16(key[i+1])<<8)
	}
	w.work += len(w.list) + 16
	return key[0], int16(uint16(key[1]) | uint16(key[2])<<8) // as it was put in
}

// atEnd says whether the line matches if it ends here.
func (w *walker) atEnd(before byte) bool {
	return w.resolve(before, flagsAt(before, false)|syntax.EmptyEndText|syntax.EmptyEndLine)
}

// consume goes over an ASCII rune from w.list to w.next, and says whether that is a match.
func (w *walker) consume(r rune, before byte) bool {
	return w.resolve(before, flagsAt(before, isWord(byte(r)))) || w.move(r) // ASCII
}

// before is what a rune that was taken is to what follows, if that is asked for at all.
func (w *walker) before(r rune) byte {
	if !isWord(byte(r)) { // ASCII
		return 0
	}
	for _, pc := range w.next {
		if w.prog.Inst[pc].Op == syntax.InstEmptyWidth {
			return afterWord
		}
	}
	return 0
}

// flagsAt are the assertions that hold between what stands before and a rune of a word, or another one.
func flagsAt(before byte, word bool) syntax.EmptyOp {
	var f syntax.EmptyOp
	if before&atStart != 0 {
		f |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if (before&afterWord != 0) != word {
		return f | syntax.EmptyWordBoundary
	}
	return f | syntax.EmptyNoWordBoundary
}

// resolve follows the assertions of w.list that hold, and says whether that leads to a match. No others are left.
func (w *walker) resolve(before byte, f syntax.EmptyOp) bool {
	if !slices.ContainsFunc(w.list, func(pc uint16) bool { return w.prog.Inst[pc].Op == syntax.InstEmptyWidth }) {
		return false
	}
	w.begin()
	for _, pc := range w.list {
		if w.follow(pc, func(op syntax.EmptyOp) (through, keep bool) { return op&^f == 0, false }) {
			return true
		}
	}
	w.list, w.next = w.next, w.list
	return false
}

// move goes over a rune from w.list, which has no assertions, to w.next; a match may start after it too.
func (w *walker) move(r rune) bool {
	w.begin()
	for _, pc := range w.list {
		if in := &w.prog.Inst[pc]; matchRune(in, r) && w.add(uint16(in.Out), false) { // under maxInsts
			return true
		}
	}
	return w.add(uint16(w.prog.Start), false) // under maxInsts
}

func (w *walker) begin() {
	w.next = w.next[:0]
	if w.turn++; w.turn == 0 {
		clear(w.mark)
		w.turn = 1
	}
}

// add puts into w.next what pc leads to without taking a rune, with the assertions that may still hold.
func (w *walker) add(pc uint16, start bool) (match bool) {
	return w.follow(pc, func(op syntax.EmptyOp) (through, keep bool) {
		return false, start || op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0
	})
}

// follow puts into w.next what pc leads to without taking a rune. assert says whether to go through an assertion, or else to keep it.
func (w *walker) follow(pc uint16, assert func(syntax.EmptyOp) (through, keep bool)) (match bool) {
	stack := append(w.stack[:0], pc)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.mark[pc] == w.turn {
			continue
		}
		w.mark[pc] = w.turn
		w.work++
		in := &w.prog.Inst[pc]
		switch in.Op {
		case syntax.InstMatch:
			w.stack = stack
			return true
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, uint16(in.Arg), uint16(in.Out)) // under maxInsts
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, uint16(in.Out)) // under maxInsts
		case syntax.InstEmptyWidth:
			through, keep := assert(syntax.EmptyOp(in.Arg)) // a byte
			if through {
				stack = append(stack, uint16(in.Out)) // under maxInsts
			} else if keep {
				w.next = append(w.next, pc)
			}
		default:
			w.next = append(w.next, pc)
		}
	}
	w.stack = stack
	return false
}
