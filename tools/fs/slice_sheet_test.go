package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// sheet is a page of so many bytes. As in the funnel a row that is longer stands alone and is clipped.
type sheet struct {
	tools.Discard
	room         int
	rows         []string
	more         []tools.Call
	first, total int64
	spanned      bool
	next         *tools.Call
	notes        []string
	reach        string
	full         bool
	clipped      bool
	exact        bool // its rows hold their line ends
}

func (s *sheet) Row(b []byte, more tools.Call) error {
	if s.full {
		return tools.ErrPageFull
	}
	if len(b) > s.room {
		s.full = true
		if len(s.rows) > 0 {
			return tools.ErrPageFull
		}
		s.clipped = true
	}
	s.room -= len(b)
	s.rows, s.more = append(s.rows, string(b)), append(s.more, more)
	return nil
}

// fit is how much of b the sheet has room for.
func (s *sheet) fit(b []byte) int {
	n := min(len(b), s.room)
	if n < len(b) {
		n = len(cutChars(b, n))
	}
	switch {
	case s.full:
		return 0
	case n == 0 && len(s.rows) == 0 && len(b) > 0:
		_, n = utf8.DecodeRune(b)
		s.room = n
	}
	return n
}

// cutChars is the most of b in n bytes that tears no char apart.
func cutChars(b []byte, n int) []byte {
	at := 0
	for {
		_, size := utf8.DecodeRune(b[at:])
		if size == 0 || at+size > n {
			return b[:at]
		}
		at += size
	}
}

func (s *sheet) TruncatedRow(head, tail []byte, between int64, more tools.Call) error {
	return s.Row(fmt.Appendf(nil, "%s… %d chars …%s", head, between, tail), more)
}
func (s *sheet) Text(b []byte) error {
	err := s.Row(b, tools.Call{})
	s.exact = s.exact || err == nil
	return err
}

func (s *sheet) SetRowRange(first, total int64) { s.first, s.total, s.spanned = first, total, true }
func (s *sheet) Page() tools.Page               { return s }
func (s *sheet) SetTextRange(unit string, from, to, total int64) {
	s.reach = fmt.Sprintf("%s %d-%d of %d", unit, from, to, total)
}
func (s *sheet) Next(c tools.Call) { s.next = &c }
func (s *sheet) Note(text string)  { s.notes = append(s.notes, text) }
func (s *sheet) text() string {
	if s.exact {
		return strings.Join(s.rows, "")
	}
	return strings.Join(s.rows, "\n")
}

func (s *sheet) run(src source.Set, args string) error {
	return s.runIn(context.Background(), src, args)
}

func (s *sheet) runIn(ctx context.Context, src source.Set, args string) error {
	return Slice().Run(ctx, tools.Input{Args: json.RawMessage(args), Sources: src, BytesThatFit: s.fit}, s)
}

const wide = 1 << 30 // a page on which everything fits

func cut(t testing.TB, src source.Set, args string) *sheet {
	t.Helper()
	s := &sheet{room: wide}
	if err := s.run(src, args); err != nil {
		t.Fatalf("slice %s: %v", args, err)
	}
	return s
}

// shelf is a root with files, and a store with the same as observations; ids by name.
func shelf(t testing.TB, files map[string]string) (src source.Set, ids map[string]string) {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, files)
	src = toolstest.Roots(t, dir)
	store, err := observations.OpenStore(observations.Options{Dir: filepath.Join(t.TempDir(), "store"), MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	src.Places = []source.NamedPlace{source.Observations(store, observations.Local)}
	ids = map[string]string{}
	for name, text := range files {
		lines := int64(strings.Count(text, "\n"))
		if text != "" && !strings.HasSuffix(text, "\n") {
			lines++
		}
		k := kinds.Sniff([]byte(text), len(text) <= content.SniffSize, name)
		o := kept(t, store, observations.Provenance{Tool: "keep"}, text, observations.Stats{
			Kind: string(k), Ext: kinds.Of(k).Ext, Lines: lines, Chars: int64(utf8.RuneCountInString(text)), Status: "success",
		})
		ids[name] = "obs:" + string(o.ID)
	}
	return src, ids
}

// kept stores a text of a local caller.
func kept(
	t testing.TB, store *observations.Store, p observations.Provenance, text string, stats observations.Stats,
) observations.Observation {
	t.Helper()
	p.Owner = observations.Local
	r, err := store.Record(p)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Write([]byte(text)) // Commit returns its error, but that of the limit
	o, err := r.Commit(stats)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
