package secrets

import "strings"

// nibbles say of sixteen sets of grams where one of a set may stand: of each of a gram's four bytes the sets that have such a lower
// half there, and such a higher one, eight sets in the first 16 entries and eight in the others. Where all eight agree on a set,
// a gram may begin: in logs, JSON, prose and source that is one place of 25 to 100.
type nibbles [2 * gram][32]byte

// arranged are the sets, found by trying on logs, JSON, prose and source which grams together let least other text pass. A gram
// stands here for all that begin with the same three bytes; one that stands in none goes to the first.
var arranged = [16]string{
	`:aa-|glc_|glff|gloa|gldt|glag|+acr|+aeh|cloj`,
	`ter-|glsa|glrt|glpa|dor_|dop_|ghr_|ghs_|bkua|ghu_|ghp_|key-`,
	`cio0|aiot|oy20|lin_|fio-|figd|eyj0`,
	`ess-|uth_|ico-|ops_|glim|eztk|ezak|gho_|gsk_|ypi-`,
	`ass"|asia|acca|akia|psca|pwd |lsv2|acdb|akcp`,
	`rer |rra-|priv|hrku|hvr.|hvs.|pul-|xai-|ruby|rzp_|xapp|pplx|hvb.`,
	`tatt|toke|.atl|dapi|doo_|tfp_|dckr|ncry|t3bl|nfp_`,
	`sg.-|sk-a|sk.e|+asb|v1.0|squ_`,
	`sic |shpa|sign|_pas|sq0a|sqa_|ya29|sqp_`,
	`://$| -u |--us|--pr|----`,
	`reda|ooki|fm1a|gocs|fm2_|pmak`,
	`scw0|r8_0|hf_a|rk_l|sk_l|xoxa|sb_s|flws|phx_`,
	`sec_|sntr|set-|coun|pnu_|p8e-|cmvm|sgp_|sbp_`,
	`atct|dt0c|ntn_|duff|atbb|azdo|npm_|.web`,
	`api-|disc|azse|dp.a|abia|dme_|age-|aiza|absk|azfu`,
	`ntia|nrii|ltai|ithu|nrak|ssph|ship|ccip|cfpa`,
}

// known has a bit for each gram there is, by a hash of its four bytes: of other grams one of 130 has one too.
type known [1 << 10]uint64

func knownPlace(g uint32) uint32 { return g * 2654435761 >> 16 }

func (t *known) add(g uint32) { t[knownPlace(g)>>6] |= 1 << (knownPlace(g) & 63) }

// bit is 1 where g may be a gram.
func (t *known) bit(g uint32) uint64 { return t[knownPlace(g)>>6] >> (knownPlace(g) & 63) & 1 }

// sets are what vectors look for, and what of what they find may be a gram.
type sets struct {
	nibbles nibbles
	known   known
}

// setsOf puts each gram into a set.
func setsOf(grams []uint32) *sets {
	of := map[uint32]int{} // the lower three bytes of a gram: its set
	for set, list := range arranged {
		for g := range strings.SplitSeq(list, "|") {
			of[foldGram([]byte(g))<<8] = set
		}
	}
	t := &sets{}
	for _, g := range grams {
		t.known.add(g)
		t.nibbles.add([]byte{byte(g), byte(g >> 8), byte(g >> 16), byte(g >> 24)}, of[g<<8])
	}
	return t
}

// add lets a gram, and the same in the other case, be of a set.
func (t *nibbles) add(g []byte, set int) {
	bit, lane := byte(1)<<(set%8), 16*(set/8)
	for k, c := range g {
		t[2*k][lane+int(c&15)] |= bit
		t[2*k+1][lane+int(c>>4)] |= bit
		t[2*k+1][lane+int(c>>4&^2)] |= bit
	}
}

// ahead is where grams may begin in a stretch of a text, found before it is asked for.
type ahead struct {
	from, to int  // none: equal
	none     bool // nowhere
	may      [aheadBytes / 64]uint64
}

const aheadBytes = 4 << 10

// aheadOf is nil for a text that vectors do not pay for.
func aheadOf(b []byte) *ahead {
	if !haveVectors || len(b) < vectorsFrom {
		return nil
	}
	return &ahead{}
}

// look has the stretch begin at i. It is empty where less than vectors take is left of the text.
func (a *ahead) look(f *filter, b []byte, i int) {
	n := min(aheadBytes, len(b)-gram-i) &^ 31
	if n <= 0 {
		a.from, a.to = i, i
		return
	}
	words := a.may[:(n+63)/64]
	words[len(words)-1] = 0 // what is not written of the last
	sets := f.sets()
	gramsMask(&b[i], n, &sets.nibbles, &words[0])
	a.none = knownMask(&b[i], len(words), &sets.known, &words[0]) == 0
	a.from, a.to = i, i+n
}

// step is how many bytes of base64 in a row [loneKey] looks for.
const step = 32

// nextStep is the first of the steps at i, i+32, i+64 … that is all base64; −1 for none.
func nextStep(b []byte, i int) int {
	if haveVectors && len(b)-i >= 2*step {
		if n := base64Next(&b[i], len(b)-i); n >= 0 {
			return i + n
		}
		return -1
	}
	return plainStep(b, i)
}

// plainStep is nextStep where there are no vectors. It looks at a few bytes of a step first.
func plainStep(b []byte, i int) int {
	for ; i+step <= len(b); i += step {
		if base64Set[b[i]] && base64Set[b[i+13]] && base64Set[b[i+26]] && base64Set.run(b[i:], step) == step {
			return i
		}
	}
	return -1
}
