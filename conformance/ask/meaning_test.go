package ask_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/words"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/router"
)

// concepts are words that mean the same, one concept a line. The vector of a text counts its concepts.
const concepts = `automobile car|manager boss|purchase bought|physician doctor|children kids|tenancy lease|terminate ends
remuneration salary|staff employee|receive gets|founded started|firm company|felines cats|fugitive stray|sheltered home
vessel ship|constructed built|garbage trash|disposed thrown|illness disease|infant baby|beverage drink|free gratis
instructs teaches|pupils students|mathematics algebra|workmen craftsmen|mend repair|rooftop tiles|velocity speed
locomotive train|stole thief|jewels gems|travellers guests|lodge sleep|overnight inn|forbidden prohibited
auditorium hall|reset change|passphrase password|crop wheat|failed ruined|drought dry|remedy medicine
migraine headaches|soothes relieves|soccer football|contest match|won victory`

// synonym is a question that shares no word with the passage that answers it, with a part of the answer.
type synonym struct{ Question, Passage, Want string }

func synonymous(t testing.TB) []synonym { return corpus.Rows[synonym](t, "synonymous.ndjson") }

// embeddings is an endpoint for embeddings: a real HTTP server on loopback.
type embeddings struct {
	url string

	mu     sync.Mutex
	inputs []string // all texts that were sent, in order
	keys   []string // headers with a key
	before func(w http.ResponseWriter, r *http.Request, inputs []string) (done bool)
}

func newEmbeddings(t *testing.T) *embeddings {
	t.Helper()
	s := &embeddings{}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.url = h.URL + "/v1"
	return s
}

func (s *embeddings) serve(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.URL.Path != "/v1/embeddings" || sent.Model == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.inputs = append(s.inputs, sent.Input...)
	s.keys = append(s.keys, r.Header.Get("Authorization"))
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r, sent.Input) {
		return
	}
	var data []any
	for i, text := range slices.Backward(sent.Input) { // the last text first
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectorOf(text)})
	}
	reply(w, data)
}

// reply writes a reply with the data.
func reply(w http.ResponseWriter, data []any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// vectorOf returns the vector of a text, and behind it some further numbers.
func vectorOf(text string, more ...float32) []float32 {
	all := strings.FieldsFunc(concepts, func(r rune) bool { return r == '|' || r == '\n' })
	v := make([]float32, len(all))
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		for n, c := range all {
			if slices.Contains(strings.Fields(c), word) {
				v[n]++
			}
		}
	}
	return append(v, more...)
}

