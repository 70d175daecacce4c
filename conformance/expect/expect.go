// Package expect has the checks that tests of all packages share.
//
// Each check takes what it is about as its last arguments: a value, or a format and its values. Checks report and go
// on; Value, and those whose name begins with Must, end the test.
package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is what a check needs of a test; rapid.T has it too.
type TB interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// longText is the size in bytes from which two texts are shown only around their first difference.
const longText = 400

// Must ends the test if err is not nil.
func Must(t TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(prefix(about) + err.Error())
	}
}

// Value is the value of a call: Value(f())(t) is that of f. It ends the test if the call's error is not nil.
func Value[T any](value T, err error) func(t TB, about ...any) T {
	return func(t TB, about ...any) T {
		t.Helper()
		Must(t, err, about...)
		return value
	}
}

// Err is the error of a call that returns a value, too.
func Err[T any](_ T, err error) error { return err }

// OK reports err if it is not nil.
func OK(t TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Error(prefix(about) + err.Error())
	}
}

// ErrorIs reports err if none of the errors that it wraps is want.
func ErrorIs(t TB, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%serror %v, want %v", prefix(about), err, want)
	}
}

// Fails reports err if it is nil, or if the text want is not in its text.
func Fails(t TB, err error, want string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%serror %v, want one with %q", prefix(about), err, want)
	}
}

// Equal reports got if it is not want.
func Equal[T comparable](t TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		t.Error(prefix(about) + difference(got, want))
	}
}

// MustEqual ends the test if got is not want.
func MustEqual[T comparable](t TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		t.Fatal(prefix(about) + difference(got, want))
	}
}

// EqualList reports got if its values are not those of want, in their order.
func EqualList[T comparable](t TB, got, want []T, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%sgot %+v, want %+v", prefix(about), got, want)
	}
}

// Same reports how got and want differ; unlike Equal it compares what they point to.
func Same(t TB, got, want any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s(-want +got)\n%s", prefix(about), diff)
	}
}

// MustSame ends the test if got and want differ.
func MustSame(t TB, got, want any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s(-want +got)\n%s", prefix(about), diff)
	}
}

// Has reports got if it does not contain the text want.
func Has(t TB, got, want string, about ...any) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%swant %q in:\n%s", prefix(about), want, got)
	}
}

// Contains reports each of the texts want that got does not contain.
func Contains(t TB, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("want %q in:\n%s", w, got)
		}
	}
}

// Lacks reports each of the texts unwanted that got contains.
func Lacks(t TB, got string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(got, u) {
			t.Errorf("unwanted %q in:\n%s", u, got)
		}
	}
}

// prefix formats what a check is about.
func prefix(about []any) string {
	if len(about) == 0 {
		return ""
	}
	if format, ok := about[0].(string); ok && len(about) > 1 {
		return fmt.Sprintf(format, about[1:]...) + ": "
	}
	return fmt.Sprint(about...) + ": "
}

// difference shows two values; of long texts, what follows their common beginning.
func difference(got, want any) string {
	g, isText := got.(string)
	w, _ := want.(string)
	if !isText {
		return fmt.Sprintf("got %+v, want %+v", got, want)
	}
	if max(len(g), len(w)) < longText {
		return fmt.Sprintf("got %q, want %q", g, w)
	}
	at := 0
	for at < min(len(g), len(w)) && g[at] == w[at] {
		at++
	}
	from := max(0, at-longText/4)
	return fmt.Sprintf("differ from byte %d on (of %d and %d):\ngot  %.*q\nwant %.*q",
		at, len(g), len(w), longText, g[from:], longText, w[from:])
}
