package tables

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// words is a set of short tokens: a perfect hash table in which each key has exactly one possible slot. A key's slot
// depends on its hash and on a pilot, a byte shared by all keys whose hashes end with the same bits. All pilots
// together fit into the CPU cache, so a lookup costs one cache miss.
type words struct {
	pilots, keys string
}

const (
	wordMax   = 15 // maximum length of a token in a set, in bytes
	shortWord = 8  // tokens of up to 8 bytes have keys of 8 bytes, longer ones of 16
)

// Key returns the first n bytes of text, 1 to 15, as two numbers. The topmost four bits of high are the length; the
// four bits below them are 0.
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

// Hash returns the hash of a [Key].
func Hash(low, high uint64) uint64 {
	over, mixed := bits.Mul64(low^0x9e3779b97f4a7c15, high^0xd1342543de82ef95)
	return over ^ mixed
}

// IsToken reports whether a [Key] is that of a token; hash is its [Hash]. It returns false for tokens of up to 8
// bytes that end with a NUL, because their keys in the set do not hold the length.
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

// wordsOf makes the sets of short tokens (up to 8 bytes) and long tokens (9 to 15 bytes).
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

// setOf makes a set with one or two numbers per key. Pilots shared by many keys are chosen first, while most slots
// are free.
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

// pilotOf returns a pilot with which each of the keys gets a free slot of its own.
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
