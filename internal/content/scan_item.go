package content

// longKey is the length in bytes from which a key is left to Scan.
const longKey = 256

// Item is a value that is no container, or the beginning of one, and in an object the key before it.
type Item struct {
	Event  Event // the last of it: StringEnd, NumberEnd, LiteralEnd, ObjectStart or ArrayStart
	HasKey bool
	// Where they stand in the piece, without quotes. From is of a container where its bracket stands, and To behind it.
	KeyFrom, KeyTo, From, To int
}

// Item is [Scanner.Scan] over all the events of one item, where all of it stands in p, which is most of a text: it takes half the
// time (BenchmarkItems, BenchmarkScanner). Else n is 0, nothing has changed, and Scan tells what comes. There are no items at the
// top, and where Quiet is set.
func (s *Scanner) Item(p []byte, it *Item) (n int) {
	if s.depth == 0 || s.depth >= MaxDepth || s.Quiet != 0 || s.step > stepAfter || s.step == stepColon || s.err != nil {
		return 0
	}
	i := blank(p, 0)
	it.HasKey = s.step != stepValue && s.isObject(s.depth-1) // else Scan has told it
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

// item takes the value that begins at p[i].
func (s *Scanner) item(p []byte, i int, it *Item) int {
	it.From = i
	end := 0
	switch c := p[i]; c {
	case '"':
		it.From++
		it.Event, it.To = StringEnd, quoted(p, i+1)
		end = it.To + 1
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		it.Event, it.To = NumberEnd, figure(p, i)
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

// blank is the next place from i on that is no white space.
func blank(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

// quoted is where the closing quote of the string stands whose text begins at p[i]; −1 where p has none, or the string is wrong.
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

// figure is where the number ends that begins at p[i]; −1 where p does not tell, or it is wrong.
func figure(p []byte, i int) int {
	if p[i] == '-' {
		i++
	}
	from := i
	if i = afterDigits(p, i); i == from || p[from] == '0' && i > from+1 {
		return -1
	}
	if i < len(p) && p[i] == '.' {
		from = i + 1
		if i = afterDigits(p, from); i == from {
			return -1
		}
	}
	if i < len(p) && p[i]|0x20 == 'e' {
		if i++; i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		from = i
		if i = afterDigits(p, i); i == from {
			return -1
		}
	}
	if i == len(p) || isWord(p[i]) {
		return -1
	}
	return i
}

func afterDigits(p []byte, i int) int {
	for i < len(p) && p[i]-'0' < 10 {
		i++
	}
	return i
}

// literal is where the literal ends that begins at p[i]; −1 where p does not tell, or it is wrong.
func literal(p []byte, i int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if n := i + len(word); n < len(p) && string(p[i:n]) == word && !isWord(p[n]) {
			return n
		}
	}
	return -1
}
