package observations

import (
	"errors"
	"testing"
)

func TestOwners(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		mine := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte("secret"))
		gone := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte("secret"))
		must(t, s.Remove("ann", gone.ID))
		for id, want := range map[ID]string{mine.ID: "ann", gone.ID: "ann", RandomID(): ""} { // for who may read the store
			if owner, err := s.Owner(id); owner != want || (err == nil) != (want != "") {
				t.Errorf("Whose(%s) = %q, %v; want %q", id, owner, err, want)
			}
		}
		for owner, want := range map[string]int{"ann": 2, "bob": 0, "": 2, Local: 0} {
			if list, err := s.List(owner, true); err != nil || len(list) != want {
				t.Errorf("List(%q) = %d, %v; want %d", owner, len(list), err, want)
			}
		}
		if got := dataOf(t, s, "ann", mine.ID); string(got) != "secret" {
			t.Errorf("the owner reads %q", got)
		}
		if _, err := s.Open("ann", gone.ID); !errors.Is(err, ErrExpired) {
			t.Errorf("the owner's removed one: %v", err)
		}
	})
}
