package observations

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDamagedNamesHalves(t *testing.T) {
	now := time.Now()
	s, err := OpenStore(Options{Dir: t.TempDir(), MinFree: -1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var all []Observation
	for range 4 {
		r, err := s.Record(Made{Tool: "keep"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Write([]byte("some text\n")); err != nil {
			t.Fatal(err)
		}
		o, err := r.Commit(Seen{Kind: "text", Ext: "txt"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	dir := filepath.Join(s.Dir(), "observations")
	if err := os.WriteFile(filepath.Join(dir, string(all[0].ID)+".json"), []byte(`{"v":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, all[1].File)); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(Local, all[2].ID); err != nil { // a tombstone is no damage
		t.Fatal(err)
	}
	if got, err := s.Damaged(); err != nil || len(got) != 0 {
		t.Errorf("within the minute of a commit: %v, %v", got, err)
	}
	now = now.Add(2 * time.Minute)
	got, err := s.Damaged()
	if err != nil || len(got) != 2 || got[0] == all[3].ID || got[1] == all[3].ID {
		t.Errorf("damaged: %v, %v; broken were %s and %s", got, err, all[0].ID, all[1].ID)
	}
}
