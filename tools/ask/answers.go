package ask

import (
	"encoding/json"
	"errors"
	"fmt"
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

// kept is an answer as it is stored: answers/<id>.json.
type kept struct {
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

// errUnknown is the error for an answer that is missing, another identity's or too old.
var errUnknown = errors.New("unknown answer, or older than 30 days; ask without after")

// recall reads an answer.
func (k *Asker) recall(owner, id string) (a kept, err error) {
	if k.options.Records == nil {
		return a, errors.New("no store could be opened, so no answers are kept; ask without after")
	}
	r, err := k.options.Records.Get(records.Key{Kind: records.Answer, Owner: owner, Name: id})
	if err != nil || json.Unmarshal(r.Body, &a) != nil || a.Owner != owner || time.Since(a.At) > records.Answer.Age {
		return kept{}, errUnknown
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
	a := kept{
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
