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
// double a name or an id. unclear says that there are some, but too little is repeated to tell them from others.
func (d *Document) readings(part []byte) (found []*reading, unclear bool) {
	var short []*reading
	longest := 0
	plainBreaks := d.reading(int64(len(d.text)), "", part, false).fault() != ""
	list := d.candidates(part)
	for _, c := range list {
		longest = max(longest, c.matched)
	}
	fresh := d.isFresh(part)
	for _, c := range list {
		if c.matched < overlapMin && (longest >= 2*overlapMin || fresh && c.at > 0) { // by chance
			continue
		}
		r := d.reading(c.at, c.how, part, c.inside)
		if r.fault() != "" || r.doubles(d.parser) {
			continue
		}
		if c.matched >= overlapMin || c.open && (plainBreaks || d.distinctive(c)) {
			found = append(found, r)
		} else {
			short = append(short, r)
		}
	}
	if len(found) == 1 && len(short) > 0 && longest < 2*overlapMin {
		return append(found, short...), false
	}
	return found, len(found) == 0 && len(short) > 0
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
// longer overlaps.
func (d *Document) candidates(part []byte) []candidate {
	var list []candidate
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
			list = append(list, candidate{at, how, inside, matched, open})
		}
	}
	add(0, "restart of the document", false, true)
	for depth := range d.parser.frames {
		f := &d.parser.frames[depth]
		add(f.Open, "restart of an element", false, true)
		if f.Object && f.Open >= 0 && depth+1 < len(d.parser.frames) {
			add(d.parser.frames[depth+1].Start, "restart of an element", false, true)
		}
		for _, at := range f.Last[max(0, len(f.Last)-8):] {
			add(at, "restart of an element", false, false)
		}
	}
	if d.insideScalar() {
		add(d.parser.value, "restart of a value", false, true)
	}
	for _, inside := range []bool{false, true} {
		for _, at := range d.overlaps(part, inside) {
			add(at, "overlap", inside, false)
		}
	}
	return list
}

func (d *Document) insideScalar() bool {
	switch d.parser.scan.Inside() {
	case "string", "number", "literal":
		return true
	}
	return false
}

// overlaps returns where the text has the beginning of the part at its end, at least overlapMin characters that occur
// once.
func (d *Document) overlaps(part []byte, inside bool) []int64 {
	if inside {
		part = bytes.TrimLeft(part, " \t\r\n")
	}
	from := int64(0)
	if len(d.text) > maxCompared { // then white space and escapes matter to whether the overlap occurs once
		from = d.tailStart()
	}
	got, _ := units(part[:min(len(part), maxCompared)], inside)
	kept, at := units(d.text[from:d.anchor.end], false)
	var places []int64
	for _, n := range borders(kept, got) {
		if n < overlapMin || n == len(kept) || occurrences(kept, got[:n], 2) != 1 {
			continue
		}
		place := from + int64(at[len(kept)-n])
		if from == 0 || bytes.Count(d.text, d.text[place:d.anchor.end]) == 1 {
			places = append(places, place)
		}
	}
	return places
}
