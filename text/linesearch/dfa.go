package linesearch

import (
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
)

// automaton is a lazy DFA as in RE2. It decides byte by byte which lines match, with the result of [regexp] on each
// line as a separate text. A state is a set of instructions and the context before them. The automaton makes a state
// when a text first needs the state.
//
// If a line has invalid UTF-8 before it is known to match, regexp decides, which reads each invalid byte as U+FFFD: how
// many of the bytes of an incomplete rune are invalid is known only later.
type automaton struct {
	*alphabet
	prog           *syntax.Prog
	pool           sync.Pool    // of *walker: the next text reuses the states of a walker
	abandoned      *atomic.Bool // the automaton needed new states so often that regexp is as fast
	maxStates      int          // maximum number of states of a walker: the number of rows of its table
	maxEarlyResets int          // number of early resets of the table after which the automaton is abandoned
	linear         bool         // the pattern is a row of characters: see linearWalk
}

// newAutomaton returns nil if the alphabet of the pattern would take too much memory.
func newAutomaton(tree *syntax.Regexp, crlf bool, abandoned *atomic.Bool) *automaton {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxInsts {
		return nil
	}
	alpha := newAlphabet(prog, crlf)
	if alpha == nil {
		return nil
	}
	return &automaton{
		alphabet: alpha, prog: prog, abandoned: abandoned, maxStates: 1 << (16 - alpha.shift),
		maxEarlyResets: defaultEarlyResets,
	}
}

// maxInsts is the maximum number of instructions: a state stores the number of each in a uint16.
const maxInsts = 1 << 16

// walker runs the automaton over texts, in one goroutine at a time. Its transition table takes 128 KB for any pattern.
// The number of a state is the index in the table at which the row of the state starts.
type walker struct {
	*automaton
	ctx         context.Context // context of the current scan
	trans       *[1 << 16]uint16
	keys        []string          // keys of the states, by row
	ids         map[string]uint16 // numbers of the states, by key
	size        int               // total size of the keys, in bytes
	start       uint16
	event       uint16 // smaller transitions are unknown, or end a line that matches or may match
	ended       uint16 // smaller transitions are unknown or lead to a fixed row
	work        int    // instructions visited since the context was last checked
	seen        int    // bytes walked since the table was last cleared
	skipped     int    // bytes skipped because the line was already known to match
	earlyResets int    // number of consecutive early resets, see resetCache

	list, next []uint16 // sets of instructions: of the current state, and of the next
	stack      []uint16 // buffer of follow
	mark       []uint32 // by instruction: the last turn that visited the instruction
	turn       uint32   // number of the current step; each step visits an instruction at most once
	key        []byte   // buffer of intern
}

// The first rows of each table. They have no key.
const (
	rowUnknown     = iota // the transition is not computed yet
	rowHit                // the line has ended and matches
	rowAskRegexp          // the line has ended; regexp must decide
	rowMatched            // the line is known to match
	rowInvalidUTF8        // the line is not valid UTF-8
	fixedRows
)

// Limits of a walker besides its table.
const (
	maxKeys            = 1 << 20 // total size of the keys of all states, in bytes
	linearWalk         = 1 << 10 // bytes walked for each state: below it a row of characters is faster
	minWalk            = 16      // minimum bytes walked for each state before a reset, else the reset is early
	defaultEarlyResets = 4       // default of automaton.maxEarlyResets
)

// walker returns a walker from the pool, or a new one.
func (a *automaton) walker() *walker {
	if w, ok := a.pool.Get().(*walker); ok {
		return w
	}
	w := &walker{automaton: a, trans: new([1 << 16]uint16), mark: make([]uint32, len(a.prog.Inst))}
	w.event, w.ended = rowMatched<<a.shift, fixedRows<<a.shift
	w.clearStates()
	return w
}

// clearStates deletes all states, and makes the fixed rows and the start state.
func (w *walker) clearStates() {
	if len(w.keys) > 0 { // a new table is empty
		clear(w.trans[:])
	}
	w.keys = append(w.keys[:0], make([]string, fixedRows)...)
	w.ids, w.size, w.seen = map[string]uint16{}, 0, 0
	for c := range 1 << w.shift {
		w.trans[rowMatched<<w.shift+c] = rowMatched << w.shift
		w.trans[rowInvalidUTF8<<w.shift+c] = rowInvalidUTF8 << w.shift
	}
	w.trans[rowMatched<<w.shift+int(w.class['\n'])] = rowHit << w.shift
	w.trans[rowInvalidUTF8<<w.shift+int(w.class['\n'])] = rowAskRegexp << w.shift

	w.beginTurn()
	if w.add(uint16(w.prog.Start), true) { // the pattern matches the empty text
		w.start = rowMatched << w.shift
		return
	}
	w.start, _ = w.intern(w.next, noNode, atStart)
}

