package logs

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// Limits of templates.
const (
	templatesMost = 1024 // maximum number of templates in memory
	templateWords = 40   // maximum number of words compared per line
	templateLeaf  = 48   // maximum number of templates a line is compared with
	templateBytes = 512  // maximum number of bytes read per line
	templateLines = 16   // maximum number of lines counted of a template without fixed words
	cacheSize     = 1 << 12
	templateProbe = 4096 // number of lines between two checks of whether the lines repeat
	templateShare = 50   // a template is common if it has at least one in so many lines: 2 %
	variantsMost  = 6    // maximum number of variants of a template that are told apart
	wild          = "<*>"
)

// templates finds the patterns of log lines with the Drain algorithm (He et al., 2017): lines with the same number
// of words and the same first word are compared word by word; if at least half of the words are equal, the others
// become wildcards. Words with a digit are wildcards from the start. A hash cache recognises lines that differ only
// in such words.
type templates struct {
	leaves  map[leaf][]*template
	all     []*template
	cache   []cached // by hash modulo cacheSize
	recent  *variant // of the last line; nil: it is not told apart
	words   []string
	dropped int64 // number of templates dropped for lack of room
	lines   int64
	probed  int64 // number of lines since the last probe
	misses  int64 // number of these that the cache did not know
	stopped bool  // only errors are matched, until ended
	ended   bool  // nothing is matched any more
}

type cached struct {
	hash    uint64
	is      *template
	variant *variant
}

// variant is the lines of a template that have all words without a digit in common.
type variant struct {
	hash  uint64
	n     int64
	first int64 // line number
	text  string
}

type leaf struct {
	words   int
	first   string
	failure bool // lines of errors share no template with others
}

type template struct {
	words     []string
	n         int64
	before    int64 // n at the last probe
	sampled   int64 // number of lines in n that were sampled and stand for skipped lines too; see [patterns.matchRun]
	first     int64 // first line number
	last      int64
	level     level
	text      string // text of the first line
	minimum   bool   // n may be too low: the template is younger than a dropped one, or has under ten samples
	estimated bool   // n is an estimate
	dropped   bool
	variants  []*variant // the first ones
	varied    bool       // there are more
	member    leaf
	blank     bool        // no word is fixed but the level: the pattern says nothing
	lines     []lineCount // of a blank template of errors: lines and how often each was seen
}

type lineCount struct {
	text string
	n    int64
}

func newTemplates() *templates {
	return &templates{leaves: map[leaf][]*template{}, cache: make([]cached, cacheSize)}
}

// add counts a line and returns its template; nil if the line is not matched because the lines do not repeat. The line
// is passed without its time; at is its number.
func (t *templates) add(line []byte, at int64, l level) *template {
	t.lines++
	if t.ended || t.stopped && l < failure {
		return nil
	}
	if len(line) > templateBytes {
		line = line[:templateBytes]
	}
	hash := signature(line)
	if l >= failure {
		hash++
	}
	slot := &t.cache[hash%cacheSize]
	if slot.hash != hash || slot.is == nil || slot.is.dropped {
		slot.hash, slot.is = hash, t.find(line, at, l)
		slot.variant = slot.is.variant(hash, at, line)
		t.misses++
	}
	found := slot.is
	if t.recent = slot.variant; t.recent != nil {
		t.recent.n++
	}
	found.n++
	found.last = at
	found.level = max(found.level, l)
	if found.blank && l >= failure {
		found.countLine(line)
	}
	if t.probed++; t.probed == templateProbe {
		t.probe()
	}
	return found
}

// again counts at most n more lines with the signature and the level of the line that add has just matched to found. It
// returns how many: a line that is due for a probe is left to add.
func (t *templates) again(found *template, n int64) int64 {
	switch {
	case found == nil: // lines of this level are not matched any more
	case t.probed == 0, found.blank: // the probe may have removed the template; lines of a blank one may be told apart
		n = 0
	default:
		n = min(n, templateProbe-1-t.probed)
		t.probed += n
		found.n += n
		found.last += n
		if t.recent != nil {
			t.recent.n += n
		}
	}
	t.lines += n
	return n
}

// probe stops the matching of lines that do not repeat, because it is expensive and finds nothing: the cache did not
// know half of them, and under a tenth have a common template. Common templates and those of errors remain.
func (t *templates) probe() {
	covered := int64(0)
	for _, c := range t.all {
		if t.isCommon(c) && !c.vague() {
			covered += c.n - c.before
		}
		c.before = c.n
	}
	if 2*t.misses > t.probed && 10*covered < t.probed {
		t.ended = t.stopped
		t.stopped = true
		t.remove(func(c *template) bool { return c.level < failure && (!t.isCommon(c) || c.vague()) })
		for _, c := range t.all {
			c.minimum = c.minimum || c.level < failure
		}
	}
	t.probed, t.misses = 0, 0
}

