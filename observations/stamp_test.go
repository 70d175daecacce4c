package observations

import (
	"testing"
	"time"
)

// TestIDsAndStamp has both follow what is made and removed, by this process and by another.
func TestIDsAndStamp(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		ours := open(t, Options{})
		other := open(t, Options{Dir: ours.Dir()})
		last := time.Time{}
		look := func(what string, want ...ID) {
			t.Helper()
			stamp, err := ours.ModTime()
			if err != nil || stamp.Equal(last) {
				t.Errorf("%s: the stamp is still %v, %v", what, stamp, err)
			}
			last = stamp
			ids, err := ours.IDs()
			if err != nil || len(ids) != len(want) {
				t.Errorf("%s: %v, %v; want %v", what, ids, err, want)
			}
			for _, id := range want {
				if !ids[id] {
					t.Errorf("%s: %s is not there", what, id)
				}
			}
			time.Sleep(20 * time.Millisecond) // the file system's clock has a grain
		}
		record := func(s *Store, owner string) ID { return keep(t, s, Provenance{Owner: owner}, []byte("text")).ID }
		look("at first")
		one := record(ours, "ann")
		look("one of ours", one)
		two := record(other, "bob")
		look("one of another process", one, two)
		must(t, other.Remove("ann", one))
		look("removed by another process", two)
		again, _ := ours.ModTime()
		if !again.Equal(last) {
			t.Error("the stamp has changed by itself")
		}
	})
}
