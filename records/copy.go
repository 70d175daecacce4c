package records

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Copy copies the records of a store to another one, and calls skip with the reason for each that it cannot. It copies
// no accounts of sessions, whose owner a directory does not know, and no keys and used links: each store has its own.
func Copy(from, to Store, skip func(error)) (copied, there int, err error) {
	for _, k := range []Key{
		{Answer, "", "*"}, {Upstream, "", "*"}, {Map, "", "*"}, {Investigation, "", "*/*"}, {Investigation, "", "*/*/*"},
	} {
		all, err := from.List(Key{Kind: k.Kind}, k.Name, false)
		if err != nil {
			return copied, there, err
		}
		for _, r := range all {
			if dir, name := path.Split(r.Name); name == "lock" || dir == liveDir+"/" {
				continue
			}
			at := Key{k.Kind, r.Owner, r.Name}
			found, err := from.Get(at)
			if _, dir := from.(*Files); dir && err == nil {
				at.Owner = ownerOf(from, at, found.Body)
			}
			var old Record
			if err == nil {
				old, err = to.Get(at)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist) && found.Name != "":
				if err = to.Put(at, found.Body); err == nil {
					copied++
				}
			case err == nil && bytes.Equal(old.Body, found.Body):
				there++
			case err == nil:
				err = fmt.Errorf("%s is another one: %w", to.Where(at), fs.ErrExist)
			}
			for _, one := range []error{ErrDamaged, ErrFull, fs.ErrExist, fs.ErrNotExist} {
				if errors.Is(err, one) {
					skip(fmt.Errorf("%s: %w", from.Where(at), err))
					err = nil
				}
			}
			if err != nil {
				return copied, there, err
			}
		}
	}
	return copied, there, nil
}

// ownerOf returns the owner of a record in a directory, which says so itself or has a record beside it that does.
func ownerOf(from Store, k Key, body []byte) string {
	if k.Kind == Map || k.Kind == Upstream {
		return map[*Kind]string{Map: "local"}[k.Kind]
	}
	var says struct{ Owner, Identity, ID string }
	_ = json.Unmarshal(body, &says)
	if id, _, nested := strings.Cut(k.Name, "/"); nested {
		if id == "targets" {
			id = says.ID
		}
		meta, _ := from.Get(Key{Kind: k.Kind, Name: id + "/meta.json"})
		_ = json.Unmarshal(meta.Body, &says)
	}
	return cmp.Or(says.Owner, says.Identity)
}