// set sets what answers instead of the endpoint, and forgets what was sent.
func (s *embeddings) set(before func(http.ResponseWriter, *http.Request, []string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.inputs = before, nil
}

// vectors answers with the vector of each text.
func (s *embeddings) vectors(of func(text string) []float32) {
	s.set(func(w http.ResponseWriter, _ *http.Request, inputs []string) bool {
		var data []any
		for i, text := range inputs {
			data = append(data, map[string]any{"index": i, "embedding": of(text)})
		}
		reply(w, data)
		return true
	})
}

// sent returns the texts that were sent and have a part.
func (s *embeddings) sent(part string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.inputs {
		if strings.Contains(text, part) {
			all = append(all, text)
		}
	}
	return all
}

// by has an endpoint's model embed what a bench asks.
func (b *bench) by(url, model string) *bench {
	b.t.Helper()
	client := expect.Value(chat.New(chat.Options{URL: url}))(b.t)
	b.k.UseEmbedder(chat.NewEmbedder(client, model))
	return b
}

// byWords has passages of a bench found by their words alone.
func (b *bench) byWords() *bench {
	b.k = ask.New(ask.Options{Store: b.t.TempDir(), ByWords: true})
	return b
}

// TestBuiltInMeaning asks the questions of TestByMeaning without an endpoint: the built-in table finds at least 16 of 20
// passages, and the answers say so. Where words find the passage, and in other languages, the answers are those by words.
func TestBuiltInMeaning(t *testing.T) {
	dir := synonyms(t)
	write(t, dir, "other.txt", []byte("The warranty period is 24 months.\nDie Garantie gilt zwei Jahre.\n"))
	b, plain := newBench(t, dir), newBench(t, dir).byWords()
	right := 0
	for _, c := range synonymous(t) {
		r, text := b.ask(ask.Args{Question: c.Question})
		if strings.Contains(text, c.Want) {
			right++
			expect.Equal(t, r.Ranked, builtIn, c.Question)
			expect.Has(t, text, "\nranked "+builtIn+"\n", c.Question)
		} else {
			t.Logf("%s: not %q in\n%s", c.Question, c.Want, text)
		}
	}
	if t.Logf("%d of %d", right, len(synonymous(t))); right < 16 {
		t.Error("below the bar")
	}
	for question, ranked := range map[string]string{
		"How long is the warranty period?":              "",
		"Wie lange wird für Schäden am Gerät gehaftet?": "by words: the built-in table of meanings knows English",
		"list all fugitive felines":                     "", // all that have the words, and no others
		"how many txt files are there?":                 "",
	} {
		r, text := b.ask(ask.Args{Question: question})
		expect.Equal(t, r.Ranked, ranked, question)
		without, _ := plain.ask(ask.Args{Question: question})
		if !slices.Equal(without.Files, r.Files) || len(without.Facts) != len(r.Facts) || without.Ranked != "" {
			t.Errorf("%s: other facts than by words:\n%s", question, text)
		}
	}
}

// builtIn is what an answer says that was also found by the built-in table.
const builtIn = "by words and meaning (built in): no passage has most of the words, check these lines"

// synonyms writes each passage to a file of its own, between lines that have no concept.
func synonyms(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, s := range synonymous(t) {
		write(t, dir, fmt.Sprintf("f%02d.txt", i), []byte("Zero zulu yankee.\n"+s.Passage+"\nXray uniform tango.\n"))
	}
	return dir
}

// TestByMeaning asks 20 questions that share no word with their passages: none is answered by words, at least 18 are by
// words and meaning, and a question about nothing is still answered by nothing.
func TestByMeaning(t *testing.T) {
	dir := synonyms(t)
	plain, s := newBench(t, dir).byWords(), newEmbeddings(t)
	b := newBench(t, dir).by(s.url, "m")
	var byWords, right int
	for _, c := range synonymous(t) {
		terms := words.Terms(c.Passage)
		for _, w := range words.Terms(strings.Join(router.ContentWords(c.Question), " ")) {
			if slices.Contains(terms, w) {
				t.Errorf("%q is in both: %s %s", w, c.Question, c.Passage)
			}
		}
		if r, text := plain.ask(ask.Args{Question: c.Question}); strings.Contains(text, c.Want) || r.Ranked != "" {
			byWords++
			t.Errorf("found by words:\n%s", text)
		}
		r, text := b.ask(ask.Args{Question: c.Question})
		expect.Equal(t, r.Ranked, "by words and meaning", c.Question)
		expect.Has(t, text, "\nranked by words and meaning\n", c.Question)
		if strings.Contains(text, c.Want) {
			right++
		} else {
			t.Logf("%s: not %q in\n%s", c.Question, c.Want, text)
		}
		if n := len(s.sent(c.Question)); n != 1 {
			t.Errorf("%s: was sent %d times", c.Question, n)
		}
	}
	t.Logf("by words %d, by words and meaning %d of %d", byWords, right, len(synonymous(t)))
	if byWords > 0 || right < 18 {
		t.Error("below the bar")
	}
	if n := len(s.sent("Zero zulu yankee.\n")); n != len(synonymous(t)) {
		t.Errorf("%d passages were sent, want each once", n)
	}
	if r, text := b.ask(ask.Args{Question: "Which walrus yodels?"}); !r.Nothing() {
		t.Error(text)
	}
	if r, _ := b.ask(ask.Args{Question: "how many txt files are there?"}); r.Ranked != "" {
		t.Errorf("a question on files: %q", r.Ranked)
	}
}

// TestCloseVectors asks the same of a model all of whose vectors are close to each other: cosines of 0.8 and more.
func TestCloseVectors(t *testing.T) {
	s, right := newEmbeddings(t), 0
	s.vectors(func(text string) []float32 { return vectorOf(text, 3) })
	b := newBench(t, synonyms(t)).by(s.url, "m")
	for _, c := range synonymous(t) {
		r, text := b.ask(ask.Args{Question: c.Question})
		if strings.Contains(text, c.Want) && len(r.Files) < 4 {
			right++
		} else {
			t.Logf("%s: not %q in\n%s", c.Question, c.Want, text)
		}
	}
	if right < 18 {
		t.Errorf("%d of %d", right, len(synonymous(t)))
	}
}

// TestMeaningKeepsWords asks the questions of the office with an embedding model that knows none of its words, and with
// one for which all invoices mean the same: single facts are found as without.
func TestMeaningKeepsWords(t *testing.T) {
	dir := t.TempDir()
	questions := slices.DeleteFunc(office(t, dir), func(q question) bool { return q.count >= 0 || q.files != nil })
	shown := func(b *bench) (n int) {
		for _, q := range questions {
			if _, text := b.ask(ask.Args{Question: q.text}); strings.Contains(text, q.facts[0]) {
				n++
			} else {
				t.Logf("%s: not %q in\n%s", q.text, q.facts[0], text)
			}
		}
		return n
	}
	without := shown(newBench(t, dir))
	for name, vector := range map[string]func(text string) []float32{
		"knows nothing": func(string) []float32 { return []float32{0, 0, 0} },
		"confuses": func(text string) []float32 {
			text = strings.ToLower(text)
			return []float32{
				float32(strings.Count(text, "invoice")), float32(strings.Count(text, "contract")), 0.1,
				float32(strings.Count(text, "decided")), float32(len(text)%13) / 100,
			}
		},
	} {
		s := newEmbeddings(t)
		s.vectors(vector)
		if with := shown(newBench(t, dir).by(s.url, "m")); with < without {
			t.Errorf("%s: %d of %d single facts, %d by words alone", name, with, len(questions), without)
		}
	}
}

// TestBadEmbeddings answers by words alone where the endpoint fails, says so once, and by meaning as soon as it works.
func TestBadEmbeddings(t *testing.T) {
	dir := synonyms(t)
	write(t, dir, "notes.md", []byte("# Vessel\n\nThe vessel is moored at pier 4.\n"))
	question := ask.Args{Question: "Where is the vessel moored?"}
	want, _ := newBench(t, dir).ask(question)
	body := func(status int, kind, text string) func(http.ResponseWriter, *http.Request, []string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	const js = "application/json"
	for name, before := range map[string]func(http.ResponseWriter, *http.Request, []string) bool{
		"absent":       nil,
		"unauthorized": body(401, js, `{"error":{"message":"bad key"}}`),
		"too many":     body(429, js, `{"error":"slow down"}`),
		"broken":       body(500, "text/plain", "oops"),
		"html":         body(200, "text/html", "<html>login</html>"),
		"html as json": body(200, js, "<html>login</html>"),
		"an error":     body(200, js, `{"error":{"message":"no such model"}}`),
		"too few":      body(200, js, `{"data":[]}`),
		"no array":     body(200, js, `{"data":[{"index":0,"embedding":"AAAA"}]}`),
		"empty":        body(200, js, `{"data":[{"index":0,"embedding":[]}]}`),
		"NaN":          body(200, js, `{"data":[{"index":0,"embedding":[NaN,1]}]}`),
		"null":         body(200, js, `{"data":[{"index":0,"embedding":[null,1]}]}`),
		"infinite":     body(200, js, `{"data":[{"index":0,"embedding":[1e999,1]}]}`),
		"endless":      body(200, js, `{"data":[{"index":0,"embedding":[`+strings.Repeat("1,", 9<<20)),
		"a wrong index": func(w http.ResponseWriter, _ *http.Request, inputs []string) bool {
			reply(w, []any{map[string]any{"index": 7, "embedding": []int{1}}})
			return true
		},
		"hanging": func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmbeddings(t)
			b := newBench(t, dir)
			b.k = ask.New(ask.Options{Store: t.TempDir(), Slice: 4 * time.Second})
			if s.set(before); name == "absent" {
				b.by("http://127.0.0.1:1/v1", "m")
			} else {
				b.by(s.url, "m")
			}
			r, text := b.ask(question) // a call without an end would hang
			if !strings.HasPrefix(r.Ranked, "by words only: the embeddings endpoint failed: ") ||
				strings.Count(text, "embeddings endpoint failed") != 1 {
				t.Errorf("%q in\n%s", r.Ranked, text)
			}
			t.Log(r.Ranked)
			expect.Same(t, r.Facts, want.Facts)
			s.set(nil)
			if r, _ := b.by(s.url, "m").ask(question); r.Ranked != "by words and meaning" {
				t.Errorf("later: %q", r.Ranked)
			}
		})
	}
}

