package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

// readAnew is List with tombstones as a store without memory answers: it reads every sidecar, by ID.
func readAnew(s *Store) ([]Observation, error) {
	s.f.TidyIfDue()
	list := []Observation{}
	all, err := s.f.Scan(false)
	if err != nil {
		return nil, err
	}
	for id, e := range all {
		if !e.Side {
			continue
		}
		o, err := s.f.ReadUnpinned(id)
		if errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		o.Lost = o.Expired == nil && e.Data == "" && s.f.IsLost(o)
		o.Stats.Receipt, o.Pinned = "", e.Pin
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Observation) int { return observations.Newest(&a, &b) })
	return list, nil
}

// damagedAnew is Damaged as a store without memory answers.
func damagedAnew(s *Store) (damaged []ID, err error) {
	all, err := s.f.Scan(true)
	if err != nil {
		return nil, err
	}
	for id, e := range all {
		if !e.Side && (e.Data == "" || s.f.Now().Sub(e.Used) < files.FreshFor) {
			continue
		}
		o, err := s.f.ReadSidecar(id)
		if errors.Is(err, backend.ErrForeign) || e.Data == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || o.Expired == nil && e.Data == "" && s.f.IsLost(o) {
			damaged = append(damaged, id)
		}
	}
	slices.Sort(damaged)
	return damaged, nil
}

// compareListing compares everything that a store answers from its memory with the sidecars.
func compareListing(t testing.TB, s *Store) (wrong []string) {
	t.Helper()
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	all, err := readAnew(s)
	must(t, err)
	torn, err := damagedAnew(s)
	must(t, err)
	live := []Observation{}
	for _, o := range all {
		if o.Expired == nil && !o.Lost {
			live = append(live, o)
		}
	}
	same := func(what string, got, want any) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			note("%s: %s, want %s", what, a, b)
		}
	}
	got, err := s.List("", true)
	must(t, err)
	same("all", got, all)
	for i, o := range got {
		if i < len(all) && (!o.Used.Equal(all[i].Used) || o.Pinned != all[i].Pinned || o.Lost != all[i].Lost) {
			note("obs:%s: used %s, pinned %v, lost %v; want %+v", o.ID, o.Used, o.Pinned, o.Lost, all[i])
		}
	}
	shared, damaged, err := s.Listing("", false, true)
	must(t, err)
	if !slices.IsSortedFunc(shared, func(a, b *Observation) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) }) {
		note("a listing is not sorted by ID")
	}
	slices.SortFunc(shared, observations.Newest)
	same("live", shared, live)
	same("damaged", damaged, torn)
	damaged, err = s.Damaged()
	must(t, err)
	same("damaged alone", damaged, torn)
	return wrong
}

// Two processes share a store, use, pin, remove and prune observations, and a stranger tears files: after each step
// both answer from memory as a store does that reads every sidecar.
func TestListingIsWhatTheSidecarsSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClock()
		c.at = time.Now()
		o := Options{Dir: filepath.Join(scratch(t), "store"), Now: c.now}
		stores := []*Store{open(t, o), open(t, o)}
		var made []Observation
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s := stores[rapid.IntRange(0, 1).Draw(rt, "store")]
			what := rapid.SampledFrom([]string{"put", "put", "put", "use", "pin", "unpin", "remove", "prune", "age",
				"tear", "lose", "strip", "replace", "mend"}).Draw(rt, "what")
			if len(made) == 0 {
				what = "put"
			}
			var of Observation
			if what != "put" {
				of = made[rapid.IntRange(0, len(made)-1).Draw(rt, "of")]
			}
			side, data := sidecarPath(s, of.ID), s.SavedTo(of)
			switch what { // each may fail: the observation may be gone
			case "put":
				r := record(t, s, Provenance{Tool: "keep", Owner: "ann"}, noise(rand.IntN(3)*500))
				state, _ := json.Marshal(strings.Repeat("s", rand.IntN(2)*(files.MaxRemembered+1)))
				kept, err := r.Commit(Stats{Receipt: "the receipt", State: state})
				must(t, err)
				made = append(made, kept)
			case "use":
				if r, err := s.Open("ann", of.ID); err == nil {
					_ = r.Close()
				}
			case "pin", "unpin":
				_ = s.Pin("ann", of.ID, what == "pin")
			case "remove":
				_ = s.Remove("ann", of.ID)
			case "prune":
				_, err := s.Prune(false)
				must(t, err)
			case "age":
				c.pass(rapid.SampledFrom([]time.Duration{time.Minute, 3 * oneDay, 10 * oneDay}).Draw(rt, "time"))
			case "tear":
				if b, err := os.ReadFile(side); err == nil {
					must(t, os.WriteFile(side, b[:len(b)/2], 0o600))
				}
			case "mend":
				if b, err := json.Marshal(of); err == nil {
					must(t, os.WriteFile(side, b, 0o600))
				}
			case "lose":
				_ = os.RemoveAll(data)
			case "strip":
				_ = os.Remove(side)
			case "replace":
				_ = os.RemoveAll(data)
				must(t, os.Mkdir(data, 0o700))
			}
			for _, s := range stores {
				if wrong := compareListing(t, s); wrong != nil {
					rt.Fatalf("after %s of obs:%s: %s", what, of.ID, strings.Join(wrong, "\n"))
				}
			}
		}
	})
}
