package records

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

func opened(t *testing.T, dir string) *Files {
	t.Helper()
	f := InDir(dir)
	t.Cleanup(f.Close)
	return f
}

// place is where tests keep records.
type place struct {
	open  func(t *testing.T) Store               // as another process has it
	end   func(s Store)                          // of such a process
	plant func(t *testing.T, k Key, body []byte) // without looking at it
	clock func(s Store, now func() time.Time)    // of uses
	knows bool                                   // owners
}

// everywhere runs a test with a directory and with a database.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		test(t, place{
			open: func(t *testing.T) Store { return opened(t, dir) },
			end:  func(s Store) { s.Close() },
			plant: func(t *testing.T, k Key, body []byte) {
				expect.Must(t, os.WriteFile(filepath.Join(dir, k.Kind.dir, k.file()), body, 0o600))
			},
			clock: func(s Store, now func() time.Time) { s.(*Files).Now = now },
		})
	})
	t.Run("database", func(t *testing.T) {
		url := databasetest.URL(t)
		test(t, place{
			open: func(t *testing.T) Store {
				db := expect.Value(database.Open(t.Context(), database.Options{URL: url}))(t)
				t.Cleanup(db.Close)
				return InDatabase(db)
			},
			end: func(s Store) { s.(*rows).db.Close() },
			plant: func(t *testing.T, k Key, body []byte) {
				databasetest.Exec(t, url, fmt.Sprintf("update records set body = '\\x%x' where owner = '%s' and name = '%s'",
					body, k.Owner, k.Name))
			},
			clock: func(s Store, now func() time.Time) { s.(*rows).now = now },
			knows: true,
		})
	})
}

func TestRecord(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s := p.open(t)
		k := Key{Investigation, "local", "abc/dirs/x.json"}
		expect.ErrorIs(t, expect.Err(s.Get(k)), fs.ErrNotExist, "before it was written")
		expect.Must(t, s.Delete(k))
		for _, body := range []string{"one", "two, which is longer", ""} {
			expect.Must(t, s.Put(k, []byte(body)))
			r, err := s.Get(k)
			if err != nil || string(r.Body) != body || r.Size != int64(len(body)) || r.Name != k.Name ||
				time.Since(r.Used).Abs() > time.Minute {
				t.Errorf("%+v, %v; want %q", r, err, body)
			}
		}
		expect.Must(t, s.Delete(Key{Investigation, "local", "abc"}))
		expect.ErrorIs(t, expect.Err(s.Get(k)), fs.ErrNotExist, "after what is above was deleted")
	})
}

func TestList(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s := p.open(t)
		if all, err := s.List(Key{Kind: Investigation}, "*", true); err != nil || len(all) > 0 {
			t.Errorf("of nothing: %v, %v", all, err)
		}
		for _, name := range []string{"a/meta.json", "b/meta.json", "a/dirs/1.json", "a/dirs/2.json", "a/orders/1.json"} {
			expect.Must(t, s.Put(Key{Investigation, "local", name}, []byte(name)))
		}
		expect.Must(t, s.Put(Key{Account, "local", "n"}, []byte("{}")))
		for pattern, want := range map[string][]string{
			"*/meta.json": {"a/meta.json", "b/meta.json"}, "a/dirs/*": {"a/dirs/1.json", "a/dirs/2.json"},
			"*/orders/1.json": {"a/orders/1.json"}, "c/*": nil,
		} {
			for _, bodies := range []bool{true, false} {
				all := expect.Value(s.List(Key{Kind: Investigation, Owner: "local"}, pattern, bodies))(t)
				var names []string
				for _, r := range all {
					if names = append(names, r.Name); r.Size != int64(len(r.Name)) || bodies && string(r.Body) != r.Name {
						t.Errorf("%s: %+v", pattern, r)
					}
				}
				if slices.Sort(names); !slices.Equal(names, want) {
					t.Errorf("%s: %q, want %q", pattern, names, want)
				}
			}
		}
	})
}

// TestUpdate adds one to a number, in several goroutines and with several stores, as processes have: none gets lost.
func TestUpdate(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		k := Key{Upstream, "", "count"}
		const each = 50
		var group sync.WaitGroup
		for range 4 {
			s := p.open(t)
			for range 2 {
				group.Go(func() {
					for range each {
						expect.OK(t, s.Update(k, func(old Record) ([]byte, error) {
							n, _ := strconv.Atoi(string(old.Body))
							return []byte(strconv.Itoa(n + 1)), nil
						}))
					}
				})
			}
		}
		group.Wait()
		s := p.open(t)
		if r, err := s.Get(k); err != nil || string(r.Body) != strconv.Itoa(8*each) {
			t.Errorf("%s, %v", r.Body, err)
		}
		stop := errors.New("stop")
		for _, result := range []error{nil, stop} { // nothing is written
			expect.ErrorIs(t, s.Update(k, func(Record) ([]byte, error) { return nil, result }), result)
		}
		if r, err := s.Get(k); err != nil || string(r.Body) != strconv.Itoa(8*each) {
			t.Errorf("%s, %v", r.Body, err)
		}
	})
}