// TestOtherLength answers by words where vectors are not as long as those of the index, and keeps these.
func TestOtherLength(t *testing.T) {
	dir, s := synonyms(t), newEmbeddings(t)
	b := newBench(t, dir).by(s.url, "m")
	b.ask(ask.Args{Question: synonymous(t)[0].Question})
	s.vectors(func(text string) []float32 { return vectorOf(text, 0) })
	r, _ := b.ask(ask.Args{Question: synonymous(t)[1].Question})
	expect.Contains(t, r.Ranked, "by words only", "numbers, those of the index")
	s.set(nil)
	_, text := b.ask(ask.Args{Question: synonymous(t)[1].Question})
	if n := len(s.sent("Zero zulu yankee.\n")); n != 0 || !strings.Contains(text, synonymous(t)[1].Want) {
		t.Errorf("%d passages were sent again:\n%s", n, text)
	}
}

// TestVectorsFollowFiles embeds the passages of a changed file again, and of no other; a removed file is not found. A
// process without the model changes the index too, and another model embeds everything again.
func TestVectorsFollowFiles(t *testing.T) {
	dir, s := synonyms(t), newEmbeddings(t)
	b := newBench(t, dir).by(s.url, "m")
	question := ask.Args{Question: "Which beverage is free?"}
	b.ask(question)
	s.set(nil)
	write(t, dir, "f09.txt", []byte("Lemonade is a gratis drink.\nZulu.\n"))
	_, text := b.ask(question)
	if !strings.Contains(text, "Lemonade") || strings.Contains(text, "juice") || len(s.sent("drink.\nZulu")) != 1 ||
		len(s.sent("Zero zulu yankee.\n")) != 0 {
		t.Errorf("%q\n%s", s.sent(""), text)
	}
	expect.Must(t, os.Remove(filepath.Join(dir, "f09.txt")))
	if r, text := b.ask(question); !r.Nothing() || r.Ranked != "by words and meaning" {
		t.Error(text)
	}
	// The place of the last passage in the index is free, and taken by a passage of another process.
	write(t, dir, "f19.txt", []byte("The infant of the last row.\n"))
	store := t.TempDir()
	b.k = ask.New(ask.Options{Store: store})
	b.by(s.url, "m").ask(question)
	write(t, dir, "f19.txt", []byte("Water is a gratis drink.\nZulu.\n"))
	b.k = ask.New(ask.Options{Store: store})
	b.ask(question)
	s.set(nil)
	b.k = ask.New(ask.Options{Store: store})
	if _, text := b.by(s.url, "m").ask(question); !strings.Contains(text, "Water") || len(s.sent("drink.\nZulu")) != 1 {
		t.Errorf("%q\n%s", s.sent(""), text)
	}
	s.set(nil)
	r, text := b.by(s.url, "other").ask(question)
	if n := len(s.sent("Zero zulu yankee.\n")); n != 18 || r.Ranked != "by words and meaning" ||
		!strings.Contains(text, "Water") {
		t.Errorf("another model: %d passages, %q\n%s", n, r.Ranked, text)
	}
}

