package main

import (
	"fmt"
	goversion "go/version"
	"runtime"
	"strings"
)

// firstSafeGo is the first release with a safe os.Root: before it a link with a trailing slash leads out of a root
// (CVE-2026-39822).
const firstSafeGo = "go1.26.5"

// checkToolchain returns an error if the binary was built with a Go older than [firstSafeGo]. A development build
// without a release number counts as new.
func checkToolchain(built string) error {
	release, _, _ := strings.Cut(built, " ") // "go1.26.8 X:simd"
	if !goversion.IsValid(release) || goversion.Compare(release, firstSafeGo) >= 0 {
		return nil
	}
	return fmt.Errorf(
		"this binary was built with %s, whose os.Root lets links lead out of a root (CVE-2026-39822); build it with %s or newer",
		built, firstSafeGo,
	)
}

// goVersion is the check of the doctor command.
func goVersion(*Settings) []finding {
	if err := checkToolchain(runtime.Version()); err != nil {
		return bad("go", err.Error())
	}
	return []finding{{what: "go", text: "built with " + runtime.Version() + ", which keeps tools inside their roots"}}
}
