package cli

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// A build by an older Go refuses to serve, and says why.
func TestS3OldToolchainsAreRefused(t *testing.T) {
	versions := map[string]bool{
		"go1.26.8": true, "go1.26.5": true, "go1.26.10": true, "go1.27": true,
		"go1.27rc1": true, "go1.30.1": true, "go1.100.0": true, "go2.0.1": true,
		"go1.26.8 X:simd": true, "go1.26.8-corp": true, "go1.27-devel_1a2b3c": true, "devel +abc": true,
		"go1.26.4": false, "go1.26.4 X:simd": false, "go1.26.4-corp": false, "go1.26": false, "go1.26.0": false,
		"go1.26rc1": false, "go1.25.99": false,
		"go1.9.9": false, "go1.24": false, "go1.26-devel_1a2b3c": false,
	}
	wrong := func(safe func(string) bool) int {
		n := 0
		for version, want := range versions {
			if safe(version) != want {
				n++
			}
		}
		return n
	}
	failures := wrong(func(v string) bool { return CheckToolchain(v) == nil })
	if err := CheckToolchain("go1.26.4"); err == nil || !strings.Contains(err.Error(), "go1.26.4") ||
		!strings.Contains(err.Error(), "CVE-2026-39822") || !strings.Contains(err.Error(), firstSafeGo) {
		t.Errorf("the refusal does not say why: %v", err)
	}
	promise.Kept(t, promise.Proof{
		Promise: "S3", Cases: len(versions), Failures: failures,
		Control: wrong(func(v string) bool { return v >= firstSafeGo }), // the versions compared as texts
	})
}
