package embed

import (
	"encoding/binary"
	"math"
	"unicode"
	"unicode/utf8"
)

// MaxPieces is how many pieces of a text have a part in its vector; the rest is ignored. It is where the model itself
// ends, and about 500 bytes of English: passages of an index are not longer.
const MaxPieces = 128

// Vector returns the vector of a text, of length 1; zeros if no piece of the text is in the vocabulary.
func Vector(text string) []float32 {
	// Each uint64 holds two sums of 32 bits, so that one multiplication serves two components: of each 8 components, the
	// first uint64 holds the sums of 0 and 4, the next those of 1 and 5, then 2 and 6, 3 and 7.
	var sums [Dimensions / 2]uint64
	t, bias := load(), uint64(0)
	for _, id := range t.pieces(text) {
		scale := t.scales[id]
		bias += 128 * scale
		row := t.rows[int(id)*Dimensions:][:Dimensions]
		for i := 0; i < Dimensions/2; i += 4 {
			const mask = 0x000000ff_000000ff
			x := binary.LittleEndian.Uint64(row[2*i:])
			s := sums[i:][:4]
			s[0] += x & mask * scale
			s[1] += x >> 8 & mask * scale
			s[2] += x >> 16 & mask * scale
			s[3] += x >> 24 & mask * scale
		}
	}
	v := make([]float32, Dimensions)
	var square float64
	for i, s := range sums {
		at := i/4*8 + i%4
		low, high := float64(int64(s&math.MaxUint32)-int64(bias)), float64(int64(s>>32)-int64(bias))
		v[at], v[at+4] = float32(low), float32(high)
		square += low*low + high*high
	}
	shorter := float32(1 / math.Sqrt(max(square, 1))) // the components are integers
	for i := range v {
		v[i] *= shorter
	}
	return v
}

// A component of a packed vector is packedScale times as large, and one of a query queryScale times. No component of a
// passage is above 127/192 (at 256, 0.8 % of passages have one, and their cosine is wrong by up to 0.03).
const packedScale, queryScale = 192, 1 << 14

// Packed returns the vector of a text as an index stores it, with a signed byte for each component.
func Packed(text string) []byte {
	b := make([]byte, Dimensions)
	for i, c := range Vector(text) {
		b[i] = byte(int8(max(-127, min(127, math.Round(float64(c)*packedScale)))))
	}
	return b
}

// Query is a vector to compare packed ones with.
type Query [Dimensions]int32

// NewQuery returns the query of a vector of length 1.
func NewQuery(vector []float32) *Query {
	var q Query
	for i, c := range vector[:Dimensions] {
		q[i] = int32(math.Round(float64(c) * queryScale))
	}
	return &q
}

// Cosine returns the cosine of the query and a packed vector, of Dimensions bytes: within 0.01, on average 0.002.
func (q *Query) Cosine(packed []byte) float64 {
	p := packed[:Dimensions]
	var a, b, c, d int32 // no sum has more than 32 bits: both vectors have length 1
	for i := 0; i < Dimensions; i += 4 {
		a += q[i] * int32(int8(p[i]))
		b += q[i+1] * int32(int8(p[i+1]))
		c += q[i+2] * int32(int8(p[i+2]))
		d += q[i+3] * int32(int8(p[i+3]))
	}
	return float64(a+b+c+d) / (queryScale * packedScale)
}

// Known returns the share of a text's words that the table knows, from 0 to 1. Of 200 questions, all in English have half
// or more, none in German and one of 20 in French. A word of at most 4 letters must be among the 2,000 most frequent
// pieces: the vocabulary has the articles of many languages.
func Known(text string) float64 {
	all, known := 0, 0
	eachWord(text, func(word []byte) bool {
		if r, size := utf8.DecodeRune(word); word == nil || unicode.IsLetter(r) {
			all++
			if id, ok := load().words[string(word)]; ok && size == 1 && (len(word) > 4 || id < 4000) {
				known++
			}
		}
		return true
	})
	return float64(known) / float64(max(all, 1))
}
