package continuation

import (
	"bytes"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// lastStarts is how many of the last children of a container are remembered at least: as many predecessors a restart
	// text can have.
	lastStarts = 32
	// maxNames is the largest number of names of one object that are compared with each other.
	maxNames = 100_000
)

// container is one open container, and the child that is being read in it. The first container is the text itself: its
// children are the top-level values.
type container struct {
	Object bool
	Role   role
	Start  int64    // offset of the opening bracket
	Count  int64    // children that are complete
	Open   int64    // offset of the child being read, with its key; −1: none
	Key    [2]int64 // range of the key read last, without quotes
	Last   []int64  // offsets of the last complete children
	End    int64    // end of the last complete child

	names map[uint64]struct{}
}

// parser reads a text that is in memory and remembers where the open containers and their children begin.
type parser struct {
	text       []byte
	scan       content.Scanner
	containers []container
	value      int64   // offset of the string, number or literal being read
	recent     []int64 // offsets of the last values that began, at any depth
	doubles    int64   // names that occur again in their object
	trailing   int64   // offset of text that follows a value on its line; −1: none

	outline outline
}

func newParser() *parser {
	return &parser{containers: []container{{Open: -1}}, trailing: -1}
}

// clone returns a copy that can read another continuation.
func (p *parser) clone() *parser {
	c := *p
	c.containers, c.recent = slices.Clone(p.containers), slices.Clone(p.recent)
	for i := range c.containers {
		f := &c.containers[i]
		f.Last = slices.Clone(f.Last)
		f.names = maps.Clone(f.names)
	}
	c.outline = p.outline.clone()
	return &c
}

// offset returns the number of bytes of the text that were read.
func (p *parser) offset() int64 { return p.scan.Offset() }

// read parses text[offset:end]; text must begin with what was read before.
func (p *parser) read(text []byte, end int64) {
	p.text = text
	for p.offset() < end && p.scan.Err() == nil && p.trailing < 0 {
		_, e := p.scan.Scan(text[p.offset():end])
		p.handle(e)
	}
}

func (p *parser) top() *container { return &p.containers[len(p.containers)-1] }

func (p *parser) handle(e content.Event) {
	off := p.offset()
	switch e {
	case content.More:
	case content.ObjectStart, content.ArrayStart:
		p.beginValue(off - 1)
		r := p.outline.childRole(p, e == content.ObjectStart)
		p.containers = append(p.containers, container{Object: e == content.ObjectStart, Role: r, Start: off - 1, Open: -1})
		p.outline.begin(p)
	case content.KeyStart:
		p.top().Open, p.value = off-1, off-1
	case content.KeyEnd:
		f := p.top()
		f.Key = [2]int64{p.value + 1, off - 1}
		p.addName(f)
	case content.StringStart, content.NumberStart, content.LiteralStart:
		p.beginValue(off - 1)
		p.value = off - 1
	case content.StringEnd, content.NumberEnd, content.LiteralEnd:
		p.outline.scalar(p, e, p.text[p.value:off])
		p.endValue(off)
	case content.ObjectEnd, content.ArrayEnd:
		p.outline.end(p, true)
		p.containers = p.containers[:len(p.containers)-1]
		p.endValue(off)
	}
}

// beginValue begins a child, unless its key did. Values at the top must be on lines of their own.
func (p *parser) beginValue(at int64) {
	if len(p.recent) == 2*lastStarts {
		p.recent = p.recent[:copy(p.recent, p.recent[lastStarts:])]
	}
	p.recent = append(p.recent, at)
	f := p.top()
	if f.Object {
		return
	}
	f.Open = at
	if len(p.containers) == 1 && f.Count > 0 && bytes.IndexByte(p.text[f.End:at], '\n') < 0 {
		p.trailing = f.End
	}
}

func (p *parser) endValue(at int64) {
	f := p.top()
	if len(f.Last) == 2*lastStarts {
		f.Last = f.Last[:copy(f.Last, f.Last[lastStarts:])]
	}
	f.Last = append(f.Last, f.Open)
	f.Count++
	f.Open, f.End = -1, at
}

// addName counts a name that the object has already.
func (p *parser) addName(f *container) {
	name := p.text[f.Key[0]:f.Key[1]]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(unquote(name))
	}
	sum := hashOf(name)
	if _, found := f.names[sum]; found {
		p.doubles++
		return
	}
	if f.names == nil {
		f.names = map[uint64]struct{}{}
	}
	if len(f.names) < maxNames {
		f.names[sum] = struct{}{}
	}
}

func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// key returns the name of the child that is being read in the container at a depth, decoded.
func (p *parser) key(depth int) string {
	f := &p.containers[depth]
	return unquote(p.text[f.Key[0]:f.Key[1]])
}

var tokenEscapes = strings.NewReplacer("~", "~0", "/", "~1") // of a JSON Pointer

// pointer returns the JSON Pointer of the child being read, or read last, in the container at a depth. In a text of
// several values its first token is the index of the value.
func (p *parser) pointer(depth int) string {
	var b []byte
	for d := 0; d <= depth && d < len(p.containers); d++ {
		f := &p.containers[d]
		if d == 0 && f.Count == 0 {
			continue
		}
		if f.Object && (f.Count == 0 && f.Open < 0 || d == len(p.containers)-1 && p.scan.Inside() == "key") {
			continue // no name yet
		}
		b = append(b, '/')
		if f.Object {
			b = append(b, tokenEscapes.Replace(p.key(d))...)
			continue
		}
		n := f.Count
		if f.Open < 0 {
			n--
		}
		b = strconv.AppendInt(b, max(n, 0), 10)
	}
	return string(b)
}
