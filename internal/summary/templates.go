package summary

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of templates.
const (
	templatesMost = 1024 // held at once
	templateWords = 40   // of a line; the rest does not tell it apart
	templateLeaf  = 48   // templates a line is compared with
	templateBytes = 512  // of a line
	cacheSize     = 1 << 12
	cacheFirst    = 1 << 4 // of a text of few lines, which is what most calls write
	wild          = "<*>"
)

// templates finds the patterns log lines are printed with, in the way of Drain (He et al., 2017: lines of as many words
// with the same first word are compared word by word, and where at least half are the same the others become wildcards).
// Words with a digit are wildcards from the start. Lines that differ in such words only are recognised by a hash.
type templates struct {
	leaves  map[leaf][]*template
	all     []*template
	cache   []cached // it grows where two lines want one place
	words   []string
	gone    int64 // templates of one line dropped for room
	lines   int64
	stopped bool
}

type cached struct {
	hash uint64
	is   *template
}

type leaf struct {
	words int
	first string
}

type template struct {
	words  []string
	n      int64
	thin   int64 // of n, lines that stand for others too: see [logs.pattern]
	first  int64 // line
	last   int64
	level  level
	text   string // the first line
	late   bool   // made after others were dropped, or seen in few samples: there may be more
	about  bool   // n is an estimate
	gone   bool
	member leaf
}

func newTemplates() *templates {
	return &templates{leaves: map[leaf][]*template{}, cache: make([]cached, cacheFirst)}
}

// add counts line number at, given without its time; nil where it is not looked at.
func (t *templates) add(line []byte, at int64, l level) *template {
	if t.stopped {
		return nil
	}
	if len(line) > templateBytes {
		line = line[:templateBytes]
	}
	hash := signature(line)
	slot := t.slot(hash)
	if slot.hash != hash || slot.is == nil || slot.is.gone {
		slot.hash, slot.is = hash, t.find(line, at, l)
	}
	found := slot.is
	found.n++
	found.last = at
	found.level = max(found.level, l)
	t.lines++
	return found
}

// slot is where a hash has its place, free or not. A cache that has grown holds what one of its full size would hold.
func (t *templates) slot(hash uint64) *cached {
	for {
		slot := &t.cache[hash%uint64(len(t.cache))]
		if slot.hash == hash || slot.is == nil || len(t.cache) == cacheSize {
			return slot
		}
		small := t.cache
		t.cache = make([]cached, 4*len(small))
		for _, c := range small {
			if c.is != nil {
				t.cache[c.hash%uint64(len(t.cache))] = c
			}
		}
	}
}

func (t *templates) find(line []byte, at int64, l level) *template {
	t.split(line)
	key := leaf{words: len(t.words)}
	if len(t.words) > 0 {
		key.first = t.words[0]
	}
	if l != noLevel && len(t.words) > 1 { // the first word may be the level, which says little
		key.first += " " + t.words[1]
	}
	if strings.Contains(key.first, wild) {
		key.first = wild
	}
	var best *template
	score := 0
	for _, c := range t.leaves[key] {
		same := 0
		for i, w := range t.words {
			if c.words[i] == w || fits(c.words[i], w) {
				same++
			}
		}
		if same > score {
			best, score = c, same
		}
	}
	if best != nil && 2*score >= len(t.words) {
		for i, w := range t.words {
			if best.words[i] != w && !fits(best.words[i], w) {
				best.words[i] = join(best.words[i], w)
			}
		}
		return best
	}
	if len(t.all) >= templatesMost {
		t.drop()
	}
	if len(t.leaves[key]) >= templateLeaf {
		// Lines whose words tell nothing: all of them are one.
		best = t.leaves[key][templateLeaf-1]
		for i := range best.words[min(1, len(best.words)):] {
			best.words[i+1] = wild
		}
		return best
	}
	c := &template{words: slices.Clone(t.words), first: at, level: l, text: string(line[:min(len(line), 2*lineRunes)]), late: t.gone > 0, member: key}
	t.leaves[c.member] = append(t.leaves[c.member], c)
	t.all = append(t.all, c)
	return c
}

// join is what two words have in common: hit=<*>, or nothing.
func join(a, b string) string {
	if i := strings.IndexByte(a, '='); i > 0 && strings.HasPrefix(b, a[:i+1]) {
		return a[:i+1] + wild
	}
	return wild
}

