package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
)

// Result is an answer. Its lists are whole; [Result.Text] shows a part of them.
type Result struct {
	ID          string       `json:"id"` // ans:ID for follow-ups; "" if it is not kept
	Question    string       `json:"question"`
	ReadAs      string       `json:"read_as"` // with the words of the question before, if it follows one
	Tool        string       `json:"tool"`    // the function that answered
	Arguments   any          `json:"arguments"`
	By          string       `json:"by"` // facts, files, or "model NAME"
	Answer      string       `json:"answer"`
	Count       *int64       `json:"count"` // of a question that counts; null for others
	Files       []string     `json:"files"` // that gave facts, or that were listed
	Facts       []facts.Fact `json:"facts"`
	Coverage    Coverage     `json:"coverage"`
	Steps       []Step       `json:"steps"`
	Completions int          `json:"completions"`
	Extractions int          `json:"extractions,omitempty"` // completions that chose facts
	Ungrounded  []string     `json:"ungrounded"`
	Observation string       `json:"observation"` // obs:ID of all facts; "" if they are not kept
	Notes       []string     `json:"note"`
	Ranked      string       `json:"ranked,omitempty"` // by words, by meaning; "" where words were enough

	shown int // facts that the text shows, from the first
	found int // passages with words of the question
}

// Step is one function that was run.
type Step struct {
	Tool      string `json:"tool"`
	Arguments any    `json:"arguments"`
}

// Coverage says what was and what was not searched.
type Coverage struct {
	Files         int            `json:"files"`
	Searched      int            `json:"searched"`
	WithFacts     int            `json:"with_facts"`
	NotSearchable []Unsearchable `json:"not_searchable"`
	Missing       []string       `json:"missing"` // files whose name belongs to the question and that gave no fact

	Absent         []string `json:"absent,omitempty"` // words of the question that no indexed file has
	By             string   `json:"by,omitempty"`     // the word of the question by which files are named
	Named          int      `json:"named,omitempty"`
	NamedWithFacts int      `json:"named_with_facts,omitempty"`
}

// Unsearchable is a file that was not searched.
type Unsearchable struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Nothing reports whether a question on content found nothing.
func (r *Result) Nothing() bool { return r.Answer == "" && len(r.Facts) == 0 }

// Values of Result.By besides "model NAME".
const (
	byFacts = "facts" // lines of files
	byFiles = "files" // the list of files
)

// Limits of the text of an answer.
const (
	maxTokens    = 320 // in all
	factTokens   = 200 // of facts and what is above them; coverage and what follows come on top
	leastTokens  = 80  // the same where what follows is long
	aroundTokens = 70  // of a fact with the lines around it
	maxNamed     = 5   // files that are named: first those with more facts, then those without
)

// ownLines matches lines of an answer that look like those of this program: a small model repeats the results that it
// got, with other words in them.
var ownLines = content.Pattern(`(?m)^(?:FACTS for |From .*:$|coverage: |note: |read as "|not in the files: |ranked by )`)

// maxAnswer is how much of a model's answer is shown in bytes.
const maxAnswer = 800

// maxNoteBytes is how much of a note is shown.
const maxNoteBytes = 200

// Text is the answer in at most 320 tokens, as count counts them.
func (r *Result) Text(count func(string) int) string { return r.text(count, r.Notes, nil) }

// text is Text with other notes. It leaves room for the notes of apart, which the caller shows below the text. If the
// whole has more than maxTokens, fewer facts are shown.
func (r *Result) text(count func(string) int, notes, apart []string) (text string) {
	beside := 0
	for _, n := range apart {
		beside += count("note: " + content.ClipEnd(n, maxNoteBytes) + "\n")
	}
	for room := factTokens; ; {
		text = r.textIn(count, notes, room)
		over := count(text) + beside - maxTokens
		if over <= 0 || room <= leastTokens {
			return text
		}
		room = max(room-over, leastTokens)
	}
}

