package observations

import (
	"errors"
	"testing"
)

func TestMalformedIDs(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		for _, id := range []ID{"", "K3V9Q2M7X4AB", "../quota", "../../etc/pw", "x"} {
			if _, err := s.Open(Local, id); !errors.Is(err, ErrMalformed) {
				t.Errorf("Open(%q): %v", id, err)
			}
		}
	})
}
