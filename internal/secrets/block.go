package secrets

import (
	"bytes"
)

var privateKey = Format{
	Name: "private-key", Of: "private key block (PKCS#1, PKCS#8, SEC 1, OpenSSH, PGP, PuTTY's lines in it)", Source: "RFC 7468; RFC 9580",
	Keywords: "-----BEGIN |-----END ", Shape: "a label that says PRIVATE KEY, then lines of base64, also with their newlines escaped or as spaces",
	Check: "its first and last lines stay, each line between them becomes [masked]",
}

var keyLine = Format{
	Name: "key-line", Of: "line of a key block whose beginning is not there", Source: "RFC 7468, OpenSSH's PROTOCOL.key",
	Keywords: "", Shape: "a line, or a quoted text, of just 64 or 70 characters of base64, and shorter ones directly behind it",
	Check: "upper and lower case and digits, entropy of 4.2 bits; not within a certificate or another public block",
}

const (
	minKeyRun  = 16 // least length of a piece of a key but its last
	maxLabel   = 64
	pemLine    = 64 // length of a full line of PEM …
	sshLine    = 70 // … and of OpenSSH's
	maxKeyHead = 12 // lines of headers, as "Proc-Type: 4,ENCRYPTED"
)

// block is the state in which one text of a stream leaves the next: within a key, or within a public block.
type block struct {
	key    bool
	public bool
	prefix []byte // what stands before BEGIN on its line, as a diff's "+" or a comment's "# "
	began  bool   // a piece of the key was seen
	short  bool   // its last piece was short: the end is near
	lines  int    // of headers
	lone   bool   // the line before was taken for a key's by itself
	middle bool   // what stands before is not known
	until  header // whose value is yet to come
}

// beginKey takes the line that begins a block, and what follows of a key.
func beginKey(s *scan, h *hit, from int) (found, bool) {
	if h.keyword != "-----BEGIN " {
		s.block = block{}
		return found{}, false
	}
	at := from + len("-----BEGIN ")
	end := bytes.Index(s.b[at:min(len(s.b), at+maxLabel)], []byte("-----"))
	if end < 0 {
		return found{}, false
	}
	label := s.b[at : at+end]
	if bytes.ContainsAny(label, "\n\"'\\") {
		return found{}, false
	}
	if !bytes.Contains(label, []byte("PRIVATE KEY")) {
		s.block = block{public: true}
		return found{}, false
	}
	line := bytes.LastIndexByte(s.b[:from], '\n') + 1
	s.block = block{key: true}
	if from-line <= 16 {
		s.block.prefix = bytes.Clone(s.b[line:from])
	}
	start := at + end + len("-----")
	to := s.block.take(s.b, start)
	if to <= start {
		return found{}, false
	}
	return found{from: start, to: to, format: &privateKey, block: true, prefix: s.block.prefix}, true
}

// take goes on in a key from i: where what belongs to it ends. It stays within the key where b ends in it.
func (k *block) take(b []byte, i int) (to int) {
	to = i
	for i < len(b) {
		if i == 0 || b[i-1] == '\n' {
			if bytes.HasPrefix(b[i:], k.prefix) {
				if i += len(k.prefix); i == len(b) {
					break // the next line is not here yet
				}
			}
			if n := k.header(b[i:]); n > 0 {
				i += n
				continue
			}
		}
		if n := separator(b, i); n > 0 {
			i += n
			continue
		}
		n := base64Set.run(b[i:], unbounded)
		switch {
		case n == 0 || k.short:
			*k = block{}
			return to
		case n >= minKeyRun:
			k.began = true
		case k.began && (b[i+n-1] == '=' || tail(b[i+n:])):
			k.short = true
		default:
			*k = block{}
			return to
		}
		i += n
		to = i
	}
	return to
}

// tail says that behind the last short piece of a key nothing of it follows on its line.
func tail(b []byte) bool {
	return len(b) == 0 || bytes.IndexByte([]byte("\n\r\\\"'-"), b[0]) >= 0 || bytes.HasPrefix(bytes.TrimLeft(b, " "), []byte("-----END"))
}