// textIn is text with facts of at most room tokens, and the header.
func (r *Result) textIn(count func(string) int, notes []string, room int) string {
	var b strings.Builder
	question := content.ClipEnd(r.Question, 200)
	listed := r.By == byFiles
	by := "no model"
	if model, ok := strings.CutPrefix(r.By, "model "); ok {
		by = model
		fmt.Fprintf(&b, "%s\n", ownLines().ReplaceAllString(content.ClipEnd(r.Answer, maxAnswer), "> $0"))
		if len(r.Ungrounded) > 0 {
			fmt.Fprintf(&b, "not in the files: %s\n", content.ClipEnd(strings.Join(r.Ungrounded, ", "), 200))
		}
	} else if r.Answer != "" {
		fmt.Fprintf(&b, "%s (no model)\n", r.Answer)
	}
	switch {
	case listed:
	case len(r.Facts) > 0:
		fmt.Fprintf(&b, "FACTS for %q (%s; %d of %s)\n", question, by, r.Coverage.WithFacts,
			content.Plural(int64(r.Coverage.Files), "file", "files"))
	case r.found > 0:
		fmt.Fprintf(&b, "Nothing relevant for %q: %s of its words, none answers it.\n", question,
			content.Plural(int64(r.found), "passage has some", "passages have some"))
	default:
		fmt.Fprintf(&b, "Nothing found for %q: %s has its words. Try other words, or names that the files use.\n", question,
			r.Coverage.noFile())
	}
	ranked := ""
	if r.Ranked != "" {
		ranked = "ranked " + r.Ranked + "\n"
	}
	if r.ReadAs != r.Question {
		fmt.Fprintf(&b, "read as %q\n", content.ClipEnd(r.ReadAs, 200))
	}
	left := room - count(b.String()+ranked)
	written, last, around := 0, "", (*facts.Around)(nil)
	for _, f := range r.Facts[:r.shown] {
		if f.File == last && around != nil && f.From >= around.From && f.To <= around.To {
			written++ // it is shown already
			continue
		}
		text := ""
		listed := listed || f.Lines == ""
		if !listed && f.File != last {
			text = "From " + content.VisibleLine(f.File) + ":\n"
		}
		if f.Around != nil && count(f.Around.Text) > aroundTokens {
			f.Around = nil // other facts would have no room
		}
		if f.File != last || f.Around != nil {
			around = f.Around
		}
		if last = f.File; !listed {
			at, body := f.Lines, f.Text
			if f.Around != nil {
				at, body = f.Around.Lines, strings.ReplaceAll(f.Around.Text, "\n", "\n    ")
			}
			text += fmt.Sprintf("  %s: %s\n", at, body)
		} else {
			text += fmt.Sprintf("  %s: %s\n", content.VisibleLine(f.File), f.Text)
		}
		if left -= count(text); left < 0 && written > 0 {
			break
		}
		b.WriteString(text)
		written++
	}
	rest := unseen(r.Facts, written)
	if more := len(r.Facts) - written; more > 0 {
		fmt.Fprintf(&b, "and %s more", content.Plural(int64(more), "record", "records"))
		if len(rest) > 0 {
			b.WriteString(", in " + names(rest, maxNamed))
		}
		b.WriteByte('\n')
	}
	if r.Tool == "semantic_search" {
		b.WriteString(r.Coverage.text(max(1, maxNamed-len(rest))))
	}
	b.WriteString(ranked)
	for _, n := range notes {
		fmt.Fprintf(&b, "note: %s\n", content.ClipEnd(n, maxNoteBytes))
	}
	var next []string
	if r.Observation != "" {
		next = append(next, "all "+content.Plural(int64(len(r.Facts)), "record", "records")+": "+r.Observation)
	}
	if r.ID != "" {
		next = append(next, "follow-up: after="+r.ID)
	}
	if len(next) > 0 {
		b.WriteString(strings.Join(next, " · ") + "\n")
	}
	return b.String()
}