// resetCache clears a full table but keeps the states in use, which get new numbers. walked is the number of bytes not
// counted in w.seen yet. If maxEarlyResets consecutive resets are early, resetCache abandons the automaton and returns
// false.
func (w *walker) resetCache(walked int, inUse []uint16) bool {
	if w.linear && w.seen+walked < linearWalk*len(w.keys) {
		w.abandoned.Store(true)
		return false
	}
	if w.seen+walked < minWalk*len(w.keys) {
		if w.earlyResets++; w.earlyResets >= w.maxEarlyResets {
			w.abandoned.Store(true)
			return false
		}
	} else {
		w.earlyResets = 0
	}
	keys := make([]string, len(inUse))
	for i, q := range inUse {
		keys[i] = w.keys[q>>w.shift]
	}
	w.clearStates()
	w.seen = -walked
	for i, k := range keys {
		if k == "" { // a fixed row
			continue
		}
		inUse[i], _ = w.internKey(k)
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
func (w *walker) intern(list []uint16, node int16, before byte) (uint16, bool) {
	slices.Sort(list)
	k := append(w.key[:0], before)
	k = binary.LittleEndian.AppendUint16(k, uint16(node)) // decodeState converts back
	for _, pc := range list {
		k = binary.LittleEndian.AppendUint16(k, pc)
	}
	w.key = k
	if id, ok := w.ids[string(k)]; ok {
		return id, true
	}
	return w.internKey(string(k))
}

// internKey is intern for the key of a state.
func (w *walker) internKey(k string) (uint16, bool) {
	if id, ok := w.ids[k]; ok {
		return id, true
	}
	if len(w.keys) >= w.maxStates || len(w.keys) > fixedRows+lanes && w.size+len(k) > maxKeys {
		return 0, false
	}
	id := uint16(len(w.keys) << w.shift)
	w.keys = append(w.keys, k)
	w.ids[k] = id
	w.size += len(k)
	return id, true
}

// addTransition computes and stores the transition from a state by a byte; false if the table is full.
func (w *walker) addTransition(q uint16, b byte) (uint16, bool) {
	to, ok := w.transition(w.keys[q>>w.shift], b)
	if ok {
		w.trans[q+uint16(w.class[b])] = to
	}
	return to, ok
}

// transition returns the state that follows a state, given by its key, after byte b; false if the table is full.
func (w *walker) transition(key string, b byte) (uint16, bool) {
	before, node := w.decodeState(key)
	if node != noNode {
		return w.transitionInRune(node, b)
	}
	if before&afterCR != 0 && b != '\n' {
		if w.consume('\r', before) {
			return rowMatched << w.shift, true
		}
		before = w.wordBefore('\r')
		w.list, w.next = w.next, w.list
	}
	switch {
	case b == '\n':
		if w.resolve(flagsAt(before, false) | syntax.EmptyEndText | syntax.EmptyEndLine) { // the line ends here
			return rowHit << w.shift, true
		}
		return w.start, true
	case b == '\r' && w.crlf:
		return w.intern(w.list, noNode, before|afterCR)
	case b < 0x80:
		if w.consume(rune(b), before) {
			return rowMatched << w.shift, true
		}
		return w.intern(w.next, noNode, w.wordBefore(rune(b)))
	case w.lead[b] == noNode:
		return rowInvalidUTF8 << w.shift, true
	}
	if w.resolve(flagsAt(before, false)) {
		return rowMatched << w.shift, true
	}
	return w.intern(w.list, w.lead[b], 0)
}

// transitionInRune is transition for a byte inside a multi-byte rune.
func (w *walker) transitionInRune(node int16, b byte) (uint16, bool) {
	if b == '\n' {
		return rowAskRegexp << w.shift, true
	}
	n := &w.nodes[node]
	if b&0xC0 != 0x80 || n.to[b&0x3F] == noNode {
		return rowInvalidUTF8 << w.shift, true
	}
	to := n.to[b&0x3F]
	if !n.last {
		return w.intern(w.list, to, 0)
	}
	if w.move(w.letters[to]) {
		return rowMatched << w.shift, true
	}
	return w.intern(w.next, noNode, 0)
}

// decodeState decodes the key of a state, and stores the instructions of the state in w.list.
func (w *walker) decodeState(key string) (before byte, node int16) {
	w.list = w.list[:0]
	for i := 3; i < len(key); i += 2 {
		w.list = append(w.list, uint16(key[i])|uint16(key[i+1])<<8)
	}
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
	if !slices.ContainsFunc(w.list, func(pc uint16) bool { return w.prog.Inst[pc].Op == syntax.InstEmptyWidth }) {
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

// move steps over a rune from w.list, which has no assertions, to w.next, and adds the start of a new match. It
// reports whether the line is known to match then.
func (w *walker) move(r rune) bool {
	w.beginTurn()
	for _, pc := range w.list {
		if in := &w.prog.Inst[pc]; matchRune(in, r) && w.add(uint16(in.Out), false) {
			return true
		}
	}
	return w.add(uint16(w.prog.Start), false)
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
func (w *walker) add(pc uint16, start bool) (match bool) {
	return w.follow(pc, func(op syntax.EmptyOp) (through, keep bool) {
		return false, start || op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0
	})
}

// follow adds to w.next the instructions that pc reaches without reading a rune, and reports whether a match is among
// them. assert decides whether an assertion is passed, kept or dropped.
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
			stack = append(stack, uint16(in.Arg), uint16(in.Out))
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, uint16(in.Out))
		case syntax.InstEmptyWidth:
			through, keep := assert(syntax.EmptyOp(in.Arg))
			if through {
				stack = append(stack, uint16(in.Out))
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
