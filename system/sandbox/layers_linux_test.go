//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// withoutKey makes a test process forbid itself a kind of namespace before it lists the layers.
const withoutKey = "SANDBOX_TEST_WITHOUT"

// TestLayers lists the layers, and lists them again in a process that may make no network namespace, as in some
// containers.
func TestLayers(t *testing.T) {
	withoutRace(t)
	if kind := os.Getenv(withoutKey); kind != "" {
		expect.Must(t, os.WriteFile("/proc/sys/user/max_"+kind+"_namespaces", []byte("0"), 0o600), "not possible here")
		for _, l := range sandbox.Layers() {
			t.Logf("%t %s: %s; needed: %q", l.Holds, l.Name, l.Detail, l.Needs)
		}
		t.Log("mode:", sandbox.Strongest(sandbox.Layers()))
		return
	}
	for _, l := range sandbox.Layers() {
		if !l.Holds && strings.HasSuffix(l.Name, "namespace") {
			t.Skipf("this machine refuses namespaces: %s", l.Detail)
		}
		if !l.Holds || l.Detail == "" || l.Needs != "" {
			t.Errorf("%+v", l)
		}
	}
	expect.Equal(t, sandbox.Strongest(sandbox.Layers()), sandbox.Required, "mode")
	if os.Getuid() != 0 {
		t.Skip("only root can map the user of commands")
	}
	ids := []syscall.SysProcIDMap{{Size: 1}, {ContainerID: 0x7ffe0000, HostID: 0x7ffe0000, Size: 1}}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLayers$", "-test.v")
	cmd.Env = append(os.Environ(), withoutKey+"=net")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
	}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "not possible here") {
		t.Skipf("a namespace's limits cannot be set here: %s", out)
	}
	got := string(out)
	for _, want := range []string{
		"false network namespace: ", "needed: \"allow user namespaces", "true user namespace: ", "true mount namespace: ",
		"mode: best-effort",
	} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v: no %q in %s", err, want, got)
		}
	}
}

// TestStrongest compares the mode that layers allow.
func TestStrongest(t *testing.T) {
	for _, c := range []struct {
		missing string
		want    sandbox.Mode
	}{
		{"", sandbox.Required}, {"Landlock", sandbox.BestEffort}, {"rights", sandbox.Off}, {"sandbox", ""},
	} {
		layers := []sandbox.Layer{{Name: "user namespace", Holds: true}, {Name: c.missing, Holds: c.missing == ""}}
		expect.Equal(t, sandbox.Strongest(layers), c.want, "without %s", c.missing)
	}
}
