package secrets

import "strings"

// nibbles are lookup tables for sixteen sets of grams: for each of the four bytes of a gram, one table by the byte's
// lower half and one by its upper half. An entry has one bit per set that contains such a gram: entries 0–15 for the
// first eight sets, 16–31 for the others. If all eight look-ups have a set in common, a gram may start there. In
// logs, JSON, prose and source this is so at one position in 25 to 100.
type nibbles [2 * gram][32]byte

// setLists are the sets, chosen by experiment on logs, JSON, prose and source so that little other text passes. A
// listed gram represents all grams with the same first three bytes. A gram that no list represents is put into the
// first set.
var setLists = [16]string{
	`:aa-|glc_|glff|gloa|gldt|glag|+acr|+aeh|cloj`,
	`ter-|glsa|glrt|glpa|dor_|dop_|ghr_|ghs_|bkua|ghu_|ghp_|key-`,
	`cio0|aiot|oy20|lin_|fio-|figd|eyj0`,
	`ess-|uth_|ico-|ops_|glim|eztk|ezak|gho_|gsk_|ypi-`,
	`ass"|asia|acca|akia|psca|pwd |lsv2|acdb|akcp|app_`,
	`rer |rra-|priv|hrku|hvr.|hvs.|pul-|xai-|ruby|rzp_|xapp|pplx|hvb.`,
	`tatt|toke|.atl|dapi|doo_|tfp_|dckr|ncry|t3bl|nfp_`,
	`sg.-|sk-a|sk.e|+asb|v1.0|squ_`,
	`sic |shpa|sign|_pas|sq0a|sqa_|ya29|sqp_`,
	`://$| -u |--us|--pr|----`,
	`reda|ooki|fm1a|gocs|fm2_|pmak|@tcp|@uni`,
	`scw0|r8_0|hf_a|rk_l|sk_l|xoxa|sb_s|flws|phx_`,
	`sec_|sntr|set-|coun|pnu_|p8e-|cmvm|sgp_|sbp_`,
	`atct|dt0c|ntn_|duff|atbb|azdo|npm_|.web`,
	`api-|disc|azse|dp.a|abia|dme_|age-|aiza|absk|azfu`,
	`ntia|nrii|ltai|ithu|nrak|ssph|ship|ccip|cfpa`,
}

// known is a bit set of the grams, by a hash of their four bytes. About one in 130 other strings of four bytes is a
// false positive.
type known [1 << 10]uint64

func knownPlace(g uint32) uint32 { return g * 2654435761 >> 16 }

func (t *known) add(g uint32) { t[knownPlace(g)>>6] |= 1 << (knownPlace(g) & 63) }

func (t *known) has(g uint32) bool { return t[knownPlace(g)>>6]>>(knownPlace(g)&63)&1 != 0 }

// mask sets in may the bit of each of the first n positions of b at which a gram may start, and clears the others.
func (t *known) mask(b []byte, n int, may *[candidateBytes / 64]uint64) {
	clear(may[:(n+63)/64])
	for i := range n {
		if t.has(foldGram(b[i:])) {
			may[i/64] |= 1 << (i % 64)
		}
	}
}

// newNibbles puts each gram into a set.
func newNibbles(grams []uint32) *nibbles {
	of := map[uint32]int{} // set of a gram, by the gram's first three bytes
	for set, list := range setLists {
		for g := range strings.SplitSeq(list, "|") {
			of[foldGram([]byte(g))<<8] = set
		}
	}
	t := &nibbles{}
	for _, g := range grams {
		set := of[g<<8]
		bit, lane := byte(1)<<(set%8), 16*(set/8)
		for k := range gram { // in lower and upper case
			c := byte(g >> (8 * k))
			t[2*k][lane+int(c&15)] |= bit
			t[2*k+1][lane+int(c>>4)] |= bit
			t[2*k+1][lane+int(c>>4&^2)] |= bit
		}
	}
	return t
}
