package continuation

import (
	"bytes"
	"slices"
	"strings"
)

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
func (d *joined) readings(part []byte) (found []*reading, unclear bool) {
	var short []*reading
	plainBreaks := d.reading(int64(len(d.text)), "", part, false).fault() != ""
	list, longest := d.candidates(part)
	fresh := d.isFresh(part)
	for _, c := range list {
		if c.matched < overlapMin && (longestOf(list) >= 2*overlapMin || fresh && c.at > 0) { // by chance
			continue
		}
		r := d.reading(c.at, c.how, part, c.inside)
		if r.fault() != "" || r.doubles(d.parser) {
			continue
		}
		r.matched = c.matched
		us, _ := units(d.text[c.at:d.anchor.end], c.inside)
		once := d.occursOnce(us)
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
	if len(found) == 1 && len(short) > 0 && longestOf(list) < 2*overlapMin {
		return append(found, short...), false
	}
	if unclear || len(found) == 1 && longest > found[0].matched {
		return nil, true
	}
	return found, len(found) == 0 && len(short) > 0
}

// longestOf returns the number of units of the longest candidate.
func longestOf(list []candidate) (n int) {
	for _, c := range list {
		n = max(n, c.matched)
	}
	return n
}

// doubles reports whether a name or an id is double that was not before.
func (r *reading) doubles(before *parser) bool {
	return r.parser.doubles > before.doubles || r.parser.outline.Doubled.Count > before.outline.Doubled.Count
}

// distinctive reports whether what is repeated is more than brackets, or digits of a number.
func (d *joined) distinctive(c candidate) bool {
	text := d.text[c.at:d.anchor.end]
	return strings.IndexByte(`{["`, text[0]) >= 0 && len(bytes.Trim(text[1:], "[{ \t\r\n")) > 0
}

// candidates returns the places of elements whose text up to the end is repeated at the beginning of the part, and of
// longer overlaps. longest is the number of units of the longest repetition, also of one that begins elsewhere.
func (d *joined) candidates(part []byte) (list []candidate, longest int) {
	add := func(at int64, how string, inside, open bool) {
		if at < 0 || slices.ContainsFunc(list, func(c candidate) bool { return c.at == at }) {
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
	if slices.Contains([]string{"string", "number", "literal"}, d.parser.scan.Inside()) {
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
func (d *joined) spansEqual(at int64) bool {
	for i := range d.parser.containers {
		f := &d.parser.containers[i]
		if !f.Object && at > f.Start && at > 0 && d.severalEqual(f) {
			return true
		}
	}
	return false
}

// severalEqual reports whether some of the last children of a container are equal.
func (d *joined) severalEqual(f *container) bool {
	have := map[string]bool{}
	for _, raw := range d.children(f) {
		have[whole(bytes.TrimRight(raw[:min(len(raw), maxElement)], " \t\r\n,"))] = true
	}
	return len(have) < len(f.Last)
}

func (d *joined) insideString() bool {
	in := d.parser.scan.Inside()
	return in == "string" || in == "key"
}

// overlaps returns where the text has the beginning of the part at its end, at least overlapMin characters that occur
// once. longest is the number of units of the longest beginning, also of one that occurs more than once.
func (d *joined) overlaps(part []byte, inside bool) (places []int64, longest int) {
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
		if n >= overlapMin && n < len(kept) && d.occursOnce(got[:n]) {
			places = append(places, from+int64(at[len(kept)-n]))
		}
	}
	return places, longest
}