// unseen returns the files that have no fact among those that are shown.
func unseen(all []facts.Fact, shown int) (files []string) {
	known := map[string]bool{}
	for i, f := range all {
		if i >= shown && !known[f.File] {
			files = append(files, f.File)
		}
		known[f.File] = true
	}
	return files
}

// names lists the first of some files, and counts the others.
func names(files []string, most int) string {
	var list []string
	for _, f := range files[:min(len(files), most)] {
		list = append(list, content.ClipEnd(content.VisibleLine(f), 60))
	}
	text := strings.Join(list, ", ")
	if n := len(files); n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return text
}

// late returns how many files are not indexed yet.
func (c Coverage) late() int { return c.Files - c.Searched - len(c.NotSearchable) }

// noFile returns "no file", or "no indexed file" if others may have what these lack.
func (c Coverage) noFile() string {
	if c.late() > 0 {
		return "no indexed file"
	}
	return "no file"
}

// text is the line on coverage. It names some of the files without facts.
func (c Coverage) text(most int) string {
	text := fmt.Sprintf("coverage: %s searched, %d with facts", content.Plural(int64(c.Searched), "file", "files"),
		c.WithFacts)
	if n := len(c.NotSearchable); n > 0 {
		by := map[string]int{}
		for _, u := range c.NotSearchable {
			reason, _, _ := strings.Cut(u.Reason, ":")
			by[reason]++
		}
		reasons, _ := content.Frequent(by, 4)
		text += fmt.Sprintf("; not searchable %d (%s)", n, strings.Join(reasons, ", "))
	}
	if late := c.late(); late > 0 {
		text += fmt.Sprintf("; not indexed yet %d (the index covers %d %%; ask again)", late, 100*(c.Files-late)/c.Files)
	}
	if c.Named > 0 {
		text += fmt.Sprintf("; named %q %d, with facts %d", c.By, c.Named, c.NamedWithFacts)
	}
	if len(c.Missing) > 0 {
		text += "; without: " + names(c.Missing, most)
	}
	if len(c.Absent) > 0 {
		text += "; " + c.noFile() + " has: " + content.ClipEnd(content.VisibleLine(strings.Join(c.Absent, ", ")), 100)
	}
	return text + "\n"
}

// summary is what a program may read of an answer, as _meta["funnel/ask"]: without the lists.
type summary struct {
	ID          string `json:"id,omitempty"`
	Tool        string `json:"tool"`
	By          string `json:"by"`
	Count       *int64 `json:"count,omitempty"`
	Facts       int    `json:"facts"`
	Searched    int    `json:"searched"`
	WithFacts   int    `json:"with_facts"`
	Missing     int    `json:"missing"`
	Observation string `json:"observation,omitempty"`
}

func (r *Result) brief() summary {
	return summary{
		r.ID, r.Tool, r.By, r.Count, len(r.Facts), r.Coverage.Searched, r.Coverage.WithFacts, len(r.Coverage.Missing),
		r.Observation,
	}
}

// records returns all facts as NDJSON.
func (r *Result) records() []byte {
	var b bytes.Buffer
	for _, f := range r.Facts {
		raw, err := json.Marshal(f)
		if err != nil { // a score that is no number
			continue
		}
		b.Write(append(raw, '\n'))
	}
	return b.Bytes()
}

// keepFacts stores the records if some of them are not shown.
func (q *question) keepFacts(r *Result) {
	if len(r.Facts) == 0 {
		return
	}
	id, err := q.store(tools.Stored{
		Text: r.records(), Name: "facts for " + content.ClipBytes(r.Question, 80), Args: q.args,
	})
	if err != nil {
		r.Notes = append(r.Notes, "the records are not kept: "+err.Error())
		return
	}
	r.Observation = "obs:" + id
}
