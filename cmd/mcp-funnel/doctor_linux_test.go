package main

import (
	"os"
	"strings"
	"testing"
)

// TestDoctorListsLayers checks that doctor lists the layers of the sandbox if commands are offered, and not otherwise.
func TestDoctorListsLayers(t *testing.T) {
	c := newCommandLine(t)
	_, report, _ := c.run("--toolsets", "core,shell", "doctor")
	for _, want := range []string{
		"user namespace", "mount namespace", "process namespace", "network namespace", "IPC namespace", "Landlock",
		"system call filter", "the layers of this machine allow --sandbox ",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%s is missing: %s", want, report)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(report, "owners in "+c.root) {
		t.Errorf("the owners of files are missing: %s", report)
	}
	if _, report, _ := c.run("doctor"); strings.Contains(report, "sandbox") {
		t.Errorf("without commands: %s", report)
	}
}
