package continuation

import "bytes"

// candidate is a place from which the text is repeated at the beginning of the part.
type candidate struct {
	at      int64
	how     string
	inside  bool
	matched int  // units that are repeated
	open    bool // it is the beginning of something that is not complete
}

// readings returns the readings of a part that repeats some of the text, without those that break the document or
// double a name or an id. unclear says that there are some, but too little is repeated to tell them from others, or it
// occurs in a list in which elements are equal.
func (d *Document) readings(part []byte) (found []*reading, unclear bool) {
	var short []*reading
	plainBreaks := d.reading(int64(len(d.text)), "", part, false).fault() != ""
	list, longest := d.candidates(part)
	fresh := d.isFresh(part)
	for _, c := range list {
		if c.matched < overlapMin && (d.longest(list) >= 2*overlapMin || fresh && c.at > 0) { // by chance
			continue
		}
		r := d.reading(c.at, c.how, part, c.inside)
		if r.fault() != "" || r.doubles(d.parser) {
			continue
		}
		r.matched = c.matched
		once := d.occursOnce(c)
		if (!once || !c.open) && d.spansEqual(c.at+1) {
			unclear = true
		}
		r.weak = !once && c.matched < surely
		clear := c.matched >= overlapMin && !r.weak
		if clear || c.open && (plainBreaks || !r.weak && d.distinctive(c)) {
			found = append(found, r)
		} else {
			short = append(short, r)
		}
	}
	if len(found) == 1 && len(short) > 0 && d.longest(list) < 2*overlapMin {
		return append(found, short...), false
	}
	if unclear || len(found) == 1 && longest > found[0].matched {
		return nil, true
	}
	return found, len(found) == 0 && len(short) > 0
}

// longest returns the number of units of the longest candidate.
func (d *Document) longest(list []candidate) (n int) {
	for _, c := range list {
		n = max(n, c.matched)
	}
	return n
}

// occursOnce reports whether what a candidate repeats occurs once in the text.
func (d *Document) occursOnce(c candidate) bool {
	us, _ := units(d.text[c.at:d.anchor.end], c.inside)
	return d.occurs(us, 2) == 1
}

// doubles reports whether a name or an id is double that was not before.
func (r *reading) doubles(before *parser) bool {
	return r.parser.doubles > before.doubles || r.parser.outline.Counts.Doubled > before.outline.Counts.Doubled
}

// distinctive reports whether what is repeated is more than brackets, or digits of a number.
func (d *Document) distinctive(c candidate) bool {
	switch d.text[c.at] {
	case '{', '[', '"':
	default:
		return false
	}
	for _, b := range d.text[c.at+1 : d.anchor.end] {
		if bytes.IndexByte([]byte("[{ \t\r\n"), b) < 0 {
			return true
		}
	}
	return false
}

// candidates returns the places of elements whose text up to the end is repeated at the beginning of the part, and of
// longer overlaps. longest is the number of units of the longest repetition, also of one that begins elsewhere.
func (d *Document) candidates(part []byte) (list []candidate, longest int) {
	add := func(at int64, how string, inside, open bool) {
		for _, c := range list {
			if c.at == at {
				return
			}
		}
		if at < 0 {
			return
		}
		if matched, ok := d.repeated(at, inside, part); ok {
			list = append(list, candidate{at: at, how: how, inside: inside, matched: matched, open: open})
		}
	}
	add(0, "restart of the document", false, true)
	for depth := range d.parser.containers {
		f := &d.parser.containers[depth]
		add(f.Open, "restart of an element", false, true)
		if f.Object && f.Open >= 0 && depth+1 < len(d.parser.containers) {
			add(d.parser.containers[depth+1].Start, "restart of an element", false, true)
		}
		for _, at := range f.Last[max(0, len(f.Last)-8):] {
			add(at, "restart of an element", false, false)
		}
	}
	if d.insideScalar() {
		add(d.parser.value, "restart of a value", false, true)
	}
	for _, inside := range []bool{false, true} {
		places, n := d.overlaps(part, inside)
		longest = max(longest, n)
		for _, at := range places {
			add(at, "overlap", inside, false)
		}
	}
	return list, longest
}

// spansEqual reports whether an offset is in a list in which some complete elements are equal.
func (d *Document) spansEqual(at int64) bool {
	for i := range d.parser.containers {
		f := &d.parser.containers[i]
		if !f.Object && at > f.Start && at > 0 && d.severalEqual(f) {
			return true
		}
	}
	return false
}

// severalEqual reports whether some of the last children of a container are equal.
func (d *Document) severalEqual(f *container) bool {
	have := map[string]bool{}
	for _, raw := range d.children(f) {
		have[whole(bytes.TrimRight(raw[:min(len(raw), maxElement)], " \t\r\n,"))] = true
	}
	return len(have) < len(f.Last)
}

func (d *Document) insideString() bool {
	in := d.parser.scan.Inside()
	return in == "string" || in == "key"
}

func (d *Document) insideScalar() bool {
	switch d.parser.scan.Inside() {
	case "string", "number", "literal":
		return true
	}
	return false
}

// overlaps returns where the text has the beginning of the part at its end, at least overlapMin characters that occur
// once. longest is the number of units of the longest beginning, also of one that occurs more than once.
func (d *Document) overlaps(part []byte, inside bool) (places []int64, longest int) {
	if inside {
		part = bytes.TrimLeft(part, " \t\r\n")
	}
	from := int64(0)
	if len(d.text) > maxCompared {
		from = d.tailStart()
	}
	got, _ := units(part[:min(len(part), maxCompared)], inside)
	kept, at := units(d.text[from:d.anchor.end], false)
	for _, n := range borders(kept, got) {
		longest = max(longest, n)
		if n >= overlapMin && n < len(kept) && d.occurs(got[:n], 2) == 1 {
			places = append(places, from+int64(at[len(kept)-n]))
		}
	}
	return places, longest
}
