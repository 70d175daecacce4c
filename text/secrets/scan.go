package secrets

// scan is one pass over a text in memory.
type scan struct {
	b        []byte
	doneTo   int  // end of the last finding; no finding may start before it
	final    bool // b is the end of the text
	f        *filter
	block    block
	midLine  bool // b starts within a line
	scalarTo int  // end of the block scalars that were read

	words, values, cookies cachedRun // last runs of bytes in urlSafe, credentialSet and cookieSet
	elements               cachedRun // last run of bytes in elementSet
	noAt                   cachedRun // last range without an @ after an empty user
	lastName               cachedRun // last name that was examined without finding a secret
}

// match tries the formats whose keyword may be at this position according to the pre-filter. It returns the longest
// finding.
func (s *scan) match(at int, hits []hit) (finding, bool) {
	best := finding{}
	ok := false
	for k := range hits {
		h := &hits[k]
		from, whole := h.matchesAt(s.b, at)
		if !whole || from < s.doneTo {
			continue
		}
		f, is := h.format.match(s, h, from)
		if is && f.from >= s.doneTo && f.to > f.from && (!ok || f.to-f.from > best.to-best.from) {
			f.leadLen = max(f.leadLen, f.from-s.wordStart(from))
			best, ok = f, true
		}
	}
	return best, ok
}

// wordStart returns the start of the word that contains the keyword at from, including a quote and backslashes before
// the word.
func (s *scan) wordStart(from int) int {
	from -= nameSet.back(s.b[s.doneTo:from], maxName)
	if from > s.doneTo && (s.b[from-1] == '"' || s.b[from-1] == '\'') {
		from--
	}
	return from - slash.back(s.b[s.doneTo:from], maxSlashes)
}

// tokenAt returns the format in the table that matches at i, and the length of the token's public prefix; nil if none
// matches.
func (s *scan) tokenAt(i int) (*Format, int) {
	hits := s.f.at(s.b, i)
	for k := range hits {
		h := &hits[k]
		if h.format.shape == nil || h.offset != 0 || h.format.Before != "" {
			continue
		}
		if from, whole := h.matchesAt(s.b, i); whole {
			if f, ok := h.format.match(s, h, from); ok && f.from == i {
				return h.format, f.public
			}
		}
	}
	return nil, 0
}

// withToken returns f with the more specific format of the table that matches at its start, if there is one.
func (s *scan) withToken(f finding) finding {
	if special, public := s.tokenAt(f.from); special != nil {
		f.format, f.public = special, public
	}
	return f
}

// block is the state that a stream carries from one text to the next: whether it is within a private key, a public
// block such as a certificate, or a header.
type block struct {
	key           bool   // within a private key block
	public        bool   // within a public block
	prefix        []byte // text before BEGIN on the same line, such as "+" in a diff or "# " in a comment
	sawRun        bool   // at least one run of base64 of the key was seen
	short         bool   // the last run of base64 was short: the key ends after it
	lines         int    // number of header lines of the key
	lineBefore    bool   // the previous line matched as a key line outside a block
	startUnknown  bool   // the text before this one is unknown
	pendingHeader header // header whose value is in the next text
	pair          pair   // secret that was named and whose value may be in the next text
	scalar        scalar // block scalar that may continue in the next text
	midLine       bool   // the text before this one ended within a line
}

// stage is the position of the parser in a header such as `"name": "Cookie", "value": ["sid=…"`. If a text ends
// there, the next text starts with the value, for example if JSON is read line by line.
type stage byte

// header is a header whose value has not been read yet.
type header struct {
	cookie bool
	at     stage
}

const (
	noHeader stage = iota
	afterName
	afterComma // between a name and the member "value"
	afterValue // after the word "value", the name of a member
	afterColon
	inList // before an element of a list
)

// trimEscapes removes partial escapes from both ends of a finding.
func (s *scan) trimEscapes(f finding) finding {
	if f.block {
		return f
	}
	n, _ := escapeAround(s.b, f.from)
	f.from, f.public, f.leadLen = f.from+n, max(0, f.public-n), f.leadLen+n
	if f.from >= f.to {
		return f
	}
	_, n = escapeAround(s.b, f.to)
	f.to = max(f.from, f.to-n)
	f.to -= slash.back(s.b[f.from:f.to], unbounded)
	return f
}
