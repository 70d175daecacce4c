package intent

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// reply is one reply of the corpus: the files testdata/*.txtar have its parts as "-- LEVEL/BASE[/FAULT] PART --". The
// fault in the name was planted; faults and notes are those that the check must report, one a line.
type reply struct {
	name, language string
	level          Level
	parts          map[string]string
}

// valid reports whether no fault was planted.
func (r reply) valid() bool { return strings.Count(r.name, "/") == 1 }

// lines returns the lines of a part; none if it is missing.
func (r reply) lines(part string) []string {
	text := strings.TrimSuffix(r.parts[part], "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// one returns a part of one line.
func (r reply) one(part string) string { return strings.TrimSpace(r.parts[part]) }

// corpus returns the replies in the order of their files, by name.
func corpus(t testing.TB) (all []reply, named map[string]reply) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	expect.Must(t, err)
	named = map[string]reply{}
	var order []string
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		expect.Must(t, err)
		for _, f := range archive.Files {
			name, part, _ := strings.Cut(f.Name, " ")
			r, ok := named[name]
			if !ok {
				level, _, _ := strings.Cut(name, "/")
				language := strings.TrimSuffix(filepath.Base(file), ".txtar")
				r = reply{name: name, language: language, level: Level(level), parts: map[string]string{}}
				order = append(order, name)
			}
			r.parts[part] = string(f.Data)
			named[name] = r
		}
	}
	for _, name := range order {
		all = append(all, named[name])
	}
	return all, named
}

var counter = tokens.New(tokens.O200k)

// options returns what the reply is checked against: its message, or the intent that it belongs to.
func (r reply) options(t testing.TB, named map[string]reply) Options {
	t.Helper()
	o := Options{
		Tokens: func(text []byte) int64 { return int64(counter.Count(string(text))) },
		Known: func(name string) bool {
			return slices.Contains([]string{"obs:k3v9q2m7x4ab", "data/q3.csv", "consultas/lenta.sql"}, name)
		},
	}
	like := r
	if base := r.one("like"); base != "" {
		like = named["intent/"+base]
	}
	if r.level == Intent {
		o.Message = []byte(like.parts["message"])
		if len(o.Message) == 0 {
			t.Fatalf("%s: no message", r.name)
		}
	} else if o.Intent = []byte(named["intent/"+r.one("intent")].parts["reply"]); len(o.Intent) == 0 {
		t.Fatalf("%s: no intent", r.name)
	}
	for _, from := range []reply{like, r} {
		if s := from.one("window"); s != "" {
			var err error
			if o.Window, err = strconv.ParseInt(s, 10, 64); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
		}
	}
	return o
}

// The check names each planted fault and no other, and finds none in valid replies.
func TestCorpus(t *testing.T) {
	all, named := corpus(t)
	languages, valid := map[string]int{}, 0
	for _, r := range all {
		languages[r.language]++
		if r.valid() {
			valid++
		}
		t.Run(r.name, func(t *testing.T) {
			got := Check(r.level, []byte(r.parts["reply"]), r.options(t, named))
			if want := r.lines("faults"); !slices.Equal(got.Faults, want) {
				t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(got.Faults, "\n"), strings.Join(want, "\n"))
			}
			if r.valid() == (len(got.Faults) > 0) {
				t.Errorf("valid: %t, faults: %d", r.valid(), len(got.Faults))
			}
			if want := r.lines("notes"); r.valid() && !slices.Equal(got.Notes, want) {
				t.Errorf("notes:\n%s\nwant:\n%s", strings.Join(got.Notes, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	t.Logf("%d replies, %d of them valid, in %d languages: %v", len(all), valid, len(languages), languages)
	if len(all) < 40 || valid < 20 || len(all)-valid < 20 {
		t.Errorf("%d replies, %d of them valid: too few", len(all), valid)
	}
	for _, language := range []string{"en", "de", "fr", "es"} {
		if languages[language] < 8 {
			t.Errorf("%s: %d replies, want 8 or more", language, languages[language])
		}
	}
}
