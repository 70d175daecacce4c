// Package ask has the tool ask: a question in plain words gets the lines of files that answer it, and what was not
// covered; a question about files gets the number or the list. No model takes part unless an endpoint is given.
//
// router reads the question, index finds passages by their words, and facts takes the lines from them.
package ask

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/router"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Toolset is the name of this package's toolset.
const Toolset = "answers"

// Limits of arguments.
const (
	defaultTop  = 5
	maxTop      = 50
	maxQuestion = 2000 // bytes
)

// Options of New.
type Options struct {
	Store    string        // directory of the store; "": indexes are kept in memory
	Records  records.Store // where answers are kept; nil: there are no follow-ups
	ReadOnly error         // why the store cannot be written: then as without a store; nil: it can
	Slice    time.Duration // a call answers within it; 45 s
	Answerer Answerer      // answers through an endpoint; nil: the facts are the answer

	Extractor Extractor // chooses the facts for the Answerer; nil: the rules do
	Embedder  Embedder  // finds passages by their meaning; nil: the built-in table does where words find little
	ByWords   bool      // without an Embedder, passages are found by their words alone
}

// Asker answers questions. It is safe for concurrent use.
type Asker struct {
	options   Options
	embedding sync.Mutex // held by the call that makes vectors of passages
	turns     sync.Map   // from the file of an index to a chan of one, full while a call brings it up to date
}

// New returns an Asker. It opens nothing.
func New(o Options) *Asker {
	o.Slice = cmp.Or(o.Slice, 45*time.Second)
	return &Asker{options: o}
}

// Args are the arguments of the tool.
type Args struct {
	Question string `json:"question" help:"Question in plain words, on what files say or on the files themselves."`
	Path     string `json:"path,omitempty" jsonschema:"directory, file, glob, obs: or inv:ID" help:"Where to look: a directory, a file, a glob, obs:, obs:ID or inv:ID. Default: all roots."`
	Top      int    `json:"top,omitempty" jsonschema:"passages, 5" help:"How many passages to take facts from, 1 to 50. Default: 5."`
	After    string `json:"after,omitempty" jsonschema:"ans:ID" help:"The answer that this question follows: ans:ID."`
}

// Check implements [tools.Checker].
func (a Args) Check() error {
	switch {
	case strings.TrimSpace(a.Question) == "":
		return errors.New("question is empty: ask in plain words, such as \"when does the lease end?\"")
	case len(a.Question) > maxQuestion:
		return fmt.Errorf("question has %d bytes; at most %d: ask one thing", len(a.Question), maxQuestion)
	case a.Top < 0 || a.Top > maxTop:
		return fmt.Errorf("top is %d; it must be from 1 to %d", a.Top, maxTop)
	}
	if a.After != "" {
		_, err := parseAnswer(a.After)
		return err
	}
	return nil
}

// Tool returns the tool ask. The tool of a nil Asker can be listed, but not called.
func (k *Asker) Tool() tools.Tool { return k.tool(0, nil) }

// Command returns the tool ask for the command line, where a slice is the time of each step of a model, not of all, and
// the index is finished however long it takes, unless limit is above 0: then an answer without a model is made within
// about that time. got takes the result with its whole lists, or the error.
func (k *Asker) Command(limit time.Duration, got func(*Result, error)) tools.Tool {
	return k.tool(cmp.Or(limit, noLimit), got)
}

// noLimit is more time than any index takes.
const noLimit = 365 * 24 * time.Hour

func (k *Asker) tool(limit time.Duration, got func(*Result, error)) tools.Tool {
	if k == nil {
		k = New(Options{})
	}
	return tools.New(tools.Tool{
		Name:  "ask",
		Title: "Ask the files",
		Description: "Facts with file and line from text, code, docx, pdf, mail and spreadsheets, or \"all of …\", in one call, and " +
			"what was not covered. Also counts and lists files. after is kept for 30 days.",
		Effect:  tools.Writes,
		Paged:   true,
		Toolset: Toolset,
	}, func(ctx context.Context, a Args, in tools.Input, out tools.Output) error {
		r, err := k.answer(ctx, a, in, out, limit)
		if got != nil {
			got(r, err)
		}
		if err != nil {
			return err
		}
		out.Attach(r.brief())
		for _, n := range r.Notes {
			out.Note(content.ClipEnd(n, maxNoteBytes))
		}
		return out.Page().Text([]byte(r.text(in.CountTokens, nil, r.Notes)))
	})
}

