package files_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

func TestDamagedNamesHalves(t *testing.T) {
	c := &clock{time.Now()}
	s := open(t, Options{Now: c.now})
	var all []Observation
	for range 5 {
		all = append(all, keep(t, s, Provenance{Tool: "keep"}, []byte("some text\n")))
	}
	must(t, os.WriteFile(sidecarPath(s, all[0].ID), []byte(`{"v":1`), 0o600))
	must(t, os.Remove(s.SavedTo(all[1])))
	must(t, s.Remove(Local, all[2].ID))           // a tombstone is no damage
	must(t, os.Remove(sidecarPath(s, all[4].ID))) // as where a commit is under way
	broken := []ID{all[0].ID, all[1].ID}
	for _, when := range []string{"at once", "after a minute"} {
		slices.Sort(broken)
		if got, err := s.Damaged(); err != nil || !slices.Equal(got, broken) {
			t.Errorf("%s: damaged %v, %v; broken were %v", when, got, err, broken)
		}
		broken = append(broken, all[4].ID)
		c.pass(2 * time.Minute)
	}
	for tombstones, want := range map[bool]map[ID]bool{false: {all[3].ID: false}, true: {all[1].ID: true, all[2].ID: false, all[3].ID: false}} {
		list, err := s.List(Local, tombstones)
		got := map[ID]bool{}
		for _, o := range list {
			got[o.ID] = o.Lost
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("tombstones %t: listed, lost %v, %v; want %v", tombstones, got, err, want)
		}
	}
}

func TestDamage(t *testing.T) {
	s := open(t, Options{})
	write := func(text string) func(*testing.T, Observation) {
		return func(t *testing.T, o Observation) { must(t, os.WriteFile(sidecarPath(s, o.ID), []byte(text), 0o600)) }
	}
	side := func(field string, v any) func(*testing.T, Observation) {
		return func(t *testing.T, o Observation) {
			m := map[string]any{}
			must(t, json.Unmarshal(value(os.ReadFile(sidecarPath(s, o.ID))), &m))
			m[field] = v
			write(string(value(json.Marshal(m))))(t, o)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, Observation)
		open   error // of Open
		verify error
	}{
		{"nothing", func(*testing.T, Observation) {}, nil, nil},
		{"sidecar empty", write(""), ErrNotFound, ErrNotFound},
		{"sidecar torn", write(`{"v":1,"id":"`), ErrNotFound, ErrNotFound},
		{"sidecar not an object", write(`[1,2]`), ErrNotFound, ErrNotFound},
		{"sidecar huge", write(`{"v":1,"tool":"` + strings.Repeat("x", 1<<20) + `"}`), ErrNotFound, ErrNotFound},
		{"sidecar deep", write(strings.Repeat("[", maxSidecar-1)), ErrNotFound, ErrNotFound},
		{"later version", side("v", 2), ErrNotFound, ErrNotFound},
		{"another's name", side("file", "search_20261120T143022_k3v9q2m7x4ab.ndjson"), ErrNotFound, ErrNotFound},
		{"a path out", side("file", "../../../../etc/passwd"), ErrNotFound, ErrNotFound},
		{"another id", side("id", "k3v9q2m7x4ab"), ErrNotFound, ErrNotFound},
		{"bytes below zero", side("bytes", -1), ErrNotFound, ErrNotFound},
		{"hash gone", side("sha256", ""), ErrNotFound, ErrNotFound},
		{"data gone", func(t *testing.T, o Observation) { must(t, os.Remove(s.SavedTo(o))) }, ErrDamaged, ErrDamaged},
		{"data cut", func(t *testing.T, o Observation) { must(t, os.Truncate(s.SavedTo(o), 2)) }, ErrDamaged, ErrDamaged},
		{"data longer", func(t *testing.T, o Observation) {
			must(t, os.Truncate(s.SavedTo(o), 2000))
		}, ErrDamaged, ErrDamaged},
		{"data a directory", func(t *testing.T, o Observation) {
			must(t, os.Remove(s.SavedTo(o)))
			must(t, os.Mkdir(s.SavedTo(o), 0o700))
		}, ErrDamaged, ErrDamaged},
		{"data changed", func(t *testing.T, o Observation) {
			must(t, os.WriteFile(s.SavedTo(o), []byte("other data"), 0o600))
		}, nil, ErrDamaged},
		{"index garbage", func(t *testing.T, o Observation) {
			must(t, os.WriteFile(dir(s, "observations/"+string(o.ID)+files.IndexExt), []byte("mfl1garbage"), 0o600))
		}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := keep(t, s, Provenance{Tool: "search"}, []byte("data\nlines"))
			c.damage(t, o)
			r, err := s.Open(Local, o.ID)
			if !errors.Is(err, c.open) {
				t.Errorf("Open: %v, want %v", err, c.open)
			}
			if err == nil {
				if at, line, err := r.LineOffset(2); at != 5 || line != 2 || err != nil {
					if c.verify == nil {
						t.Errorf("LineOffset(2) = %d, %d, %v", at, line, err)
					}
				}
				_ = r.Close()
			}
			if err := s.Verify(Local, o.ID); !errors.Is(err, c.verify) {
				t.Errorf("Verify: %v, want %v", err, c.verify)
			}
			if _, err := s.List("", true); err != nil {
				t.Errorf("List: %v", err)
			}
			if _, err := s.Prune(false); err != nil {
				t.Errorf("Prune: %v", err)
			}
			if _, err := s.Usage(); err != nil {
				t.Errorf("Usage: %v", err)
			}
		})
	}
}

