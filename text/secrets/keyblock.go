package secrets

import (
	"bytes"
	"encoding/binary"
)

const (
	minKeyRun  = 16       // minimum length, in bytes, of each run of base64 in a key except the last
	maxLabel   = 64       // maximum length of a block's label, in bytes
	pemLine    = 64       // length of a full line of PEM, in bytes
	sshLine    = 70       // length of a full line of OpenSSH, in bytes
	maxKeyGap  = 48       // bytes between two lines of one key; two keys have an END and a BEGIN between them
	maxKey     = 32 << 10 // bytes of a key after its BEGIN line; 16,384 bits have 13 KB
	maxKeyHead = 12       // maximum number of header lines such as "Proc-Type: 4,ENCRYPTED"
)

// matchKeyBlock matches the BEGIN line of a block. The finding is the key lines after it, if the block is a private
// key.
func matchKeyBlock(s *scan, h *hit, from int) (finding, bool) {
	if h.keyword != "-----BEGIN " {
		s.block = block{}
		return finding{}, false
	}
	at := from + len("-----BEGIN ")
	end := bytes.Index(s.b[at:min(len(s.b), at+maxLabel)], []byte("-----"))
	if end < 0 {
		return finding{}, false
	}
	label := s.b[at : at+end]
	if bytes.ContainsAny(label, "\n\"'\\") {
		return finding{}, false
	}
	if !bytes.Contains(label, []byte("PRIVATE KEY")) {
		s.block = block{public: true}
		return finding{}, false
	}
	line := bytes.LastIndexByte(s.b[:from], '\n') + 1
	s.block = block{key: true}
	if from-line <= 16 {
		s.block.prefix = bytes.Clone(s.b[line:from])
	}
	start := at + end + len("-----")
	to := s.block.consumeKey(s.b, start)
	if to <= start {
		return finding{}, false
	}
	return finding{from: start, to: to, format: &privateKey, block: true, prefix: s.block.prefix}, true
}

