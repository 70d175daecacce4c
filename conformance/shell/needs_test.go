package shell_test

import (
	"os"
	"os/exec"
	"testing"
)

// needs skips a test if a program that its commands run is not installed. In CI, which installs them, it fails.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal(program + " is not installed")
	}
	t.Skip(program + " is not installed")
}
