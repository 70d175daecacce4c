package observations

import (
	"path/filepath"
	"testing"
	"time"
)

// TestIDsAndStamp has both follow what is made and removed, by this process and by another. Remote stores hear of
// others by notifications, which take a moment; what they did themselves they know at once.
func TestIDsAndStamp(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		dir := filepath.Join(t.TempDir(), "store")
		ours := open(t, Options{Dir: dir})
		other := open(t, Options{Dir: dir})
		last := time.Time{}
		grain := 20 * time.Millisecond // of the file system's clock
		if !onDisk(ours) {
			grain = 300 * time.Millisecond // in which a notification of our own change arrives
		}
		look := func(what string, mine bool, want ...ID) {
			t.Helper()
			stamp, err := ours.ModTime()
			for tries := 0; !onDisk(ours) && !mine && stamp.Equal(last) && tries < 6000; tries++ {
				time.Sleep(10 * time.Millisecond)
				stamp, err = ours.ModTime()
			}
			if err != nil || stamp.Equal(last) {
				t.Errorf("%s: the stamp is still %v, %v", what, stamp, err)
			}
			ids, err := ours.IDs()
			if err != nil || len(ids) != len(want) {
				t.Errorf("%s: %v, %v; want %v", what, ids, err, want)
			}
			for _, id := range want {
				if !ids[id] {
					t.Errorf("%s: %s is not there", what, id)
				}
			}
			for last = stamp.Add(1); !stamp.Equal(last); stamp, _ = ours.ModTime() {
				last = stamp
				time.Sleep(grain)
			}
		}
		record := func(s *Store, owner string) ID { return keep(t, s, Provenance{Owner: owner}, []byte("text")).ID }
		look("at first", true)
		one := record(ours, "ann")
		look("one of ours", true, one)
		two := record(other, "bob")
		look("one of another process", false, one, two)
		must(t, other.Remove("ann", one))
		look("removed by another process", false, two)
		again, _ := ours.ModTime()
		if !again.Equal(last) {
			t.Error("the stamp has changed by itself")
		}
	})
}
