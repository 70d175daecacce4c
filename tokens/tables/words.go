package tables

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// words is a set of short tokens as a perfect hash: a key can stand in one place only, which is told by its hash and a pilot, a
// byte that all keys have in common whose hashes end with the same bits. The pilots are few enough to stay near, so
// that a question costs one line of the cache that is not.
type words struct {
	pilots, keys string
}

const (
	wordMax   = 15 // the longest token in bytes that is in a set
	shortWord = 8  // up to here a token's key has 8 bytes
)

// Key is a piece of 1 to 15 bytes, the n that text begins with: its bytes, and its length in the topmost four bits. The four
// bits below are 0.
func Key(text []byte, n int) (low, high uint64) {
	if len(text) >= 16 {
		low, high = binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		if n <= 8 {
			return low << (64 - 8*n) >> (64 - 8*n), uint64(n) << 60
		}
		return low, high<<(128-8*n)>>(128-8*n) | uint64(n)<<60
	}
	for i, c := range text[:n] {
		if i < 8 {
			low |= uint64(c) << (8 * i)
		} else {
			high |= uint64(c) << (8 * (i - 8))
		}
	}
	return low, high | uint64(n)<<60
}

// Hash is a key's.
func Hash(low, high uint64) uint64 {
	over, mixed := bits.Mul64(low^0x9e3779b97f4a7c15, high^0xd1342543de82ef95)
	return over ^ mixed
}

// IsToken says whether a piece is a token, by its key and that key's hash. It does not know tokens of up to 8 bytes that end with
// a NUL, as their keys do not tell how long they are.
func (v *Vocabulary) IsToken(low, high, hash uint64) bool {
	n := high >> 60
	if n > shortWord {
		at := 2 * v.long.place(hash, len(v.long.keys)/16)
		return le64(v.long.keys, at) == low && le64(v.long.keys, at+1) == high
	}
	return le64(v.short.keys, v.short.place(hash, len(v.short.keys)/8)) == low && low>>(8*n-8) != 0
}

func (w *words) place(hash uint64, places int) uint32 {
	return placeOf(hash, w.pilots[hash&uint64(len(w.pilots)-1)], places)
}

func placeOf(hash uint64, pilot byte, places int) uint32 {
	over, _ := bits.Mul64(hash*(0xd1342543de82ef95+uint64(pilot)*0x3c6ef372fe94f82a), uint64(places))
	return uint32(over)
}

// wordsOf makes both sets.
func wordsOf(tokens []string) (short, long words, err error) {
	var keys [2][]wordKey
	for _, t := range tokens {
		if n := len(t); n <= wordMax && (n > shortWord || t[n-1] != 0) {
			low, high := Key([]byte(t), n)
			keys[n/(shortWord+1)] = append(keys[n/(shortWord+1)], wordKey{low, high, Hash(low, high)})
		}
	}
	if short, err = setOf(keys[0], 1); err == nil {
		long, err = setOf(keys[1], 2)
	}
	return short, long, err
}

type wordKey struct{ low, high, hash uint64 }

// setOf makes a set with keys of so many numbers. The pilots of most keys are sought first, as long as there is room.
func setOf(keys []wordKey, numbers int) (words, error) {
	pilots := make([]byte, 1<<bits.Len(uint(len(keys)/4)))
	of := make([][]wordKey, len(pilots))
	for _, k := range keys {
		at := k.hash % uint64(len(of))
		of[at] = append(of[at], k)
	}
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(of[b]), len(of[a])) })
	set := make([]wordKey, len(keys)+len(keys)/8+1)
	for _, at := range order {
		pilot, ok := pilotOf(of[at], set)
		if !ok {
			return words{}, fmt.Errorf("no place for %x among %d", of[at], len(keys))
		}
		pilots[at] = pilot
		for _, k := range of[at] {
			set[placeOf(k.hash, pilot, len(set))] = k
		}
	}
	var table []byte
	for _, k := range set {
		table = binary.LittleEndian.AppendUint64(table, k.low)
		if numbers == 2 {
			table = binary.LittleEndian.AppendUint64(table, k.high)
		}
	}
	return words{string(pilots), string(table)}, nil
}

// pilotOf is a pilot by which all keys find a place of their own.
func pilotOf(keys, set []wordKey) (pilot byte, ok bool) {
	var taken []uint32
next:
	for p := range 256 {
		taken = taken[:0]
		for _, k := range keys {
			at := placeOf(k.hash, byte(p), len(set))
			if set[at] != (wordKey{}) || slices.Contains(taken, at) {
				continue next
			}
			taken = append(taken, at)
		}
		return byte(p), true
	}
	return 0, false
}
