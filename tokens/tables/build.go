package tables

import (
	"encoding/binary"
	"fmt"
)

// InOrder is the tokens of a rank file in order of rank.
func InOrder(ranks map[string]int) ([]string, error) {
	tokens := make([]string, len(ranks))
	for t, rank := range ranks {
		if rank < 0 || rank >= len(tokens) || tokens[rank] != "" {
			return nil, fmt.Errorf("ranks are not 0 … %d", len(tokens)-1)
		}
		tokens[rank] = t
	}
	return tokens, nil
}

// Build makes the table of a vocabulary from its tokens in order of rank. The same tokens make the same bytes.
func Build(tokens []string) ([]byte, error) {
	slots := 1
	for slots < 2*len(tokens) { // at most half are taken: what is no token is known after a slot or two
		slots *= 2
	}
	longest := 0
	table := make([]byte, headSize+pairsSize+slotSize*slots)
	inPairs, inSlots := table[headSize:][:pairsSize], table[headSize+pairsSize:]
	for i := range inPairs {
		inPairs[i] = 0xff
	}
	var tail []byte
	for rank, t := range tokens {
		if t == "" || len(t) >= 1<<(32-rankBits) {
			return nil, fmt.Errorf("token %d has %d bytes", rank, len(t))
		}
		longest = max(longest, len(t))
		if len(t) == 2 {
			binary.LittleEndian.PutUint32(inPairs[4*(int(t[0])<<8|int(t[1])):], uint32(rank))
		}
		h := hash([]byte(t))
		at := uint32(h) & uint32(slots-1)
		for binary.LittleEndian.Uint32(inSlots[slotSize*at:]) != 0 {
			at = (at + 1) & uint32(slots-1)
		}
		tail = binary.LittleEndian.AppendUint32(tail, uint32(len(t))<<rankBits|uint32(rank))
		binary.LittleEndian.PutUint32(inSlots[slotSize*at:], uint32(h>>(32+placeBits))<<placeBits|uint32(len(tail)))
		tail = append(tail, t...)
	}
	if len(tail) >= 1<<placeBits || len(tokens) >= 1<<rankBits {
		return nil, fmt.Errorf("%d tokens of %d bytes do not fit the table's fields", len(tokens), len(tail))
	}
	binary.LittleEndian.PutUint32(table, uint32(slots))
	binary.LittleEndian.PutUint32(table[4:], uint32(longest))
	return append(table, tail...), nil
}
