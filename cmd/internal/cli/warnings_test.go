package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestWarnings compares what is said of settings without effect.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIVEN", "1")
	for _, c := range []struct {
		settings Settings
		want     []string
	}{
		{Settings{}, nil},
		{Settings{commandsSettings: commandsSettings{AllowRead: []string{dir}, AllowCache: []string{dir}, KeepEnv: []string{"GIVEN"}}}, nil},
		{Settings{commandsSettings: commandsSettings{AllowRead: []string{dir + "/none"}}},
			[]string{"--allow-read " + dir + "/none: no such file or directory; commands run without it"}},
		{Settings{commandsSettings: commandsSettings{AllowCache: []string{dir + "/none"}}},
			[]string{"--allow-cache " + dir + "/none: no such file or directory; commands run without it"}},
		{Settings{commandsSettings: commandsSettings{KeepEnv: []string{"NOT_GIVEN"}}},
			[]string{"--keep-env NOT_GIVEN: the variable is not set; commands run without it"}},
		{Settings{httpSettings: httpSettings{TokenFile: "token"}}, []string{"--token-file has no effect without --http"}},
		{Settings{httpSettings: httpSettings{TokenFile: "token", HTTP: "8080"}}, nil},
		{Settings{limitsSettings: limitsSettings{CallTimeout: Age(time.Second)},
			commandsSettings: commandsSettings{Toolsets: []string{"all"}, Slice: Age(2 * time.Second)}},
			[]string{"--call-timeout 1s is below --slice 2s: a call of run answers within the shorter one"}},
		{Settings{limitsSettings: limitsSettings{CallTimeout: Age(time.Second)},
			commandsSettings: commandsSettings{Slice: Age(2 * time.Second)}}, nil},
	} {
		expect.EqualList(t, c.settings.Warnings(), c.want)
	}
}

// TestEmptyGrants checks that an empty value grants nothing, and not the current directory.
func TestEmptyGrants(t *testing.T) {
	s := Settings{commandsSettings: commandsSettings{AllowRead: []string{"", "/a"}, AllowCache: []string{""}}}
	_ = s.check(nil) // what else is not set is refused
	if !slices.Equal(s.AllowRead, []string{"/a"}) || len(s.AllowCache) > 0 {
		t.Errorf("%q, %q", s.AllowRead, s.AllowCache)
	}
}

// TestSettingsBesideTheirFile checks that a relative root counts from the file that names it.
func TestSettingsBesideTheirFile(t *testing.T) {
	for given, want := range map[string]string{
		"sub": "/etc/x/sub", "../y": "/etc/y", "/abs": "/abs", "~/z": "~/z", "": "",
	} {
		if got := besideFile(given, "/etc/x/funnel.yaml"); got != want {
			t.Errorf("%s: %v, want %s", given, got, want)
		}
	}
	if got := besideFile([]any{"a", "/b"}, "/x/f.yaml").([]any); got[0] != "/x/a" || got[1] != "/b" {
		t.Errorf("%v", got)
	}
	if got := besideFile(nil, "/x/f.yaml"); got != nil {
		t.Errorf("%v", got)
	}
}
