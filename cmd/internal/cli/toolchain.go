package cli

import (
	"fmt"
	goversion "go/version"
	"strings"
)

// firstSafeGo is the first release with a safe os.Root: before it a link with a trailing slash leads out of a root
// (CVE-2026-39822).
const firstSafeGo = "go1.26.5"

// CheckToolchain returns an error if the binary was built with a Go older than [firstSafeGo]. A development build
// without a release number counts as new.
func CheckToolchain(built string) error {
	release, _, _ := strings.Cut(built, " ") // "go1.26.8 X:simd"
	if !goversion.IsValid(release) || goversion.Compare(release, firstSafeGo) >= 0 {
		return nil
	}
	return fmt.Errorf(
		"this binary was built with %s, whose os.Root lets links lead out of a root (CVE-2026-39822); build it with %s or newer",
		built,
		firstSafeGo,
	)
}