// isCommon reports whether a template has at least 2 % of the lines.
func (t *templates) isCommon(c *template) bool { return c.n*templateShare >= t.lines }

// find returns the template of the leaf with most words of a line. It makes a template if none has half of the words.
func (t *templates) find(line []byte, at int64, l level) *template {
	t.split(line)
	key := leaf{words: len(t.words), failure: l >= failure}
	if len(t.words) > 0 {
		key.first = t.words[0]
	}
	if l != noLevel && len(t.words) > 1 { // the first word may be the level, which is not specific
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
		best.checkBlank()
		return best
	}
	if len(t.all) >= templatesMost {
		t.drop()
	}
	if len(t.leaves[key]) >= templateLeaf {
		// The remaining lines of this leaf share its last template.
		best = t.leaves[key][templateLeaf-1]
		for i := range best.words[min(1, len(best.words)):] {
			best.words[i+1] = wild
		}
		best.checkBlank()
		return best
	}
	c := &template{
		words: slices.Clone(t.words), first: at, level: l, text: string(line[:min(len(line), 2*digest.LineRunes)]),
		minimum: t.dropped > 0, member: key,
	}
	t.leaves[c.member] = append(t.leaves[c.member], c)
	t.all = append(t.all, c)
	c.checkBlank()
	return c
}

// variant returns the variant of a line by its signature; nil if the template has too many.
func (c *template) variant(hash uint64, at int64, line []byte) *variant {
	for _, v := range c.variants {
		if v.hash == hash {
			return v
		}
	}
	if c.varied || len(c.variants) == variantsMost {
		c.varied, c.variants = true, nil
		return nil
	}
	v := &variant{hash: hash, first: at, text: string(line[:min(len(line), 2*digest.LineRunes)])}
	c.variants = append(c.variants, v)
	return v
}

// odd returns the variants of a template that has few of them which have at most three lines and 1 % of all.
func (c *template) odd() (odd []*variant) {
	for _, v := range c.variants {
		if v.n <= 3 && 100*v.n <= c.n {
			odd = append(odd, v)
		}
	}
	return odd
}

// checkBlank sets c.blank. The first line counts from then on, unless it is yet to be counted.
func (c *template) checkBlank() {
	if c.blank {
		return
	}
	for _, w := range c.words {
		rest := strings.ReplaceAll(w, wild, "")
		if !strings.ContainsFunc(rest, unicode.IsLetter) {
			continue
		}
		rest = strings.Trim(rest, "[]():|<>")
		if len(rest) > levelLong {
			return
		}
		if l, _ := levelNamed([]byte(rest)); l == noLevel {
			return
		}
	}
	c.blank = true
	if c.n > 0 {
		c.lines = append(c.lines, lineCount{c.text, 1})
	}
}

// countLine counts a line of a blank template, the first templateLines different ones.
func (c *template) countLine(line []byte) {
	line = line[:min(len(line), 2*digest.LineRunes)]
	for i := range c.lines {
		if c.lines[i].text == string(line) {
			c.lines[i].n++
			return
		}
	}
	if len(c.lines) < templateLines {
		c.lines = append(c.lines, lineCount{string(line), 1})
	}
}

// join returns the common pattern of two words: hit=<*>, or <*>.
func join(a, b string) string {
	if i := strings.IndexByte(a, '='); i > 0 && strings.HasPrefix(b, a[:i+1]) {
		return a[:i+1] + wild
	}
	return wild
}

// fits reports whether the pattern key=<*> matches w.
func fits(pattern, w string) bool {
	key, ok := strings.CutSuffix(pattern, wild)
	return ok && key != "" && strings.HasSuffix(key, "=") && strings.HasPrefix(w, key)
}

// drop removes templates with the lowest count, the oldest first and at most half of all templates. It keeps those of
// errors unless they are over half.
func (t *templates) drop() {
	errors, least := 0, int64(math.MaxInt64)
	for _, c := range t.all {
		if c.level >= failure {
			errors++
		}
	}
	droppable := func(c *template) bool { return c.level < failure || 2*errors > len(t.all) }
	for _, c := range t.all {
		if droppable(c) {
			least = min(least, c.n)
		}
	}
	want := len(t.all) / 2
	t.remove(func(c *template) bool {
		if !droppable(c) || c.n > least || want == 0 {
			return false
		}
		want--
		return true
	})
}