// separator is how many bytes at i may stand between two pieces of a key: blanks, quotes, escapes, marks of comments.
func separator(b []byte, i int) int {
	switch c := b[i]; c {
	case ' ', '\t', '\r', '\n', '"', '\'', '`', ',', '#', '>', '*', '|':
		return 1
	case '\\':
		n := 1
		for i+n < len(b) && b[i+n] == '\\' {
			n++
		}
		if i+n < len(b) && (b[i+n] == 'n' || b[i+n] == 'r' || b[i+n] == 't') {
			n++
		}
		return n
	case '+': // strings joined in a program
		if i > 0 && i+1 < len(b) && bytes.IndexByte([]byte(" \"'"), b[i-1]) >= 0 && bytes.IndexByte([]byte(" \n\r"), b[i+1]) >= 0 {
			return 1
		}
	}
	return 0
}

// header is the length of a header line of a key, as RFC 1421 has it and PGP and PuTTY too.
func (k *block) header(b []byte) int {
	n := classOfHeader.run(b, 40)
	if k.began || n == 0 || n+1 >= len(b) || b[n] != ':' || b[n+1] != ' ' || k.lines >= maxKeyHead {
		return 0
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 || end > 200 {
		return 0
	}
	k.lines++
	return end
}

var classOfHeader = classOf("A-Za-z-")

// loneKey finds a line, or a quoted text, that is a line of a key by its length and its letters, from i on.
func loneKey(b []byte, i int, state *block) (found, bool) {
	// A run of 64 holds a whole step somewhere.
	for at := nextStep(b, i); at >= 0; at = nextStep(b, at) {
		from := at - base64Set.back(b[i:at], 128)
		to := at + base64Set.run(b[at:], 256)
		if isKeyLine(b, from, to) {
			return found{from: from, to: to, format: &keyLine}, true
		}
		if at = to + 1; at > len(b) {
			break
		}
	}
	return found{}, false
}

func isKeyLine(b []byte, from, to int) bool {
	if from < to && b[from] == '+' && to-from == 65 || to-from == 71 && b[from] == '+' { // of a diff
		from++
	}
	if n := to - from; n != pemLine && n != sshLine {
		return false
	}
	return bounded(b, from, to) && mixed(b[from:to], 4.2) && !standIn(b[from:to])
}

// bounded says that b[from:to] stands by itself on its line or between quotes.
func bounded(b []byte, from, to int) bool {
	if from > 0 && bytes.IndexByte([]byte("\n\r \t\"'`>|+-:"), b[from-1]) < 0 && !(b[from-1] == 'n' && from > 1 && b[from-2] == '\\') {
		return false
	}
	if from > 0 && (b[from-1] == ' ' || b[from-1] == ':' || b[from-1] == '-') && to < len(b) && b[to] != '\n' && b[to] != '\r' {
		return false
	}
	return to == len(b) || bytes.IndexByte([]byte("\n\r\"'`\\"), b[to]) >= 0
}

func mixed(b []byte, bits float64) bool {
	lower, upper, digit, _ := kinds(b)
	return lower > 0 && upper > 0 && digit > 0 && entropy(b) >= bits
}

// last finds the last line of a key whose others stand before the text's beginning: padded, or long enough to be told.
func last(b []byte) (found, bool) {
	i := blanks.run(b, 16)
	n := base64Set.run(b[i:], sshLine+1)
	line := b[i : i+n]
	if n < minKeyRun || n > sshLine || !bounded(b, i, i+n) || !mixed(line, 3) || line[n-1] != '=' && (n < 32 || entropy(line) < 4.2) {
		return found{}, false
	}
	return found{from: i, to: i + n, format: &keyLine}, true
}

// after finds the short last line of a key directly behind a lone one: the next piece that stands by itself.
func after(b []byte, i int) (found, bool) {
	end := i
	for range 2 { // the line that is left, and the one behind it
		n := bytes.IndexByte(b[end:min(len(b), end+2048)], '\n')
		if n < 0 {
			end = min(len(b), end+2048)
			break
		}
		end += n + 1
	}
	for at := i; at < end; {
		n := base64Set.run(b[at:end], 256)
		if n >= 8 && n <= sshLine && bounded(b, at, at+n) && (mixed(b[at:at+n], 2.8) || b[at+n-1] == '=') {
			return found{from: at, to: at + n, format: &keyLine, more: true}, true
		}
		at += n + 1
	}
	return found{}, false
}
