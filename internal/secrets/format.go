package secrets

import "strings"

// Format is one kind of secret that is known by how it is written.
type Format struct {
	Name     string // in a mask: "aws-access-key-id"
	Of       string // in words
	Source   string // where its form is published, or what it was read from
	Keywords string // what the filter looks for, "|" between several
	Shape    string // what follows the keyword: literal characters and [ranges]{n,m}; for matchers by hand a few words
	Before   string // what must stand before the keyword, in the same language
	Check    string // further conditions in words, for the list

	bits   float64 // least entropy of what follows the keyword, bits a byte; 0: 2.2
	inWord bool    // it may begin within a word, its keyword being rare enough
	fold   bool    // keywords are found whatever their case
	match  matcher
	shape  func() shape // what Shape and Before say, of one matched by hand what its keyword begins; nil: anything
}

// matcher says whether what the keyword at from begins is a secret, and where that stands.
type matcher func(s *scan, h *hit, from int) (found, bool)

// hits appends what the filter looks for. A keyword that is shorter than four bytes is completed by what may follow it.
func (f *Format) hits(list []hit) []hit {
	if f.Keywords == "" {
		return list
	}
	for k := range strings.SplitSeq(f.Keywords, "|") {
		if len(k) >= gram {
			list = append(list, hit{k, rarest(k), f.fold, f})
			continue
		}
		var completed []byte
		set := f.shape().parts[0].set
		for c := range byte(0x80) {
			if set[c] {
				completed = append(append(completed, k...), c)
			}
		}
		for all, n := string(completed), len(k)+1; all != ""; all = all[n:] {
			list = append(list, hit{all[:n], 0, f.fold, f})
		}
	}
	return list
}

// common are the pairs of letters that English has most: a window that ends with one of them makes the filter stop often.
const common = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ss wo rd ke ti ec et cr ie pi ey ok ss sp ac"

// rarest is where the window of a keyword is best taken.
func rarest(k string) int {
	for i := 0; i+gram <= len(k); i++ {
		if !isCommon(k[i+2]|0x20, k[i+3]|0x20) {
			return i
		}
	}
	return 0
}

func isCommon(a, b byte) bool {
	for i := 0; i < len(common); i += 3 {
		if common[i] == a && common[i+1] == b {
			return true
		}
	}
	return false
}

// token is the matcher of formats that are told by their shape alone.
func token(s *scan, h *hit, from int) (found, bool) {
	f := h.format
	shape := f.shape()
	body := from + len(f.keywordAt(s.b[from:]))
	begin := from
	if shape.before != nil {
		var ok bool
		if begin, ok = backParts(s.b, s.lo, from, shape.before); !ok {
			return found{}, false
		}
	}
	if !f.inWord && !startsWord(s.b, begin) {
		return found{}, false
	}
	end, ok, more := matchParts(s.b, body, shape.parts)
	if !ok && shape.before == nil && s.clipped(f, body, end) {
		return found{from: begin, to: end, public: body - begin, format: f}, true
	}
	if !ok && (!more || s.final || end-body < checked) {
		return found{}, false
	}
	sample := s.b[body:min(end, body+checked)]
	if shape.before != nil {
		sample = s.b[begin:min(end, begin+checked)]
	}
	if entropy(sample) < f.bits || standsFor(sample, true) {
		return found{}, false
	}
	if last := shape.parts[len(shape.parts)-1]; ok && last.max == unbounded {
		end += last.set.run(s.b[end:], unbounded)
	}
	public := body - begin
	if shape.before != nil {
		public = 0
	}
	return found{from: begin, to: end, public: public, format: f}, true
}

// keywordAt is the keyword of a format that stands at the beginning of b, in the case it has there.
func (f *Format) keywordAt(b []byte) string {
	best := ""
	for k := range strings.SplitSeq(f.Keywords, "|") {
		if len(k) > len(best) && len(b) >= len(k) && (string(b[:len(k)]) == k || f.fold && strings.EqualFold(string(b[:len(k)]), k)) {
			best = k
		}
	}
	return best
}