func TestLock(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s, other := p.open(t), p.open(t)
		k := Key{Map, "local", "a"}
		unlock := expect.Value(s.Lock(k))(t)
		if _, err := other.Lock(Key{Map, "local", "b"}); !errors.Is(err, ErrBusy) { // all maps have one
			t.Errorf("a second lock: %v", err)
		}
		inner := expect.Value(s.Lock(Key{Account, "local", "a"}))(t)
		inner()
		unlock()
		again := expect.Value(other.Lock(k))(t)
		again()
		for _, one := range []Store{s, other} {
			if f, ok := one.(*Files); ok && len(f.locks) > 0 {
				t.Errorf("%d locks are remembered", len(f.locks))
			}
		}
	})
}

// TestDamaged has a record that is too long, and one that is a directory: they are not read, and written anew.
func TestDamaged(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s := p.open(t)
		k := Key{Account, "local", "a"}
		expect.Must(t, s.Put(k, []byte("{}")))
		expect.ErrorIs(t, s.Put(k, make([]byte, Account.Limit+1)), ErrFull, "a record that is too long")
		p.plant(t, k, make([]byte, Account.Limit+1))
		expect.ErrorIs(t, expect.Err(s.Get(k)), ErrDamaged, "a file that is too long")
		all, err := s.List(Key{Kind: Account}, "*", true)
		if err != nil || len(all) != 1 || !all[0].Damaged || all[0].Body != nil {
			t.Errorf("listed: %+v, %v", all, err)
		}
		expect.Must(t, s.Update(k, func(old Record) ([]byte, error) {
			if old.Body != nil || !old.Damaged {
				t.Errorf("%d bytes, damaged: %v", len(old.Body), old.Damaged)
			}
			return []byte("new"), nil
		}))
		if r, err := s.Get(k); err != nil || string(r.Body) != "new" {
			t.Errorf("%q, %v", r.Body, err)
		}
	})
}

// TestAppend adds lines after one that a dead process left torn.
func TestAppend(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s := p.open(t)
		k := Key{Investigation, "local", "a/flags.jsonl"}
		expect.Must(t, s.Put(k, []byte("one\ntor")))
		expect.Must(t, s.Append(k, []byte("two\n")))
		expect.Must(t, s.Append(k, []byte("three\n")))
		if r, err := s.Get(k); err != nil || string(r.Body) != "one\ntor\ntwo\nthree\n" {
			t.Errorf("%q, %v", r.Body, err)
		}
		expect.ErrorIs(t, s.Append(k, bytes.Repeat([]byte("x"), 16<<20)), ErrFull, "too much")
	})
}

// TestPrune removes what is too old, and the least recently used where there are too many.
func TestPrune(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		few := *Account
		few.Most = 40
		s := p.open(t)
		now := time.Now()
		p.clock(s, func() time.Time { return now })
		put := func(k Key) {
			t.Helper()
			expect.Must(t, s.Put(k, []byte("{}")))
			expect.Must(t, s.Touch(k))
			now = now.Add(time.Second)
		}
		put(Key{&few, "local", "old"})
		now = now.Add(31 * day)
		put(Key{Call, "local", "of another kind"})
		put(Key{&few, "local", "new"})
		count := func() int {
			t.Helper()
			all := expect.Value(s.List(Key{Kind: &few}, "*", false))(t)
			return len(all)
		}
		if n := count(); n != 1 {
			t.Errorf("%d accounts, want the new one alone", n)
		}
		for i := range few.Most {
			put(Key{&few, "local", fmt.Sprint("n", i)})
		}
		if n := count(); n > few.Most {
			t.Errorf("%d accounts", n)
		}
		expect.OK(t, expect.Err(s.Get(Key{&few, "local", fmt.Sprint("n", few.Most-1)})), "the last one")
		expect.ErrorIs(t, expect.Err(s.Get(Key{&few, "local", "new"})), fs.ErrNotExist, "the first one")
	})
}