// answer answers a question within a slice, or with a limit as [Asker.Command] does.
func (k *Asker) answer(
	ctx context.Context, a Args, in tools.Input, out tools.Output, limit time.Duration,
) (*Result, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	q := &question{
		k: k, ctx: ctx, in: in, store: out.Store, progress: out.Progress, perStep: limit > 0, args: a,
		top: cmp.Or(a.Top, defaultTop), begin: time.Now(),
		deadline: time.Now().Add(cmp.Or(limit, k.options.Slice) * 8 / 10),
		text:     strings.Join(strings.Fields(content.Visible(a.Question, false)), " "), withFacts: map[*file]bool{},
	}
	if k.options.Embedder != nil || !k.options.ByWords {
		q.meaning = &meaning{asked: map[string][]float32{}}
	}
	if err := q.follow(); err != nil {
		return nil, err
	}
	if err := q.gather(); err != nil {
		return nil, err
	}
	defer q.close()
	q.route = router.Read(q.readAs)
	r := &Result{
		Question: q.text, ReadAs: q.readAs, Tool: q.route.Tool, By: byFacts, Facts: []facts.Fact{}, Files: []string{},
		Steps: []Step{}, Ungrounded: []string{}, Notes: []string{},
		Coverage: Coverage{NotSearchable: []Unsearchable{}, Missing: []string{}},
	}
	if err := q.answerOrSearch(r); err != nil {
		return nil, err
	}
	if k.options.Answerer != nil {
		if err := q.answerBy(r); err != nil {
			return nil, err
		}
	} else {
		r.Steps = append(r.Steps, Step{r.Tool, r.Arguments})
	}
	q.noteParts()
	if q.changed > 0 {
		q.note("%s changed during the call: ask again", content.Plural(int64(q.changed), "passage", "passages"))
	}
	r.Notes = append(r.Notes, q.notes...)
	r.Ranked = q.meaning.ranked()
	q.keep(r)
	return r, nil
}

// question is one call.
type question struct {
	k        *Asker
	ctx      context.Context
	in       tools.Input
	store    func(tools.Stored) (id string, err error)
	progress func(done, total int64, message string)
	perStep  bool
	args     Args
	top      int
	begin    time.Time
	deadline time.Time // for building indexes

	text   string // the question in one line
	readAs string // with the words of the one before, if it follows one
	before []Turn
	route  router.Route
	known  float64  // share of the question's terms that files have
	absent []string // its words that no file has
	places []*corpus
	notes  []string

	extractor Extractor // nil: the rules choose the facts
	extracted int       // passages that it was asked about, and those of which the rules chose the facts
	byRules   int
	rejected  map[string]bool // passages in which it found nothing, by file and line
	meaning   *meaning        // nil: passages are found by their words alone

	changed   int // passages whose file changed during the call
	withFacts map[*file]bool
}

// note adds a line that the answer shows.
func (q *question) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		q.notes = append(q.notes, text)
	}
}

// noteParts names files that were read and whose text is not whole: an answer does not cover the rest of them.
func (q *question) noteParts() {
	const most = 3
	n := 0
	for _, c := range q.places {
		for _, p := range slices.Sorted(maps.Keys(c.parts)) {
			if n++; n <= most {
				q.note("%s", content.ClipEnd(c.parts[p], 200))
			}
		}
	}
	if n > most {
		q.note("and %d more files are not whole", n-most)
	}
	var decoded source.Decoded
	byName := func(a, b *file) int { return strings.Compare(a.Name(), b.Name()) }
	for _, f := range slices.SortedFunc(maps.Keys(q.withFacts), byName) {
		e := f.at.stored[f.Path]
		if e != source.Mixed && (e.Certain() || !source.BeyondASCII(q.readAs)) { // others are in another note
			decoded.Add(f.Name(), e)
		}
	}
	q.note("%s", decoded.NoteAll())
}

// follow reads the answer that this question follows.
func (q *question) follow() error {
	q.readAs = q.text
	if q.args.After == "" {
		return nil
	}
	id, err := parseAnswer(q.args.After)
	if err != nil {
		return err
	}
	last, err := q.k.recall(q.in.Owner, id)
	if err != nil {
		return fmt.Errorf("after: %s: %w", q.args.After, err)
	}
	q.before = append(last.History, Turn{last.Question, last.ReadAs, last.Answer})
	q.before = q.before[max(0, len(q.before)-historyTurns):]
	if router.IsFollowUp(q.text) {
		if more := router.ContentWords(last.ReadAs); len(more) > 0 {
			q.readAs = q.text + " (" + strings.Join(more, " ") + ")"
		}
	}
	if q.args.Path == "" {
		q.args.Path = last.Path
	}
	return nil
}

// indexFile returns the file of a root's index, or that of one in memory.
func (k *Asker) indexFile(dir string) string {
	if dir == "" || k.options.Store == "" || k.options.ReadOnly != nil {
		return index.Memory
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(k.options.Store, "index", hex.EncodeToString(sum[:])+".db")
}