// consumeKey continues a key from i and returns the end of its last run of base64. If b ends before the key does, the
// state stays within the key.
func (k *block) consumeKey(b []byte, i int) (to int) {
	to = i
	for i < len(b) {
		if i == 0 || b[i-1] == '\n' {
			if bytes.HasPrefix(b[i:], k.prefix) {
				if i += len(k.prefix); i == len(b) {
					break // the rest of the line has not arrived yet
				}
			}
			if n := k.headerLine(b[i:]); n > 0 {
				i += n
				continue
			}
		}
		if n := separatorLen(b, i); n > 0 {
			i += n
			continue
		}
		n := base64Set.run(b[i:], unbounded)
		switch {
		case n == 0 || k.short:
			*k = block{}
			return to
		case n >= minKeyRun:
			k.sawRun = true
		case k.sawRun && (b[i+n-1] == '=' || endsKeyLine(b[i+n:])):
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

// endsKeyLine reports whether b, the text after a short line of a key, does not continue that line.
func endsKeyLine(b []byte) bool {
	return len(b) == 0 || bytes.IndexByte([]byte("\n\r\\\"'-"), b[0]) >= 0 ||
		bytes.HasPrefix(bytes.TrimLeft(b, " "), []byte("-----END"))
}

// separatorLen returns the length of a separator between two lines of a key at i: a blank, a quote, an escape or a
// comment mark; 0 if there is none.
func separatorLen(b []byte, i int) int {
	switch c := b[i]; c {
	case ' ', '\t', '\r', '\n', '"', '\'', '`', ',', '#', '>', '*', '|':
		return 1
	case '\\':
		n := slash.run(b[i:], len(b))
		if i+n < len(b) && bytes.IndexByte([]byte("nrt"), b[i+n]) >= 0 {
			n++
		}
		return n
	case '+': // joins two string literals in source code
		if i > 0 && i+1 < len(b) && bytes.IndexByte([]byte(" \"'"), b[i-1]) >= 0 &&
			bytes.IndexByte([]byte(" \n\r"), b[i+1]) >= 0 {
			return 1
		}
	}
	return 0
}

// headerLine returns the length of a key's header line at the start of b, as in RFC 1421, PGP and PuTTY; 0 if there is
// none.
func (k *block) headerLine(b []byte) int {
	n := headerNameSet.run(b, 40)
	if k.sawRun || n == 0 || n+1 >= len(b) || b[n] != ':' || b[n+1] != ' ' || k.lines >= maxKeyHead {
		return 0
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 || end > 200 {
		return 0
	}
	k.lines++
	return end
}

var headerNameSet = classOf("A-Za-z-")

// findKeyLine finds the first line or quoted text from i on that looks like a full line of a key by its length and
// its characters.
func findKeyLine(b []byte, i int) (finding, bool) {
	for at := nextWindow(b, i); at >= 0; at = nextWindow(b, at) {
		from := at - base64Set.back(b[i:at], 2*pemLine)
		to := at + base64Set.run(b[at:], 2*pemLine)
		from += escapeEnd(b, from)
		if isKeyLine(b, from, to) {
			return finding{from: from, to: to, format: &keyLine}, true
		}
		if at = to + 1; at > len(b) {
			break
		}
	}
	return finding{}, false
}

// escapeEnd returns 1 if the letter at i ends an escaped line end, such as \n in JSON, which is in the set of base64.
func escapeEnd(b []byte, i int) int {
	if i > 0 && i < len(b) && b[i-1] == '\\' && (b[i] == 'n' || b[i] == 'r') {
		return 1
	}
	return 0
}

func isKeyLine(b []byte, from, to int) bool {
	if n := to - from; (n == pemLine+1 || n == sshLine+1) && b[from] == '+' { // an added line of a diff
		from++
	}
	if n := to - from; n != pemLine && n != sshLine {
		return false
	}
	return isDelimited(b, from, to) && isMixed(b[from:to], 4.2) && !isPlaceholder(b[from:to])
}

// isDelimited reports whether b[from:to] is alone on its line, or between quotes.
func isDelimited(b []byte, from, to int) bool {
	if from > 0 && bytes.IndexByte([]byte("\n\r \t\"'`>|+-:"), b[from-1]) < 0 &&
		!(b[from-1] == 'n' && from > 1 && b[from-2] == '\\') {
		return false
	}
	if from > 0 && bytes.IndexByte([]byte(" :-"), b[from-1]) >= 0 && to < len(b) && b[to] != '\n' && b[to] != '\r' {
		return false
	}
	return to == len(b) || bytes.IndexByte([]byte("\n\r\"'`\\"), b[to]) >= 0
}

// keyBefore finds, at the start of b, the rest of a private key that begins before b: all before its END line.
func keyBefore(b []byte) (f finding, ok bool) {
	end := bytes.Index(b[:min(len(b), maxKey)], []byte("-----END "))
	if end < 0 || !bytes.Contains(b[end:min(len(b), end+maxLabel)], []byte("PRIVATE KEY-----")) {
		return f, false
	}
	for i := 0; i < end; {
		if n := separatorLen(b, i); n > 0 {
			i += n
			continue
		}
		n := base64Set.run(b[i:end], unbounded)
		if i += n; n == 0 {
			return f, false
		}
		f.to = i
	}
	f.format = &privateKey
	return f, f.to > 0
}

// lastKeyLine finds, at the start of b, the last line of a key whose other lines are before b. The line must be
// padded with "=" or be at least 32 bytes long, because a shorter one cannot be recognised.
func lastKeyLine(b []byte) (finding, bool) {
	i := blanks.run(b, 16)
	n := base64Set.run(b[i:], sshLine+1)
	line := b[i : i+n]
	if n < minKeyRun || n > sshLine || !isDelimited(b, i, i+n) || !isMixed(line, 3) ||
		line[n-1] != '=' && (n < 32 || entropy(line) < 4.2) {
		return finding{}, false
	}
	return finding{from: i, to: i + n, format: &keyLine}, true
}

// shortKeyLine finds the short last line of a key directly after a full line found by findKeyLine.
func shortKeyLine(b []byte, i int) (finding, bool) {
	end := i
	for range 2 { // the rest of this line, and the next one
		n := bytes.IndexByte(b[end:min(len(b), end+2048)], '\n')
		if n < 0 {
			end = min(len(b), end+2048)
			break
		}
		end += n + 1
	}
	for at := i; at < end; {
		at += escapeEnd(b, at)
		n := base64Set.run(b[at:end], 256)
		if n >= 8 && n <= sshLine && isDelimited(b, at, at+n) && (isMixed(b[at:at+n], 2.8) || b[at+n-1] == '=') {
			return finding{from: at, to: at + n, format: &keyLine, more: true}, true
		}
		at += n + 1
	}
	return finding{}, false
}

// Each run of pemLine bytes has all of one of the windows, of which [nextWindow] tests one a stride.
const (
	window = 16
	stride = pemLine - window
)

// nextWindow tests the windows at i, i+48, i+96 … and returns the position of the first that is all base64; −1 if none
// is.
func nextWindow(b []byte, i int) int {
	const each, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+window <= len(b); i += stride {
		w := b[i : i+window]
		first, last := binary.LittleEndian.Uint64(w), binary.LittleEndian.Uint64(w[8:])
		// Most texts have a blank or a mark below '+' in it, which is the least of base64.
		below := (first-'+'*each)&^first | (last-'+'*each)&^last
		if below&tops == 0 && base64Set.run(w, window) == window {
			return i
		}
	}
	return -1
}
