package main

import (
	"context"
	"fmt"
	goversion "go/version"
	"runtime"
	"strings"
)

// firstSafeGo is the first release whose os.Root holds: before it a link with a trailing slash leads out of a
// root (CVE-2026-39822).
const firstSafeGo = "go1.26.5"

// safeToolchain refuses a Go by whose os.Root tools would not stay inside their roots. What is no release
// (a build of the development branch that names none) counts as new.
func safeToolchain(built string) error {
	release, _, _ := strings.Cut(built, " ") // "go1.26.8 X:simd"
	if !goversion.IsValid(release) || goversion.Compare(release, firstSafeGo) >= 0 {
		return nil
	}
	return fmt.Errorf("this binary was built with %s, by which links lead out of a root (CVE-2026-39822); build it with %s or newer", built, firstSafeGo)
}

// goVersion is the doctor's line about it.
func goVersion(context.Context, *Settings) []finding {
	if err := safeToolchain(runtime.Version()); err != nil {
		return []finding{{what: "go", bad: true, text: err.Error()}}
	}
	return []finding{{what: "go", text: "built with " + runtime.Version() + ", which keeps tools inside their roots"}}
}