// A sidecar of a later version is neither listed nor changed by any clean-up.
func TestLaterVersionIsLeftAlone(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, Quota: 256 << 10})
	o := keep(t, s, Provenance{Tool: "search"}, []byte("data"))
	side := []byte(`{"v":2,"what":"later"}`)
	must(t, os.WriteFile(sidecarPath(s, o.ID), side, 0o600))
	stone := backend.RandomID()
	if err := os.WriteFile(sidecarPath(s, stone), side, 0o600); err != nil { // and one that may be a tombstone
		t.Fatal(err)
	}
	c.pass(200 * 24 * time.Hour)
	keep(t, s, Provenance{Tool: "search"}, corpus.Random(200<<10))
	value(s.Prune(false))
	for _, id := range []ID{o.ID, stone} {
		if b, err := os.ReadFile(sidecarPath(s, id)); err != nil || !bytes.Equal(b, side) {
			t.Errorf("sidecar of a later version: %q, %v", b, err)
		}
	}
	if b, err := os.ReadFile(s.SavedTo(o)); err != nil || string(b) != "data" {
		t.Errorf("data of a later version: %q, %v", b, err)
	}
}

// TestRemoveDamaged checks that what is left of a damaged observation can be removed, and nothing else.
func TestRemoveDamaged(t *testing.T) {
	s := open(t, Options{})
	whole, torn := keep(t, s, Provenance{}, []byte("a")), keep(t, s, Provenance{}, []byte("b"))
	lost := keep(t, s, Provenance{}, []byte("c"))
	must(t, os.WriteFile(sidecarPath(s, torn.ID), []byte(`{"v":1,`), 0o600))
	must(t, os.Remove(s.SavedTo(lost)))
	if err := s.RemoveDamaged(whole.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a whole one: %v", err)
	}
	for _, id := range []ID{torn.ID, lost.ID} {
		must(t, s.RemoveDamaged(id))
	}
	if left, err := s.Damaged(); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	expectWhole(t, s, whole.ID)
	if names, err := filepath.Glob(dir(s, "observations/"+string(torn.ID)+"*")); err != nil || len(names) > 0 {
		t.Errorf("files are left: %v, %v", names, err)
	}
}