// TestPruneFiles removes what a dead process left, and no stranger's file.
func TestPruneFiles(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	now := time.Now().Add(day)
	s.Now = func() time.Time { return now }
	expect.Must(t, os.Mkdir(filepath.Join(dir, "accounts"), 0o700))
	stranger := filepath.Join(dir, "accounts", "notes.txt")
	for _, file := range []string{filepath.Join(dir, "accounts", temporary+"left"), stranger} {
		expect.Must(t, os.WriteFile(file, nil, 0o600))
	}
	expect.Must(t, s.Put(Key{Account, "local", "new"}, nil))
	if left, _ := filepath.Glob(filepath.Join(dir, "accounts", temporary+"*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	expect.OK(t, expect.Err(os.Stat(stranger)), "a file that is no record")
}

// TestUpdateComparesVersions has a record that another process deletes and makes again while it is changed.
func TestUpdateComparesVersions(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s, other := p.open(t), p.open(t)
		if _, ok := s.(*Files); ok {
			t.Skip("a directory has locks instead")
		}
		k := Key{Account, "a", "x"}
		expect.Must(t, s.Put(k, []byte("old")))
		var seen []string
		expect.Must(t, s.Update(k, func(old Record) ([]byte, error) {
			if seen = append(seen, string(old.Body)); len(seen) == 1 {
				expect.Must(t, other.Delete(k))
				expect.Must(t, other.Put(k, []byte("new")))
			}
			return append(old.Body, '+'), nil
		}))
		expect.EqualList(t, seen, []string{"old", "new"})
		r := expect.Value(s.Get(k))(t)
		expect.Equal(t, string(r.Body), "new+")
		expect.ErrorIs(t, s.Update(Key{Account, "a", "y"}, func(Record) ([]byte, error) {
			return make([]byte, Account.Limit+1), nil
		}), ErrFull)
	})
}

// TestOnce has several processes that make a record at once.
func TestOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		all := make(chan string, 8)
		for i := range cap(all) {
			s := p.open(t)
			go func() {
				b, err := Once(s, Key{Kind: Secret, Name: "k"}, func() []byte { return []byte(fmt.Sprint(i)) })
				expect.OK(t, err)
				all <- string(b)
			}()
		}
		first := <-all
		for range cap(all) - 1 {
			expect.Equal(t, <-all, first)
		}
	})
}

// TestOwners has records of two owners and the operator under one name.
func TestOwners(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s := p.open(t)
		if !p.knows {
			t.Skip("a directory does not know owners")
		}
		for _, owner := range []string{"a", "b", ""} {
			expect.Must(t, s.Put(Key{Account, owner, "x"}, []byte("of "+owner)))
		}
		for _, owner := range []string{"a", "b", ""} {
			r := expect.Value(s.Get(Key{Account, owner, "x"}))(t)
			expect.Equal(t, string(r.Body), "of "+owner)
		}
		expect.ErrorIs(t, expect.Err(s.Get(Key{Account, "c", "x"})), fs.ErrNotExist)
		for owner, want := range map[string]int{"a": 1, "c": 0, "": 3} {
			expect.Equal(t, len(expect.Value(s.List(Key{Kind: Account, Owner: owner}, "*", true))(t)), want, owner)
		}
		expect.Must(t, s.Delete(Key{Account, "a", "x"}))
		expect.OK(t, expect.Err(s.Get(Key{Account, "b", "x"})))
		large := Key{Investigation, "a", "id/scan.json"}
		expect.ErrorIs(t, s.Put(large, make([]byte, maxRow+1)), ErrFull)
		expect.Must(t, s.Put(large, make([]byte, maxRow)))
		r := expect.Value(s.Get(large))(t)
		expect.Equal(t, len(r.Body), maxRow)
	})
}

// TestDatabaseAway has a database that is stopped: no method takes it for a missing record, and all works again.
func TestDatabaseAway(t *testing.T) {
	db := expect.Value(database.Open(t.Context(), database.Options{URL: databasetest.URL(t)}))(t)
	t.Cleanup(db.Close)
	s, k := InDatabase(db), Key{Account, "a", "x"}
	expect.Must(t, s.Put(k, []byte("1")))
	databasetest.Stop(t)
	add := func(old Record) ([]byte, error) { return append(old.Body, '1'), nil }
	for name, err := range map[string]error{
		"Get": expect.Err(s.Get(k)), "List": expect.Err(s.List(k, "*", true)), "Put": s.Put(k, nil),
		"Update": s.Update(k, add), "Append": s.Append(k, nil), "Touch": s.Touch(k), "Delete": s.Delete(k), "Lock": expect.Err(s.Lock(k)),
	} {
		if !database.Unavailable(err) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	databasetest.Start(t)
	expect.Must(t, s.Update(k, add))
	r := expect.Value(s.Get(k))(t)
	expect.Equal(t, string(r.Body), "11")
}

func TestAlive(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		s, other := p.open(t), p.open(t)
		name := expect.Value(s.Process())(t)
		if again, err := s.Process(); err != nil || again != name {
			t.Errorf("%q, then %q: %v", name, again, err)
		}
		for _, o := range []Store{s, other} {
			if !o.Alive(name) || o.Alive("1-nobody") || o.Alive("") || o.Alive("../lock") {
				t.Error("wrong about who is alive")
			}
		}
		p.end(s)
		if other.Alive(name) {
			t.Error("it has ended")
		}
	})
}