// remove removes the templates for which unwanted returns true. It calls unwanted once for each, oldest first.
func (t *templates) remove(unwanted func(*template) bool) {
	t.all = slices.DeleteFunc(t.all, func(c *template) bool {
		if !unwanted(c) {
			return false
		}
		t.dropped++
		c.dropped = true
		same := slices.DeleteFunc(t.leaves[c.member], func(x *template) bool { return x == c })
		if t.leaves[c.member] = same; len(same) == 0 {
			delete(t.leaves, c.member)
		}
		return true
	})
}

// split splits a line into t.words. Parts of words that contain a digit become wildcards: /users/<*>/orders,
// took=<*>.
func (t *templates) split(line []byte) {
	t.words = t.words[:0]
	for word := range bytes.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '\t' }) {
		if len(t.words) == templateWords {
			t.words = append(t.words, wild)
			return
		}
		t.words = append(t.words, mask(word))
	}
}

// mask replaces each part of a word that contains a digit with a wildcard. Adjacent wildcards joined by . : - / ,
// or + become one wildcard.
func mask(word []byte) string {
	if !slices.ContainsFunc(word, func(c byte) bool { return c-'0' <= 9 }) {
		return string(word)
	}
	out := make([]byte, 0, len(word)+4)
	for i := 0; i < len(word); {
		if !digest.IsWord[word[i]] {
			out = append(out, word[i])
			i++
			continue
		}
		from, digit := i, false
		for i < len(word) && digest.IsWord[word[i]] {
			digit = digit || word[i]-'0' <= 9
			i++
		}
		if !digit {
			out = append(out, word[from:i]...)
			continue
		}
		if n := len(out); n > len(wild) && strings.IndexByte(".:-/,+", out[n-1]) >= 0 &&
			string(out[n-1-len(wild):n-1]) == wild {
			out = out[:n-1]
			continue
		}
		out = append(out, wild...)
	}
	return string(out)
}

// pattern returns the template as one line. A blank one gives its most frequent line, of those counted, instead.
func (c *template) pattern() string {
	if !c.blank || len(c.lines) == 0 {
		return strings.Join(c.words, " ")
	}
	most := c.lines[0]
	for _, l := range c.lines {
		if l.n > most.n {
			most = l
		}
	}
	return "such as " + most.text
}

// count formats the count: "1203×", "1203+×" if some lines may be uncounted, "about 1200×" if the count is
// extrapolated.
func (c *template) count() string {
	if c.estimated {
		return "about " + digest.Number(rounded(c.n)) + "×"
	}
	if c.minimum {
		return digest.Number(c.n) + "+×"
	}
	return digest.Number(c.n) + "×"
}

// estimate extrapolates counts: each sampled line represents the given number of lines. Counts under ten samples
// are not extrapolated but marked as minimum counts.
func (t *templates) estimate(each float64) {
	for _, c := range t.all {
		if c.sampled == 0 {
			continue
		}
		if c.sampled < 10 {
			c.minimum = true
			continue
		}
		c.estimated = true
		more := int64(float64(c.sampled) * (each - 1))
		c.n += more
		t.lines += more
	}
}

// rounded rounds n to two digits, the precision of a sampled count.
func rounded(n int64) int64 {
	step := int64(1)
	for n/step >= 100 {
		step *= 10
	}
	return (n + step/2) / step * step
}

// repetitive reports whether at least half of the lines match a repeated template that is not vague.
func (t *templates) repetitive() bool {
	var n int64
	for _, c := range t.all {
		if c.n > 1 && !c.vague() {
			n += c.n
		}
	}
	return 2*n >= t.lines
}

// vague reports whether over 60 % of the words of a template are wildcards.
func (c *template) vague() bool {
	wilds := 0
	for _, w := range c.words {
		if w == wild {
			wilds++
		}
	}
	return 5*wilds > 3*len(c.words)
}

// common returns the templates sorted by count, highest first.
func (t *templates) common() []*template {
	all := slices.Clone(t.all)
	slices.SortStableFunc(all, func(a, b *template) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.first, b.first))
	})
	return all
}

// stop ends the counting and frees the templates; it is called if the lines follow no patterns.
func (t *templates) stop() {
	t.stopped, t.ended = true, true
	t.all, t.leaves, t.cache = nil, nil, nil
}