// fits says whether w is one of the words that key=<*> stands for.
func fits(pattern, w string) bool {
	key, ok := strings.CutSuffix(pattern, wild)
	return ok && key != "" && strings.HasSuffix(key, "=") && strings.HasPrefix(w, key)
}

// drop makes room: of the templates with one line, the older half goes.
func (t *templates) drop() {
	least := slices.MinFunc(t.all, func(a, b *template) int { return cmp.Compare(a.n, b.n) }).n
	want := len(t.all) / 2
	kept := t.all[:0]
	for _, c := range t.all {
		if c.n <= least && want > 0 {
			want--
			t.gone++
			c.gone = true
			same := t.leaves[c.member]
			same = slices.DeleteFunc(same, func(x *template) bool { return x == c })
			if len(same) == 0 {
				delete(t.leaves, c.member)
			} else {
				t.leaves[c.member] = same
			}
			continue
		}
		kept = append(kept, c)
	}
	clear(t.all[len(kept):])
	t.all = kept
}

// split cuts a line into words, in t.words. Parts of words that have a digit become wildcards: /users/<*>/orders, took=<*>.
func (t *templates) split(line []byte) {
	t.words = t.words[:0]
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		from := i
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			i++
		}
		if len(t.words) == templateWords {
			t.words = append(t.words, wild)
			return
		}
		t.words = append(t.words, mask(line[from:i]))
	}
}

// mask writes a word with a wildcard for each part with a digit; parts joined by . : - / , or + are one.
func mask(word []byte) string {
	if !slices.ContainsFunc(word, func(c byte) bool { return c-'0' <= 9 }) {
		return string(word)
	}
	out := make([]byte, 0, len(word)+4)
	for i := 0; i < len(word); {
		if !isWord[word[i]] {
			out = append(out, word[i])
			i++
			continue
		}
		from, digit := i, false
		for i < len(word) && isWord[word[i]] {
			digit = digit || word[i]-'0' <= 9
			i++
		}
		if !digit {
			out = append(out, word[from:i]...)
			continue
		}
		if n := len(out); n > len(wild) && strings.IndexByte(".:-/,+", out[n-1]) >= 0 && string(out[n-1-len(wild):n-1]) == wild {
			out = out[:n-1]
			continue
		}
		out = append(out, wild...)
	}
	return string(out)
}

// pattern is the template in one line.
func (c *template) pattern() string { return strings.Join(c.words, " ") }

// count is "1203×", with a + where some of its lines may not have been counted; "about 1200×" where it is from samples.
func (c *template) count() string {
	if c.about {
		return "about " + number(rounded(c.n)) + "×"
	}
	if c.late {
		return number(c.n) + "+×"
	}
	return number(c.n) + "×"
}

// estimate has each line that was looked at as one of several stand for so many. Of what was seen less than ten times
// no more is said than that.
func (t *templates) estimate(each float64) {
	for _, c := range t.all {
		if c.thin == 0 {
			continue
		}
		if c.thin < 10 {
			c.late = true
			continue
		}
		c.about = true
		more := int64(float64(c.thin) * (each - 1))
		c.n += more
		t.lines += more
	}
}

// rounded is n to two digits: of samples no more is known.
func rounded(n int64) int64 {
	step := int64(1)
	for n/step >= 100 {
		step *= 10
	}
	return (n + step/2) / step * step
}

// telling says whether most lines are of patterns that say more than how many words there are.
func (t *templates) telling() bool {
	var n int64
	for _, c := range t.all {
		if c.n > 1 && !c.vague() {
			n += c.n
		}
	}
	return 2*n >= t.lines
}

// vague says that little but wildcards is left of a pattern.
func (c *template) vague() bool {
	wilds := 0
	for _, w := range c.words {
		if w == wild {
			wilds++
		}
	}
	return 5*wilds > 3*len(c.words)
}

// common are the templates by their counts, most first.
func (t *templates) common() []*template {
	all := slices.Clone(t.all)
	slices.SortStableFunc(all, func(a, b *template) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.first, b.first))
	})
	return all
}

// stop ends the counting, where lines follow no patterns.
func (t *templates) stop() {
	t.stopped = true
	t.all, t.leaves, t.cache = nil, nil, nil
}
