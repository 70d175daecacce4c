package linesearch

import (
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// automaton is a lazy DFA as in RE2. It decides byte by byte which lines match, with the result of [regexp] on each
// line as a separate text. A state is a set of instructions and the context before them. The automaton makes a state
// when a text first needs the state.
//
// If a line has invalid UTF-8 before it is known to match, regexp decides, which reads each invalid byte as U+FFFD: how
// many of the bytes of an incomplete rune are invalid is known only later. A list of words has no such lines.
type automaton struct {
	*alphabet
	prog      *syntax.Prog
	pool      sync.Pool    // of *walker: the next text reuses the states of a walker
	abandoned *atomic.Bool // the automaton needed new states so often that regexp is as fast
	lasting   bool         // the automaton is never abandoned: regexp takes as long as a new state for each byte
	maxMemory int          // maximum memory of the states of a walker, in bytes

	// Each state has these instructions, because a match may begin anywhere in a line. The key of a state leaves them
	// out: a list of words begins with dozens of them.
	restart   []uint32
	isRestart []bool // by instruction
}

// newAutomaton returns nil if the alphabet of the pattern would take too much memory. list is true for a list of words.
func newAutomaton(tree *syntax.Regexp, crlf, list bool, abandoned *atomic.Bool) *automaton {
	if list {
		tree = ofBytes(grouped(tree, 0))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	alpha := newAlphabet(prog, crlf, list)
	if alpha == nil {
		return nil
	}
	a := &automaton{
		alphabet: alpha, prog: prog, abandoned: abandoned, lasting: len(prog.Inst) > MaxProgram, maxMemory: maxWalker,
		isRestart: make([]bool, len(prog.Inst)),
	}
	w := &walker{automaton: a, mark: make([]uint32, len(prog.Inst))}
	w.beginTurn()
	w.add(uint32(prog.Start), false)
	for _, pc := range w.next {
		a.isRestart[pc] = true
	}
	a.restart = w.next
	return a
}

// walker runs the automaton over texts, in one goroutine at a time. The number of a state is the index in the table at
// which the row of the state starts.
type walker struct {
	*automaton
	ctx     context.Context   // context of the current scan
	trans   []uint32          // the table, which grows by a row for each state
	q       [lanes]uint32     // the states in use, which resetCache renumbers; most texts need the first alone
	keys    []string          // keys of the states, by row
	ids     map[string]uint32 // numbers of the states, by key
	memory  int               // size of the states in bytes
	start   uint32
	event   uint32 // smaller transitions are unknown, or end a line that matches or may match
	ended   uint32 // smaller transitions are unknown, or lead to a fixed row
	work    int    // instructions visited since the context was last checked
	seen    int    // bytes walked since the table was last cleared
	skipped int    // bytes skipped because the line was already known to match

	list, next []uint32 // sets of instructions: of the current state, and of the next
	stack      []uint32 // buffer of follow
	mark       []uint32 // by instruction: the last turn that visited the instruction
	turn       uint32   // number of the current step; each step visits an instruction at most once
	key        []byte   // buffer of intern and decodeState
}

// The first rows of each table. The first five have no key.
const (
	rowUnknown     = iota // the transition is not computed yet
	rowHit                // the line has ended and matches
	rowAskRegexp          // the line has ended; regexp must decide
	rowMatched            // the line is known to match
	rowInvalidUTF8        // the line is not valid UTF-8
	rowStart              // a line begins: the last one has ended without a match
	fixedRows
)

// Limits of a walker.
const (
	maxWalker   = 16 << 20 // size of all states in bytes
	stateMemory = 64       // bytes that a state takes besides its row and its key
	minWalk     = 16       // minimum bytes walked for each state until the table is full, else the automaton is abandoned
)

// walker returns a walker from the pool, or a new one.
func (a *automaton) walker() *walker {
	if w, ok := a.pool.Get().(*walker); ok {
		return w
	}
	w := &walker{automaton: a, mark: make([]uint32, len(a.prog.Inst))}
	w.event, w.ended = w.row(rowMatched), w.row(fixedRows)
	w.clearStates()
	return w
}

// row returns the number of the state that has a row.
func (a *automaton) row(n int) uint32 { return uint32(n * a.columns) }

// clearStates deletes all states, and makes the fixed rows.
func (w *walker) clearStates() {
	w.keys, w.trans = w.keys[:0], w.trans[:0]
	w.ids, w.memory, w.seen = map[string]uint32{}, 0, 0
	for range rowStart {
		w.addState("")
	}
	for c := range uint32(w.columns) {
		w.trans[w.row(rowMatched)+c] = w.row(rowMatched)
		w.trans[w.row(rowInvalidUTF8)+c] = w.row(rowInvalidUTF8)
	}
	w.trans[w.row(rowMatched)+uint32(w.class['\n'])] = w.row(rowHit)
	w.trans[w.row(rowInvalidUTF8)+uint32(w.class['\n'])] = w.row(rowAskRegexp)

	w.beginTurn()
	matches := w.add(uint32(w.prog.Start), true)
	w.start, _ = w.intern(w.next, noNode, atStart)
	if matches { // the pattern matches the empty text
		w.start = w.row(rowMatched)
	}
}

// resetCache clears a full table but keeps the states in use, which get new numbers. walked is the number of bytes not
// counted in w.seen yet. If most states were of little use, resetCache abandons the automaton and returns false.
func (w *walker) resetCache(walked int) bool {
	if !w.lasting && w.seen+walked < minWalk*len(w.keys) {
		w.abandoned.Store(true)
		return false
	}
	var keys [lanes]string
	for i, q := range w.q {
		keys[i] = w.keyOf(q)
	}
	w.clearStates()
	w.seen = -walked
	for i, k := range keys {
		if k != "" { // else a fixed row
			w.q[i], _ = w.internKey(k)
		}
	}
	return true
}

// Flags of the context before a state.
const (
	atStart   = 1 << iota // start of the line
	afterWord             // after a word byte
	afterCR               // after a \r that is not consumed yet, because it may belong to the line end
)

// intern returns the number of the state for a list of instructions, which it sorts, a node of the trie (or noNode) and
// the context before; false if the table is full.
func (w *walker) intern(list []uint32, node int16, before byte) (uint32, bool) {
	list = slices.DeleteFunc(list, func(pc uint32) bool { return w.isRestart[pc] })
	slices.Sort(list)
	k := append(w.key[:0], before)
	k = binary.LittleEndian.AppendUint16(k, uint16(node)) // decodeState converts back
	last := uint32(0)
	for _, pc := range list {
		k = binary.AppendUvarint(k, uint64(pc-last))
		last = pc
	}
	w.key = k
	if id, ok := w.ids[string(k)]; ok {
		return id, true
	}
	return w.internKey(string(k))
}

// internKey is intern for the key of a state.
func (w *walker) internKey(k string) (uint32, bool) {
	if id, ok := w.ids[k]; ok {
		return id, true
	}
	if len(w.keys) >= fixedRows+2*lanes && w.memory > w.maxMemory { // after a reset, each lane makes a step
		return 0, false
	}
	id := w.addState(k)
	w.ids[k] = id
	return id, true
}

// addState adds an empty row for a key, and returns its number.
func (w *walker) addState(k string) uint32 {
	id := w.row(len(w.keys))
	w.keys = append(w.keys, k)
	w.trans = append(w.trans, make([]uint32, w.columns)...)
	w.memory += 4*w.columns + len(k) + stateMemory
	return id
}

// addTransition computes and stores the transition from the state of lane k by a byte, and checks the context now and
// then. walked is the number of bytes not counted in w.seen yet. ok is false if the automaton was abandoned or the
// context has ended.
func (w *walker) addTransition(k int, b byte, walked int) (to uint32, ok bool) {
	for to, ok = w.transition(w.keyOf(w.q[k]), b); !ok; to, ok = w.transition(w.keyOf(w.q[k]), b) {
		if !w.resetCache(walked) {
			return 0, false
		}
	}
	w.trans[w.q[k]+uint32(w.class[b])] = to
	return to, w.checkContext() == nil
}

// keyOf returns the key of a state.
func (w *walker) keyOf(q uint32) string { return w.keys[q/uint32(w.columns)] }

// transition returns the state that follows a state, given by its key, after byte b; false if the table is full.
func (w *walker) transition(key string, b byte) (uint32, bool) {
	before, node := w.decodeState(key)
	if node != noNode {
		return w.transitionInRune(node, b)
	}
	if before&afterCR != 0 && b != '\n' {
		if w.consume('\r', before) {
			return w.row(rowMatched), true
		}
		before = w.wordBefore('\r')
		w.list, w.next = w.next, w.list
	}
	switch {
	case b == '\n':
		if w.resolve(flagsAt(before, false) | syntax.EmptyEndText | syntax.EmptyEndLine) { // the line ends here
			return w.row(rowHit), true
		}
		return w.start, true
	case b == '\r' && w.crlf:
		return w.intern(w.list, noNode, before|afterCR)
	case w.bytes || b < utf8.RuneSelf:
		if w.consume(rune(b), before) {
			return w.row(rowMatched), true
		}
		return w.intern(w.next, noNode, w.wordBefore(rune(b)))
	case w.lead[b] == noNode:
		return w.row(rowInvalidUTF8), true
	}
	if w.resolve(flagsAt(before, false)) {
		return w.row(rowMatched), true
	}
	return w.intern(w.list, w.lead[b], 0)
}

// transitionInRune is transition for a byte inside a multi-byte rune.
func (w *walker) transitionInRune(node int16, b byte) (uint32, bool) {
	if b == '\n' {
		return w.row(rowAskRegexp), true
	}
	n := &w.nodes[node]
	if b&0xC0 != 0x80 || n.to[b&0x3F] == noNode {
		return w.row(rowInvalidUTF8), true
	}
	to := n.to[b&0x3F]
	if !n.last {
		return w.intern(w.list, to, 0)
	}
	if w.move(w.letters[to]) {
		return w.row(rowMatched), true
	}
	return w.intern(w.next, noNode, 0)
}

// decodeState decodes the key of a state, and stores the instructions of the state in w.list.
func (w *walker) decodeState(key string) (before byte, node int16) {
	w.key = append(w.key[:0], key...)
	w.list = w.list[:0]
	pc := uint32(0)
	for at := 3; at < len(key); {
		more, n := binary.Uvarint(w.key[at:])
		pc += uint32(more)
		w.list = append(w.list, pc)
		at += n
	}
	w.list = append(w.list, w.restart...)
	w.work += len(w.list) + 16
	return key[0], int16(uint16(key[1]) | uint16(key[2])<<8)
}

// consume steps over an ASCII rune from w.list to w.next. It reports whether the line is known to match then.
func (w *walker) consume(r rune, before byte) bool {
	return w.resolve(flagsAt(before, isWord(byte(r)))) || w.move(r)
}

// wordBefore returns the context after an ASCII rune: afterWord, or 0 if no instruction in w.next depends on that.
func (w *walker) wordBefore(r rune) byte {
	if !isWord(byte(r)) {
		return 0
	}
	for _, pc := range w.next {
		if w.prog.Inst[pc].Op == syntax.InstEmptyWidth {
			return afterWord
		}
	}
	return 0
}

// flagsAt returns the assertions that hold between the context and the next rune; word is true if the next rune is a
// word character.
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

// resolve replaces each assertion in w.list that holds by the instructions after the assertion, and drops the others.
// It reports whether the line is known to match then.
func (w *walker) resolve(f syntax.EmptyOp) bool {
	if !slices.ContainsFunc(w.list, func(pc uint32) bool { return w.prog.Inst[pc].Op == syntax.InstEmptyWidth }) {
		return false
	}
	w.beginTurn()
	for _, pc := range w.list {
		if w.follow(pc, func(op syntax.EmptyOp) (through, keep bool) { return op&^f == 0, false }) {
			return true
		}
	}
	w.list, w.next = w.next, w.list
	return false
}

// move steps over a rune from w.list to w.next, and adds the start of a new match. It reports whether the line is known
// to match then.
func (w *walker) move(r rune) bool {
	w.beginTurn()
	for _, pc := range w.list {
		if in := &w.prog.Inst[pc]; matchRune(in, r) && w.add(in.Out, false) {
			return true
		}
	}
	w.next = append(w.next, w.restart...)
	return false
}

// beginTurn empties w.next and marks all instructions as not visited.
func (w *walker) beginTurn() {
	w.next = w.next[:0]
	if w.turn++; w.turn == 0 {
		clear(w.mark)
		w.turn = 1
	}
}

// add adds to w.next the instructions that pc reaches without reading a rune, and assertions that may still hold. start
// is true at the start of the line.
func (w *walker) add(pc uint32, start bool) (match bool) {
	return w.follow(pc, func(op syntax.EmptyOp) (through, keep bool) {
		return false, start || op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0
	})
}

// follow adds to w.next the instructions that pc reaches without reading a rune, and reports whether a match is among
// them. assert decides whether an assertion is passed, kept or dropped.
func (w *walker) follow(pc uint32, assert func(syntax.EmptyOp) (through, keep bool)) (match bool) {
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
			stack = append(stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			through, keep := assert(syntax.EmptyOp(in.Arg))
			if through {
				stack = append(stack, in.Out)
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
