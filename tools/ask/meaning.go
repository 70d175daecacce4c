package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/embed"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
)

// Embedder makes vectors of texts with a model: texts that mean the same have vectors of nearly the same direction.
type Embedder interface {
	Model() string // its name: an index has vectors of one model
	// Embed returns a vector of each text, in their order and of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// UseEmbedder has an Embedder find passages by their meaning. Call it before the first question.
func (k *Asker) UseEmbedder(e Embedder) { k.options.Embedder = e }

const (
	mostTexts      = 16   // texts of one request
	pageOfPassages = 256  // passages that are looked up at once
	minCosine      = 0.25 // passages that are farther from the question are not found
	minBuiltIn     = 0.15 // the same for the built-in table
	fused          = 60   // the constant of reciprocal rank fusion
	nearUnits      = 128  // sentences of passages that are compared with the question
	nearFacts      = 2    // facts of a passage that was found by its meaning
	askedBonus     = 0.1  // for a sentence that has what is asked for: a date, an amount
	fewWords       = 0.38 // share of the question's words below which passages are also found by the built-in table
	knownFrom      = 0.5  // share of a question that the table must know
	keptDocuments  = 16   // files whose texts are kept while passages are embedded
)

// meaning is the state of one question and of all functions that its model runs, as far as vectors are concerned.
type meaning struct {
	builtIn           string               // how the passages were ranked without an Embedder; "": by words
	asked             map[string][]float32 // unit vectors of questions
	passages, vectors int                  // of the files that are asked; passages that have a vector
	used, ran         bool                 // passages were to be, and were, compared with a question
	failed            string               // why the endpoint is not asked again during this call
}

// ranked says by what passages were ranked; "" without an Embedder, and for questions on files.
func (m *meaning) ranked() string {
	if m == nil || !m.used {
		return ""
	}
	if m.builtIn != "" {
		return m.builtIn
	}
	text := "by words and meaning"
	switch {
	case !m.ran:
		text = "by words only"
	case m.vectors < m.passages:
		text = fmt.Sprintf("by words, and by meaning for %d %% of passages", 100*m.vectors/m.passages)
	}
	if m.failed != "" {
		text += ": the embeddings endpoint failed: " + m.failed
	}
	return text
}

// byMeaning returns the passages to take facts from: the best by words, merged with the best by meaning. They are those
// by words alone if the endpoint fails.
func (q *question) byMeaning(query facts.Query, byWords []found) ([]found, error) {
	m := q.meaning
	if q.k.options.Embedder == nil {
		return q.byTable(query, byWords)
	}
	if m.used = true; m.failed != "" && m.asked[q.readAs] == nil {
		return byWords, nil
	}
	all, err := q.mergeMeaning(query, byWords)
	if err != nil && q.ctx.Err() == nil {
		m.failed = content.ClipBytes(err.Error(), 150)
		return byWords, nil
	}
	return all, err
}

func (q *question) mergeMeaning(query facts.Query, byWords []found) ([]found, error) {
	m := q.meaning
	vector := m.asked[q.readAs]
	if vector == nil {
		all, err := q.embed([]string{q.readAs}, q.patience())
		if err != nil {
			return nil, err
		}
		vector = index.Unit(all[0])
		m.asked[q.readAs] = vector
	}
	if m.failed == "" {
		if err := q.embedPassages(); err != nil {
			m.failed = content.ClipBytes(err.Error(), 150)
		}
	}
	m.passages, m.vectors = 0, 0
	near, err := q.nearest(query, func(c *corpus) ([]index.Hit, error) {
		// The score is the cosine above the mean of all passages: those of some models are all close to 1.
		hits, passages, vectors, err := c.index.Nearest(q.ctx, vector, minCosine, candidates, perFile, c.has)
		m.passages += passages
		m.vectors += vectors
		return hits, err
	})
	if err != nil {
		return nil, err
	}
	m.ran = true
	all := merge(byWords, near)
	q.nearSentences(query, all[:min(len(all), q.top)], vector)
	return all, nil
}

// embed returns the vectors of texts. It waits until a time.
func (q *question) embed(texts []string, until time.Time) (all [][]float32, err error) {
	if q.k.options.Embedder == nil {
		for _, t := range texts {
			all = append(all, embed.Vector(t))
		}
		return all, nil
	}
	ctx, stop := context.WithDeadline(q.ctx, until)
	defer stop()
	for some := range slices.Chunk(texts, mostTexts) {
		vectors, err := q.k.options.Embedder.Embed(ctx, some)
		switch {
		case q.ctx.Err() != nil:
			return nil, q.ctx.Err()
		case ctx.Err() != nil:
			return nil, errors.New("no vector in time")
		case err != nil:
			return nil, err
		}
		all = append(all, vectors...)
	}
	return all, nil
}

// patience returns the time until which the vectors of a question are waited for: a fifth of a call's time from now,
// but at most a tenth of it after the deadline of indexing.
func (q *question) patience() time.Time {
	until, last := time.Now().Add(q.k.options.Slice/5), q.deadline.Add(q.k.options.Slice/10)
	if last.Before(until) {
		return last
	}
	return until
}

// embedPassages makes the vectors of passages that have none, until the deadline. If several calls run at once, one of
// them does so; the others use the vectors that there are. An index that is made for one call gets none.
func (q *question) embedPassages() error {
	e := q.k.options.Embedder
	alone := q.k.embedding.TryLock()
	if alone {
		defer q.k.embedding.Unlock()
	}
	done := 0
	for _, c := range q.places {
		if err := c.index.UseModel(q.ctx, e.Model()); err != nil {
			return err
		}
		var last index.Hit
		for alone && c.kept && time.Now().Before(q.deadline) {
			page, err := c.index.WithoutVector(q.ctx, last, pageOfPassages)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			last = page[len(page)-1]
			page = slices.DeleteFunc(page, func(h index.Hit) bool { return !c.has(h.Path) })
			for some := range slices.Chunk(page, mostTexts) {
				switch n, err := q.embedSome(c, some); {
				case err != nil && done > 0 && !time.Now().Before(q.deadline):
					return nil // the next call goes on
				case err != nil:
					return err
				default:
					done += n
				}
				q.progress(int64(done), 0, "embedding passages")
			}
		}
	}
	return nil
}

// embedSome makes the vectors of some passages, except of those whose file changed, and returns how many it made.
func (q *question) embedSome(c *corpus, hits []index.Hit) (int, error) {
	var texts []string
	hits = slices.DeleteFunc(slices.Clone(hits), func(h index.Hit) bool {
		text, ok := c.passage(q.ctx, h)
		if ok {
			texts = append(texts, strings.TrimSpace(h.Heading+"\n"+text))
		}
		return !ok
	})
	if len(c.texts) > keptDocuments {
		clear(c.texts)
		clear(c.docs)
	}
	if len(texts) == 0 {
		return 0, nil
	}
	vectors, err := q.embed(texts, q.deadline)
	if err != nil {
		return 0, err
	}
	return len(hits), c.index.AddVectors(q.ctx, q.k.options.Embedder.Model(), hits, vectors)
}

// has reports whether the question is asked of a file.
func (c *corpus) has(path string) bool { return c.byPath[path] != nil }

// byTable returns the passages to take facts from without an Embedder: those by words, and if no passage has enough of
// the question's words (fewWords), also those that are nearest by the built-in table. Some passage is near any question,
// even if none has the answer: if words find passages, the table is not used.
func (q *question) byTable(query facts.Query, byWords []found) ([]found, error) {
	most := 0.0
	for _, p := range byWords {
		most = max(most, p.covered*q.known)
	}
	switch {
	case most >= fewWords:
		return byWords, nil
	case embed.Known(q.readAs) < knownFrom:
		q.meaning.used, q.meaning.builtIn = true, "by words: the built-in table of meanings knows English"
		return byWords, nil
	}
	vector := embed.Vector(q.readAs)
	to := embed.NewQuery(vector)
	near, err := q.nearest(query, func(c *corpus) ([]index.Hit, error) {
		return c.index.NearestMeaning(q.ctx, to, minBuiltIn, candidates, perFile, c.has)
	})
	if err != nil || len(near) == 0 {
		return byWords, err
	}
	q.meaning.used = true
	q.meaning.builtIn = "by words and meaning (built in): no passage has most of the words, check these lines"
	all := merge(byWords, near)
	q.nearSentences(query, all[:min(len(all), q.top)], vector)
	return all, nil
}

// nearest returns the passages that are nearest to a question, the best first.
func (q *question) nearest(query facts.Query, of func(*corpus) ([]index.Hit, error)) (near []found, err error) {
	var all []found
	for _, c := range q.places {
		hits, err := of(c)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			all = append(all, found{Hit: h, file: c.byPath[h.Path], byMeaning: true})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	all = best(diverse(all))
	byWords := q.changed
	for _, p := range all[:min(len(all), maxTop)] {
		if q.readPassage(p.file.at, query, &p) {
			near = append(near, p)
		}
	}
	q.changed = max(byWords, q.changed-byWords) // both rankings may read the same passages
	return near, nil
}

// merge merges the best passages of two rankings by reciprocal rank fusion. Each ranking must have dropped what is far
// below its own best: the scores of the two cannot be compared, and merged ones say nothing about distance.
func merge(byWords, byMeaning []found) (all []found) {
	for _, ranking := range [][]found{byWords, byMeaning} {
		for rank, p := range ranking {
			i := slices.IndexFunc(all, func(o found) bool { return o.file == p.file && o.Start == p.Start })
			if i < 0 {
				i = len(all)
				p.Score = 0
				all = append(all, p)
			}
			all[i].Score += 1 / float64(fused+rank+1)
			all[i].byMeaning = all[i].byMeaning || p.byMeaning
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	return all
}

// nearSentences sets the facts of passages that were found by their meaning and have few of the question's words: the
// two sentences that are nearest to the question, or the first two if they cannot be embedded.
func (q *question) nearSentences(query facts.Query, shown []found, vector []float32) {
	var all []*facts.Fact
	var texts []string
	for i := range shown {
		p := &shown[i]
		if !p.byMeaning || p.covered*q.known >= fitsFrom {
			continue
		}
		if p.near = facts.All(query, q.passage(p)); len(p.near) == 1 {
			continue
		}
		for n := range p.near[:min(len(p.near), nearUnits-len(texts))] {
			all, texts = append(all, &p.near[n]), append(texts, p.near[n].Text)
		}
	}
	if q.meaning.failed == "" {
		vectors, _ := q.embed(texts, q.patience()) // without them the first sentences are taken
		for i, v := range vectors {
			if len(v) == len(vector) {
				all[i].Score = index.Cosine(vector, index.Pack(v))
			}
			if query.Answered(all[i].Text) {
				all[i].Score += askedBonus
			}
		}
	}
	for i := range shown {
		near := shown[i].near
		slices.SortStableFunc(near, func(a, b facts.Fact) int { return cmp.Compare(b.Score, a.Score) })
		near = near[:min(len(near), nearFacts)]
		slices.SortStableFunc(near, func(a, b facts.Fact) int { return cmp.Compare(a.From, b.From) })
		shown[i].near = near
	}
}
