package content

// longKey is the maximum length of a key, in bytes, that Item reads; longer keys are left to Scan.
const longKey = 256

// Item is a scalar value or the opening bracket of a container, with the key before it if it is in an object.
type Item struct {
	Event  Event // last event of the item: StringEnd, NumberEnd, LiteralEnd, ObjectStart or ArrayStart
	HasKey bool
	// Ranges of the key and the value in the scanned block, without quotes. For a container, the range of the value
	// is its opening bracket.
	KeyFrom, KeyTo, From, To int
}

// Item is a fast path of [Scanner.Scan]: it consumes all events of one item that is complete in p, in half the time
// (BenchmarkItems, BenchmarkScanner). Most of a text can be read with it. If n is 0, the scanner is unchanged and the
// caller must call Scan. Item always returns 0 at the top level and if Quiet is set.
func (s *Scanner) Item(p []byte, it *Item) (n int) {
	if s.depth == 0 || s.depth >= MaxDepth || s.Quiet != 0 || s.step > stepAfter || s.step == stepColon || s.err != nil {
		return 0
	}
	i := blank(p, 0)
	it.HasKey = s.step != stepValue && s.isObject(s.depth-1) // else Scan already read the key, or there is none
	if s.step == stepAfter {
		if i == len(p) || p[i] != ',' {
			return 0
		}
		i = blank(p, i+1)
	}
	if it.HasKey {
		if i == len(p) || p[i] != '"' {
			return 0
		}
		it.KeyFrom, it.KeyTo = i+1, quoted(p, i+1)
		if it.KeyTo < 0 || it.KeyTo-it.KeyFrom > longKey {
			return 0
		}
		if i = blank(p, it.KeyTo+1); i == len(p) || p[i] != ':' {
			return 0
		}
		i = blank(p, i+1)
	}
	if i == len(p) {
		return 0
	}
	n = s.item(p, i, it)
	s.off += int64(n)
	return n
}

// item reads the value that begins at p[i] and returns its end, past a closing quote; 0 if p does not hold all of it.
func (s *Scanner) item(p []byte, i int, it *Item) int {
	it.From = i
	end := 0
	switch c := p[i]; c {
	case '"':
		it.From++
		it.Event, it.To = StringEnd, quoted(p, i+1)
		end = it.To + 1
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		it.Event, it.To = NumberEnd, numberEnd(p, i)
		end = it.To
	case 't', 'f', 'n':
		it.Event, it.To = LiteralEnd, literal(p, i)
		end = it.To
	case '{', '[':
		it.Event, it.To, s.step = ArrayStart, i+1, stepFirstElem
		if c == '{' {
			it.Event, s.step = ObjectStart, stepFirstKey
		}
		s.push(c == '{')
		return it.To
	}
	if end <= 0 {
		return 0
	}
	s.step = stepAfter
	return end
}

// blank returns the first index from i on that is not white space.
func blank(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

// quoted returns the index of the closing quote of the string whose text begins at p[i]; −1 if the string is
// incomplete or invalid.
func quoted(p []byte, i int) int {
	for {
		i += plain(p[i:])
		switch {
		case i == len(p):
			return -1
		case p[i] == '"':
			return i
		case p[i] != '\\' || i+1 == len(p):
			return -1
		}
		switch p[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			if len(p)-i < 6 || !isHex(p[i+2]) || !isHex(p[i+3]) || !isHex(p[i+4]) || !isHex(p[i+5]) {
				return -1
			}
			i += 6
		default:
			return -1
		}
	}
}

// numberEnd returns the end of the number that begins at p[i]; −1 if the number is invalid or reaches the end of p.
func numberEnd(p []byte, i int) int {
	first := stepInt
	switch p[i] {
	case '-':
		first = stepMinus
	case '0':
		first = stepZero
	}
	i, last := number(p, i+1, first)
	if i == len(p) || !last.endsNumber() || isWord(p[i]) {
		return -1
	}
	return i
}

// literal returns the end of the literal that begins at p[i]; −1 if the literal is invalid or reaches the end of p.
func literal(p []byte, i int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if n := i + len(word); n < len(p) && string(p[i:n]) == word && !isWord(p[n]) {
			return n
		}
	}
	return -1
}
