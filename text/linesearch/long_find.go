package linesearch

// findLiteral returns the position of the line's first needle, or -1.
func (s *lineScan) findLiteral(head []byte, r *longLineReader) (int64, error) {
	return r.find(head, s.f.literals.Longest(), func(b []byte, from int, _ bool) int {
		s.f.literals.Reset()
		at, _ := s.f.literals.Find(b, max(from, s.f.skip(b, from)-s.f.literals.Longest()))
		return at
	})
}

// skip returns a position in b[from:] before which no needle ends, or len(b). In the last bytes of b it may miss one.
func (f *finder) skip(b []byte, from int) int {
	if f.searcher == nil {
		return from
	}
	at, _, _ := f.searcher.Find(b, from)
	return at
}

// find returns the first position in the line that search returns, or -1 if there is none. search returns a position in
// b, at or after from, or len(b) if there is none. last is true if the line ends with b. The last overlap bytes of each
// chunk are searched again with the next one.
func (r *longLineReader) find(head []byte, overlap int, search func(b []byte, from int, last bool) int) (int64, error) {
	if at := search(head, 0, false); at < len(head) {
		return int64(at), nil
	}
	for {
		ok, err := r.readMore()
		if err != nil {
			return -1, err
		}
		if at := search(r.buf[:r.end], max(0, r.start-overlap), r.done); at < r.end {
			return r.base + int64(at), nil
		}
		if !ok {
			return -1, nil
		}
		r.start = r.end
	}
}

// findWord returns the position of the first word of a list in the line, or -1.
func (s *lineScan) findWord(head []byte, r *longLineReader) (int64, error) {
	v := s.m.words
	// A word that begins in the last bytes is left for the next chunk, because the byte after it counts, and another one
	// may begin before it. The byte before counts as well.
	return r.find(head, v.longest+1, func(b []byte, from int, last bool) int {
		to := len(b)
		if !last {
			to -= v.longest
		}
		from = max(from, s.f.skip(b, from)-v.longest)
		s.f.ends = v.find.Ends(b[from:], s.f.ends[:0])
		if len(s.f.ends) == 0 {
			return len(b)
		}
		from = max(from, from+int(s.f.ends[0])-v.longest)
		before := max(from-1, 0)
		t := v.of(b[before:])
		start, _, ok := v.first(&t, from-before, to-before)
		if !ok {
			return len(b)
		}
		return before + t.position(start)
	})
}
