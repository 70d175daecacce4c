package conformance

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// rootsOf is an answer to roots/list.
func rootsOf(uris ...string) map[string]any {
	roots := make([]map[string]string, len(uris))
	for i, uri := range uris {
		roots[i] = map[string]string{"uri": uri, "name": "a root"}
	}
	return map[string]any{"roots": roots}
}

// rootsClaimed is what a client may say of its roots, and what it can then read below those granted.
type rootsClaimed struct {
	name   string
	claims map[string]any
	shown  []string // of all, names of files that are found; none: the call fails, and says why
}

// The roots that a client names narrow what was granted, and never add to it, whatever they are, also when they change.
func TestS26ClientsRootsOnlyNarrow(t *testing.T) {
	drivesOnly(t)
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, file := range []string{
		"work/top.txt", "work/one/one.txt", "work/two/two.txt", "outside/secret.txt", "work-evil/secret.txt",
	} {
		write(t, filepath.Join(top, filepath.FromSlash(file)), "an ordinary word\n")
	}
	uri := func(dir string) string { return "file://" + filepath.ToSlash(filepath.Join(top, dir)) }
	all := []string{"top.txt", "one.txt", "two.txt"}
	claims := []rootsClaimed{
		{"the same", rootsOf(uri("work")), all},
		{"wider", rootsOf(uri("")), all},
		{"everything", rootsOf("file:///"), all},
		{"narrower", rootsOf(uri("work/one")), []string{"one.txt"}},
		{"two narrower", rootsOf(uri("work/one"), uri("work/two")), []string{"one.txt", "two.txt"}},
		{"one within the other", rootsOf(uri("work/one"), uri("work")), all},
		{"outside", rootsOf(uri("outside")), nil},
		{"of a like name", rootsOf(uri("work-evil")), nil},
		{"narrower and outside", rootsOf(uri("outside"), uri("work/two")), []string{"two.txt"}},
		{"out by dots", rootsOf(uri("work") + "/../outside"), nil},
		{"out by encoded dots", rootsOf(uri("work") + "/%2e%2e/outside"), nil},
		{"of no file", rootsOf("https://example.org/"), nil},
		{"of another machine", rootsOf("file://elsewhere" + filepath.ToSlash(top) + "/work"), nil},
		{"a file", rootsOf(uri("work/top.txt")), nil},
		{"missing", rootsOf(uri("work/none")), nil},
		{"none", rootsOf(), all},
	}
	var faults []string
	fail := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	cases := tryRoots(t, launch{flags: []string{"--root", filepath.Join(top, "work")}}, top, claims, fail)

	report(t, faults)
	// The control: a server to which all was granted that a client may say, as one would be that believes it.
	control := 0
	tryRoots(t, launch{flags: []string{"--root", top}}, top, claims, func(string, ...any) { control++ })
	promise.Keptf(t, promise.Proof{Promise: "S26", Cases: cases, Failures: len(faults), Control: control},
		"%d answers to roots/list over stdio, from one client that changes its mind", len(claims))
}

// tryRoots has one client make each claim, and look what it finds and can read then.
func tryRoots(
	t *testing.T, l launch, top string, claims []rootsClaimed, fail func(format string, args ...any),
) (cases int) {
	t.Helper()
	var mu sync.Mutex
	claimed := claims[0].claims
	l.capabilities = map[string]any{"roots": map[string]any{"listChanged": true}}
	l.replies = map[string]func() any{"roots/list": func() any {
		mu.Lock()
		defer mu.Unlock()
		return claimed
	}}
	c := l.stdio(t)
	secrets := []string{
		"../outside/secret.txt", "../work-evil/secret.txt", "secret.txt", "outside/secret.txt",
		"one/../../outside/secret.txt",
		filepath.Join(top, "outside", "secret.txt"), filepath.Join(top, "work-evil", "secret.txt"),
	}
	for i, claim := range claims {
		if i > 0 {
			mu.Lock()
			claimed = claim.claims
			mu.Unlock()
			c.notify("notifications/roots/list_changed", map[string]any{})
		}
		found := expect.Value(c.call("find", object{"glob": "**/*.txt"}))(t)
		if asked := c.toldOnItsOwn()["roots/list"]; asked <= i {
			t.Fatalf("roots that are %s: asked for %d times in all", claim.name, asked)
		}
		cases++
		if found.failed != (claim.shown == nil) || found.failed &&
			!strings.Contains(found.text(), "none of the client's roots lies within") {
			fail("roots that are %s: %s", claim.name, found.text())
		}
		for _, file := range []string{"top.txt", "one.txt", "two.txt", "secret.txt"} {
			if cases++; strings.Contains(found.text(), file) != strings.Contains(strings.Join(claim.shown, " "), file) {
				fail("roots that are %s, and %s: %s", claim.name, file, found.text())
			}
		}
		for _, secret := range secrets {
			cases++
			if a, err := c.call("read", object{"path": secret}); err != nil || !a.failed ||
				strings.Contains(a.text(), "ordinary word") {
				fail("roots that are %s: read %s: %v %s", claim.name, secret, err, a.text())
			}
		}
	}
	return cases
}