// TestVectorsInParts embeds what the time of a call allows, says which share that is, and goes on at the next call.
// Passages whose vectors were stored before a failure are not sent again.
func TestVectorsInParts(t *testing.T) {
	dir, s := t.TempDir(), newEmbeddings(t)
	for i := range 200 {
		write(t, dir, fmt.Sprintf("f%03d.txt", i), fmt.Appendf(nil, "Zulu %d.\n", i))
	}
	write(t, dir, "a.txt", []byte("The lease ends on 31 March 2027.\n"))
	b := newBench(t, dir)
	b.limit = 2 * time.Second
	b.k = ask.New(ask.Options{Store: t.TempDir(), Slice: b.limit})
	b.by(s.url, "m")
	question := ask.Args{Question: "When does the tenancy terminate?"}
	s.set(func(_ http.ResponseWriter, _ *http.Request, inputs []string) bool {
		if len(inputs) > 3 {
			time.Sleep(400 * time.Millisecond)
		}
		return false
	})
	r, text := b.ask(question)
	t.Log(r.Ranked)
	if !strings.HasPrefix(r.Ranked, "by words, and by meaning for ") || len(r.Notes) > 0 ||
		!strings.Contains(text, "31 March 2027") {
		t.Errorf("%q\n%s", r.Ranked, text)
	}
	batches, failed := 0, 0
	s.set(func(w http.ResponseWriter, _ *http.Request, inputs []string) bool {
		if len(inputs) > 3 {
			batches++
		}
		if batches == 2 {
			failed += len(inputs)
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}
		return batches == 2
	})
	r, text = b.ask(question)
	t.Log(r.Ranked)
	expect.Contains(t, r.Ranked, "% of passages: the embeddings endpoint failed: ")
	expect.Contains(t, text, "31 March")
	before := len(s.sent("Zulu")) - failed
	s.set(nil)
	if r, _ := b.ask(question); r.Ranked != "by words and meaning" || len(s.sent("Zulu")) > 200-before {
		t.Errorf("%q, %d were sent, %d before", r.Ranked, len(s.sent("Zulu")), before)
	}
}

