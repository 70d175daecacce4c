// Package embed turns a text into a vector by a static table, so that passages can be compared by meaning without a
// model: a vector is the weighted mean of the table's rows of the text's pieces. It knows English, and little else.
//
// scripts/embedding made the table from the model all-MiniLM-L6-v2 (sentence-transformers, Apache License 2.0), in the
// way of Model2Vec.
package embed

import (
	_ "embed" // the table
	"encoding/binary"
	"math"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed table.zst
var packed []byte

const (
	// Dimensions is the number of components of a vector.
	Dimensions = 256

	maxWord = 100 // characters; a longer word is unknown
	unknown = 100 // the id of the piece [UNK], whose row is zero
	// The scales of the table are multiplied by scaleUnit: MaxPieces components of 255 times at most maxScale make a sum
	// of 32 bits.
	scaleUnit, maxScale = 1 << 19, 1<<16 - 1
)

// table is the vocabulary with the vectors of its pieces.
type table struct {
	// words and parts map a piece to its id. Parts are those that continue a word, without their prefix ##.
	words, parts map[string]uint16
	longest      int      // length in bytes of the longest piece
	scales       []uint64 // of the rows, by id; 0 for a row that is zero
	rows         []byte   // Dimensions for each id: 128 + the component divided by the scale
}

// load returns the table, which it unpacks at the first call.
var load = sync.OnceValue(unpack)

// unpack unpacks the table, which takes about 20 ms, and 11 MB for as long as the program runs. Its format, all numbers
// little-endian:
//
//	uint32                 the number n of pieces
//	n × float32            the scales
//	n × string             the pieces, each with a newline, by id
//	Dimensions × n × byte  the columns
func unpack() *table {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)) // fails only for bad options
	defer d.Close()
	b, err := d.DecodeAll(packed, nil)
	if err != nil {
		panic(err) // not reached: a test reads the table
	}
	n := int(binary.LittleEndian.Uint32(b))
	scales, columns := b[4:], b[len(b)-n*Dimensions:]
	pieces := string(b[4+4*n : len(b)-len(columns)])
	t := &table{words: make(map[string]uint16, n), parts: make(map[string]uint16, n/4), rows: make([]byte, len(columns))}
	for id := range n {
		row := t.rows[id*Dimensions:][:Dimensions]
		for i := range row {
			row[i] = columns[i*n+id]
		}
	}
	for piece := range strings.SplitSeq(strings.TrimSuffix(pieces, "\n"), "\n") {
		id := len(t.scales)
		scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(scales[4*id:])))
		t.scales = append(t.scales, uint64(math.Round(scale*scaleUnit)))
		if part, ok := strings.CutPrefix(piece, "##"); ok && part != "" {
			t.parts[part] = uint16(id)
		} else {
			t.words[piece] = uint16(id)
		}
		t.longest = max(t.longest, len(piece))
	}
	return t
}
