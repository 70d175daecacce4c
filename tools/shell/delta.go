package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lastKey names a command of an owner.
type lastKey struct{ owner, cwd, command string }

// testsOf are the failed tests of a command.
type testsOf struct {
	failed map[string]string // names as they are shown, by key
	whole  bool              // all tests ran, and all that failed are here
}

// testsOf returns the failed tests of a command that has ended with an exit code. A command that failed without a
// failed test did not run its tests.
func (j *job) testsOf(exit int) testsOf {
	f := &j.seen.found.tests
	list := f.failed()
	t := testsOf{map[string]string{}, !f.broken && !f.lost && j.ended() == endedItself && (exit == 0 || len(list) > 0)}
	for _, failed := range list {
		t.failed[failed.key] = failed.name
	}
	return t
}

// describeTests says which tests were fixed and which fail for the first time, by name; "" if the same tests fail.
func describeTests(before, now testsOf) string {
	fixed, broken := missingIn(before.failed, now.failed), missingIn(now.failed, before.failed)
	if len(fixed)+len(broken) == 0 {
		return ""
	}
	count := func(word string, names []string) string {
		if len(names) == 0 {
			return word + " 0"
		}
		return fmt.Sprintf("%s %d (%s)", word, len(names), listNames(names))
	}
	parts := []string{count("fixed", fixed), count("new", broken)}
	if !now.whole && len(fixed) > 0 {
		parts[0] = count("failed before and have no result now", fixed)
	}
	if !before.whole && len(broken) > 0 {
		parts[1] = count("new, or not run before,", broken)
	}
	if still := len(now.failed) - len(broken); still > 0 {
		parts = append(parts, fmt.Sprintf("still failing %d", still))
	}
	return strings.Join(parts, ", ")
}

// missingIn returns the names of tests that others do not have, in order.
func missingIn(tests, others map[string]string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(tests)) {
		if _, ok := others[key]; !ok {
			names = append(names, tests[key])
		}
	}
	return names
}