// TestLongPassages embeds the beginning of a passage that is too long for the model.
func TestLongPassages(t *testing.T) {
	dir, s := t.TempDir(), newEmbeddings(t)
	write(t, dir, "long.txt", []byte("The lease ends on 31 March 2027. "+strings.Repeat("Zulu yankee xray. ", 60)+"\n"))
	write(t, dir, "short.txt", []byte("Zulu.\n"))
	s.set(func(w http.ResponseWriter, _ *http.Request, inputs []string) bool {
		long := slices.ContainsFunc(inputs, func(text string) bool { return len(text) > 600 })
		if long {
			http.Error(w, "input is too large to process", http.StatusInternalServerError)
		}
		return long
	})
	r, text := newBench(t, dir).by(s.url, "m").ask(ask.Args{Question: "When does the tenancy terminate?"})
	expect.Equal(t, r.Ranked, "by words and meaning")
	expect.Contains(t, text, "31 March 2027")
}

// TestEmbeddingsAreMasked sends neither secrets nor control tokens, and the key only as a header.
func TestEmbeddingsAreMasked(t *testing.T) {
	dir, s := synonyms(t), newEmbeddings(t)
	secret := "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
	write(t, dir, "secret.txt", []byte("The doctor has the token "+secret+" <|im_end|> here.\n"))
	file := filepath.Join(t.TempDir(), "key")
	expect.Must(t, os.WriteFile(file, []byte("the-key-4711\n"), 0o600))
	client := expect.Value(chat.New(chat.Options{URL: s.url, KeyFile: file}))(t)
	b := newBench(t, dir)
	b.k.UseEmbedder(chat.NewEmbedder(client, "m"))
	r, _ := b.ask(ask.Args{Question: "Which physician has " + secret + "?"})
	if len(s.sent(secret)) != 0 || len(s.sent("<|")) != 0 || len(s.sent("The doctor has the token")) == 0 {
		t.Errorf("%q", s.sent("token"))
	}
	if slices.ContainsFunc(s.keys, func(key string) bool { return key != "Bearer the-key-4711" }) || len(s.keys) == 0 {
		t.Errorf("%q, %q", s.keys, r.Ranked)
	}
	s.set(func(w http.ResponseWriter, r *http.Request, inputs []string) bool {
		http.Error(w, "no such key: "+r.Header.Get("Authorization")+" for "+secret, http.StatusUnauthorized)
		return true
	})
	if r, text := b.ask(ask.Args{Question: "Which physician?"}); strings.Contains(text+r.Ranked, "4711") ||
		strings.Contains(r.Ranked, secret) {
		t.Error(text)
	}
}
