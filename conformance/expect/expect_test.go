package expect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// told is a TB that remembers what was reported.
type told struct {
	errors, fatals []string
}

func (*told) Helper()                      {}
func (t *told) Error(a ...any)             { t.errors = append(t.errors, fmt.Sprint(a...)) }
func (t *told) Errorf(f string, a ...any)  { t.Error(fmt.Sprintf(f, a...)) }
func (t *told) Fatal(a ...any)             { t.fatals = append(t.fatals, fmt.Sprint(a...)) }
func (t *told) Fatalf(f string, a ...any)  { t.Fatal(fmt.Sprintf(f, a...)) }
func (t *told) is(errors, fatals int) bool { return len(t.errors) == errors && len(t.fatals) == fatals }

// TestChecksBite has each check report what is wrong, and nothing that is right.
func TestChecksBite(t *testing.T) {
	broken := errors.New("broken")
	for name, check := range map[string]func(t TB, right bool){
		"OK": func(t TB, right bool) { OK(t, map[bool]error{false: broken}[right]) },
		"ErrorIs": func(t TB, right bool) {
			ErrorIs(t, fmt.Errorf("x: %w", broken), map[bool]error{true: broken, false: io.EOF}[right])
		},
		"Fails": func(t TB, right bool) {
			err := Err(0, map[bool]error{true: broken, false: io.EOF}[right])
			Fails(t, err, "broken")
		},
		"Has":       func(t TB, right bool) { Has(t, fmt.Sprint(right), "tr") },
		"Equal":     func(t TB, right bool) { Equal(t, right, true) },
		"EqualList": func(t TB, right bool) { EqualList(t, []bool{right}, []bool{true}) },
		"Same":      func(t TB, right bool) { Same(t, &right, new(bool)); Same(t, &right, &right) },
		"Lacks":     func(t TB, right bool) { Lacks(t, fmt.Sprint(right), "x", "als") },
		"Contains":  func(t TB, right bool) { Contains(t, fmt.Sprint(right), "e", "tr") },
	} {
		var wrong, right told
		check(&wrong, name == "Same")
		check(&right, name != "Same")
		if !wrong.is(1, 0) || !right.is(0, 0) {
			t.Errorf("%s: %q, %q", name, wrong, right)
		}
	}
	var fatal told
	Must(&fatal, broken, "file %s", "a")
	MustEqual(&fatal, "1", "2", 7)
	Equal(t, Value(3, broken)(&fatal), 3)
	MustSame(&fatal, 1, 2)
	if !fatal.is(0, 4) || fatal.fatals[0] != "file a: broken" || fatal.fatals[1] != `7: got "1", want "2"` {
		t.Errorf("%q", fatal)
	}
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.tsv")
	Must(t, os.WriteFile(path, []byte("# name\n\na \"b\" \\\\\tx\\n\\xff\\u00e9\ttrue\t-7\t1.5\n\t\t\t0\t0\n"), 0o600))
	type row struct {
		Name, Text string
		On         bool
		N          int64
		F          float64
	}
	EqualList(t, Table[row](t, path), []row{{`a "b" \`, "x\n\xffé", true, -7, 1.5}, {}})
	for _, text := range []string{"a\n", "a\tb\ttrue\tx\t1\n", "\\q\t\t\t0\t0\n"} {
		Must(t, os.WriteFile(path, []byte(text), 0o600))
		var wrong told
		func() {
			defer func() { _ = recover() }() // told goes on where a test ends
			Table[row](&wrong, path)
		}()
		if len(wrong.fatals) == 0 {
			t.Errorf("%q is read", text)
		}
	}
}
