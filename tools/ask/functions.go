package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/router"
)

// Answerer answers questions through a model's endpoint.
type Answerer interface {
	// Answer works on one question. An error means that the endpoint cannot be used: the facts answer then.
	Answer(ctx context.Context, t Task) (Reply, error)
}

// Task is one question for an Answerer.
type Task struct {
	Question  string
	History   []Turn     // the questions before, the latest last; at most two
	Routed    Step       // what the router would run
	Functions []Function // what the model may run
	Progress  func(step int, what string)
}

// Function is one function that a model may run.
type Function struct {
	Name, Description string
	Schema            json.RawMessage // of the arguments, a JSON object
	Run               func(ctx context.Context, args json.RawMessage) (string, error)
}

// Reply is what an Answerer made of a question.
type Reply struct {
	Text        string // "": the model gave no answer
	By          string // "model NAME"
	Steps       []Step // functions that were run
	Completions int
	Ungrounded  []string // numbers, dates and names of Text that are in no result, at most 20
	Notes       []string // on Text: what it lacks
}

// Extractor chooses the facts of passages.
type Extractor interface {
	// Extract returns the numbers of the lines of a passage that answer a question, from 1; none if it does not answer
	// it. The error is ErrUnreadable for a reply of another form; another one means that the endpoint cannot be used.
	Extract(ctx context.Context, question, passage string) (lines []int, err error)
}

// ErrUnreadable is the error for a reply that does not have the form that was asked for.
var ErrUnreadable = errors.New("the reply does not have the form that was asked for")

// maxExtractions is the maximum number of passages of one search whose facts an Extractor chooses.
const maxExtractions = 5

// extract returns the facts of a passage that the Extractor chooses. If it cannot, it returns those of the rules.
func (q *question) extract(query facts.Query, p facts.Passage, byRules []facts.Fact) []facts.Fact {
	if q.extractor == nil || q.extracted == maxExtractions {
		return byRules
	}
	q.extracted++
	lines, err := q.extractor.Extract(q.ctx, q.readAs, p.Text)
	if err == nil {
		return facts.Chosen(query, p, lines)
	}
	if q.byRules++; !errors.Is(err, ErrUnreadable) {
		q.extractor = nil
		q.note("the endpoint failed (%s): the rules chose the facts", content.ClipBytes(err.Error(), 150))
	}
	for i := range byRules {
		byRules[i].By = "rules"
	}
	return byRules
}

// Extract has an Extractor choose the facts of the passages that are shown. Call it before the first question.
func (k *Asker) Extract(e Extractor) { k.options.Extractor = e }

// Use has an Answerer answer questions. Call it before the first question.
func (k *Asker) Use(a Answerer) { k.options.Answerer = a }

// parameters of all functions: flat, so that small models get them right.
type parameters struct {
	Query     string `json:"query"`
	TopK      int    `json:"top_k"`
	Extension string `json:"extension"`
	Limit     int    `json:"limit"`
	NameHint  string `json:"name_hint"`
	Pattern   string `json:"pattern"`
	MaxDepth  int    `json:"max_depth"`
}

// functionList are the functions besides respond, with the properties of their arguments.
var functionList = []struct{ name, description, properties, required string }{
	{"semantic_search", "Search the content of the files; returns facts with file and line.",
		`"query":{"type":"string"},"top_k":{"type":"integer"}`, `"query"`},
	{"count_files", "Count files, all or those with an extension, or several: \"doc,docx\".",
		`"extension":{"type":"string"}`, ``},
	{"list_files", "List files, the newest first.", `"extension":{"type":"string"},"limit":{"type":"integer"}`, ``},
	{"file_metadata", "Size and times of the files with this name.", `"name_hint":{"type":"string"}`, `"name_hint"`},
	{"grep_files", "Find files by a part of their name.", `"pattern":{"type":"string"}`, `"pattern"`},
	{"directory_tree", "Count the files of each directory by extension.", `"max_depth":{"type":"integer"}`, ``},
}

// functions returns what a model may run for this question. Each run adds its records to r.
func (q *question) functions(r *Result) (list []Function) {
	for _, f := range functionList {
		list = append(list, Function{
			Name: f.name, Description: f.description,
			Schema: json.RawMessage(`{"type":"object","properties":{` + f.properties + `},"required":[` + f.required + `]}`),
			Run: func(ctx context.Context, args json.RawMessage) (string, error) {
				var p parameters
				if err := json.Unmarshal(args, &p); err != nil {
					return "", fmt.Errorf("the arguments do not fit: %w", err)
				}
				return q.runFunction(ctx, f.name, p, r)
			},
		})
	}
	return list
}

