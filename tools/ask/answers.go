package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
)

// Prefix begins the name of an answer.
const Prefix = "ans:"

const (
	historyTurns = 2        // earlier questions that a follow-up has at hand
	keptAnswer   = 16 << 10 // bytes of what it says: a follow-up needs its beginning
	keptFacts    = 200      // facts of one; all are in its observation
)

// Turn is one question and its answer.
type Turn struct {
	Question string `json:"question"`
	ReadAs   string `json:"read_as"`
	Answer   string `json:"answer"`
}

// Fact is a line of a file that answers a question.
type Fact = facts.Fact

// Kept is an answer as it is stored: answers/<id>.json. Of its facts and of its text there is the beginning.
type Kept struct {
	ID       string       `json:"id"`
	Owner    string       `json:"owner"`
	Path     string       `json:"path,omitempty"`
	Question string       `json:"question"`
	ReadAs   string       `json:"read_as"`
	By       string       `json:"by"`
	Answer   string       `json:"answer"`
	Steps    []Step       `json:"steps"`
	Facts    []facts.Fact `json:"facts"`
	Coverage Coverage     `json:"coverage"`
	History  []Turn       `json:"history"`
	At       time.Time    `json:"at"`
}

// parseAnswer returns the ID in the name of an answer.
func parseAnswer(name string) (string, error) {
	id, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(name)), Prefix)
	if ok {
		if parsed, err := observations.ParseID(observations.Prefix + id); err == nil {
			return string(parsed), nil
		}
	}
	return "", errors.New("after is ans: and 12 characters, as an answer of ask named it; leave it out for a new question")
}

var errNoRecords = errors.New("no store could be opened, so no answers are kept; ask without after")

// errUnknown is the error for an answer that is missing, another identity's or too old.
var errUnknown = errors.New("unknown answer, or older than 30 days; ask without after")

// Answers returns the answers of an owner that are kept, of all owners for "", the newest first.
func (k *Asker) Answers(owner string) (all []Kept, err error) {
	if k.options.Records == nil {
		return nil, errNoRecords
	}
	found, err := k.options.Records.List(records.Key{Kind: records.Answer, Owner: owner}, "*", true)
	for _, r := range found {
		var a Kept
		if json.Unmarshal(r.Body, &a) == nil && (owner == "" || a.Owner == owner) && time.Since(a.At) <= records.Answer.Age {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return b.At.Compare(a.At) })
	return all, err
}

// recall reads an answer.
func (k *Asker) recall(owner, id string) (a Kept, err error) {
	if k.options.Records == nil {
		return a, errNoRecords
	}
	r, err := k.options.Records.Get(records.Key{Kind: records.Answer, Owner: owner, Name: id})
	if err != nil || json.Unmarshal(r.Body, &a) != nil || a.Owner != owner || time.Since(a.At) > records.Answer.Age {
		return Kept{}, errUnknown
	}
	return a, nil
}

// keep stores an answer and its facts. If one cannot be stored, a note of the answer says so.
func (q *question) keep(r *Result) {
	q.keepFacts(r)
	o := q.k.options
	if o.Records == nil || o.ReadOnly != nil {
		return
	}
	a := Kept{
		ID: string(observations.RandomID()), Owner: q.in.Owner, Path: q.args.Path, Question: r.Question, ReadAs: r.ReadAs,
		By: r.By, Answer: content.ClipEnd(r.Answer, keptAnswer), Steps: r.Steps,
		Facts: r.Facts[:min(len(r.Facts), keptFacts)], Coverage: r.Coverage, History: q.before, At: time.Now().UTC(),
	}
	a.Coverage.NotSearchable, a.Coverage.Missing = nil, nil
	b, err := json.Marshal(a)
	if err == nil {
		err = o.Records.Put(records.Key{Kind: records.Answer, Owner: a.Owner, Name: a.ID}, b)
	}
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the answer is not kept, it has no follow-up: %v", err))
		return
	}
	r.ID = Prefix + a.ID
}