// extensions reads "pdf", ".doc, .docx" and "doc and docx".
func extensions(list string) []string {
	all := strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return strings.ContainsRune(" .,;|/*", r) })
	return slices.DeleteFunc(all, func(e string) bool { return e == "and" || e == "or" })
}

// runFunction runs one function and returns its text, which is as short as an answer of the tool.
func (q *question) runFunction(ctx context.Context, name string, p parameters, r *Result) (string, error) {
	step := *q
	step.ctx, step.notes, step.withFacts, step.changed = ctx, nil, map[*file]bool{}, 0
	step.top, step.extractor, step.rejected = defaultTop, q.k.options.Extractor, map[string]bool{}
	if p.TopK > 0 {
		step.top = min(p.TopK, maxTop)
	}
	step.route = router.Route{
		Tool: name, Extensions: extensions(p.Extension), Limit: max(p.Limit, 0),
		MaxDepth: min(max(p.MaxDepth, 0), 6), NameHint: p.NameHint + p.Pattern,
	}
	if name == "semantic_search" {
		if strings.TrimSpace(p.Query) == "" {
			return "", fmt.Errorf("query is empty")
		}
		step.text, step.readAs = p.Query, p.Query
	}
	own := &Result{Question: step.text, ReadAs: step.readAs, Tool: name, By: byFacts, Facts: []facts.Fact{}}
	if err := step.answer(own); err != nil {
		return "", err
	}
	if step.byRules > 0 {
		step.note("of %d of %d passages the rules chose the facts", step.byRules, step.extracted)
	}
	q.changed = max(q.changed, step.changed) // each function meets the same passages
	own.Notes = step.notes
	r.Extractions += step.extracted
	r.add(own)
	return own.Text(q.in.CountTokens), nil
}

// add adds the records of a function to those of the answer.
func (r *Result) add(own *Result) {
	have := map[string]int{}
	for i, f := range r.Facts {
		have[f.File+":"+f.Lines] = i
	}
	for _, f := range own.Facts {
		if i, known := have[f.File+":"+f.Lines]; known {
			r.Facts[i].By = f.By
		} else {
			r.Facts = append(r.Facts, f)
		}
	}
	if own.Tool == "semantic_search" && own.Coverage.Files > 0 {
		r.Coverage = own.Coverage
	}
}

// answerBy has the Answerer answer a question. If it cannot, or not in time, the answer of the router stays, and a note
// says why. With perStep, each step of it has the time of the whole, and so has each step of an index that it needs.
func (q *question) answerBy(r *Result) error {
	ctx, stop := context.WithCancelCause(q.ctx)
	defer stop(nil)
	slice := q.k.options.Slice
	late := fmt.Errorf("no answer within %s; a larger --slice waits longer", slice)
	end := q.begin.Add(slice)
	if q.perStep { // the index may have taken longer than that
		end = time.Now().Add(slice)
	}
	if limit, ok := q.ctx.Deadline(); ok && limit.Add(-slice/10).Before(end) { // else the call would end without the facts
		end = limit.Add(-slice / 10)
	}
	timer := time.AfterFunc(time.Until(end), func() { stop(late) })
	defer timer.Stop()
	if report := q.progress; q.perStep {
		q.progress = func(done, total int64, message string) {
			timer.Reset(slice)
			report(done, total, message)
		}
	}
	task := Task{
		Question: q.readAs, History: q.before, Routed: Step{r.Tool, r.Arguments}, Functions: q.functions(r),
		Progress: func(step int, what string) { q.progress(int64(step), 0, what) },
	}
	reply, err := q.k.options.Answerer.Answer(ctx, task)
	if q.ctx.Err() != nil {
		return q.ctx.Err()
	}
	if ctx.Err() != nil && strings.TrimSpace(reply.Text) == "" {
		err = late
	}
	r.Completions, r.Steps = reply.Completions, append(r.Steps, reply.Steps...) // none is [], not null
	switch {
	case err != nil:
		q.note("the endpoint failed (%s): these are the facts, no model answered", content.ClipBytes(err.Error(), 150))
	case strings.TrimSpace(reply.Text) == "":
		q.note("the model gave no answer: these are the facts")
	default:
		r.By, r.Answer, r.Ungrounded = reply.By, reply.Text, append(r.Ungrounded, reply.Ungrounded...)
		q.notes = append(q.notes, reply.Notes...)
	}
	return nil
}
