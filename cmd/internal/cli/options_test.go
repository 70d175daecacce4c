package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
)

// Every tag `to` names a field that takes the setting's value, and a value of it arrives there. Settings without
// the tag are listed here, with the code that reads them.
func TestSettingsFillTheirOptions(t *testing.T) {
	direct := map[string]string{
		"Config": "configPath", "Root": "RootDirs", "Model": "Counter", "Mask": "Masker", "RedactStore": "Open",
		"JqIdle": "serve", "HTTP": "serve", "TokenFile": "identities", "LogFormat": "logger", "LogLevel": "logger",
		"Toolsets": "ToolsetNames", "AllowRead": "NewShell", "AllowWrite": "OpenWritable", "AllowCache": "NewShell",
		"KeepShown": "Open", "HTTPView": "serveHTTP", "ToolLimit": "toolLimits", "Uncut": "toolLimits",
		"UsageFrom": "pullUsage", "EndpointPrice": "investigate", "InvestigateBy": "Open", "AskBy": "Open",
		"Extraction": "AskEndpoint", "Meaning": "newAsker",
		"LinkBase":           "Links",
		"EndpointEmbeddings": "Open",
		"SessionKeyFile":     "newServer", "Replica": "ReplicaName", "Drain": "serveHTTP",
	}
	var empty Settings
	zero := empty.Options()
	for field := range empty.fields() {
		if _, has := field.Tag.Lookup("to"); !has {
			if direct[field.Name] == "" {
				t.Errorf(
					"%s fills no option and is not in the list of settings that are read directly",
					field.Name,
				)
			}
			continue
		}
		var s Settings
		value := reflect.ValueOf(&s).Elem().FieldByName(field.Name)
		switch value.Kind() {
		case reflect.Bool:
			value.SetBool(true)
		case reflect.Int, reflect.Int64:
			value.SetInt(7)
		case reflect.String:
			value.SetString("x")
		case reflect.Struct:
			value.Set(reflect.ValueOf(server.Rate{PerSecond: 1, Burst: 1}))
		case reflect.Slice:
			value.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Map:
			value.Set(reflect.MakeMap(value.Type()))
		}
		if reflect.DeepEqual(s.Options(), zero) {
			t.Errorf("%s: its value does not arrive in %s", field.Name, field.Tag.Get("to"))
		}
	}
}

// A limit of 0 is none: to the store, for which 0 is the default, that is a negative one.
func TestZeroIsNoLimit(t *testing.T) {
	var s Settings
	s.MinFree = 5
	o := s.Options()
	if o.Store.Quota != -1 || o.Store.MinFree != 5 {
		t.Errorf("quota %d, free space %d", o.Store.Quota, o.Store.MinFree)
	}
}

func TestAgeIsReadInDaysToo(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 7 * 24 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "90s": 90 * time.Second,
		"12h": 12 * time.Hour, "0": 0,
	} {
		var a Age
		if err := a.UnmarshalText([]byte(text)); err != nil || time.Duration(a) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(a), err)
		}
	}
	for _, bad := range []string{"", "d", "-1d", "-5s", "7", "7 days", "NaNd", "1e9d", "w", "-1w", "1e9w"} {
		var a Age
		expect.Fails(t, a.UnmarshalText([]byte(bad)), "", "%q was taken as %v", bad, time.Duration(a))
	}
}

// The current directory is granted unasked only where that is no home and no system.
func TestTooWide(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "people", "ann")
	project := filepath.Join(home, "project")
	expect.Must(t, os.MkdirAll(project, 0o755))
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for dir, want := range map[string]bool{
		string(filepath.Separator): true, home: true, filepath.Dir(home): true, project: false,
	} {
		expect.Equal(t, tooWide(dir), want, dir)
	}
}

// TestBlockTexts: a value may be written as a block of YAML.
func TestBlockTexts(t *testing.T) {
	for _, text := range []string{
		"model: |\n  gpt-5\n", "model: |-\n  gpt-5\n", "model: >\n  gpt-5\n\n\n", "model: |2\n  gpt-5",
		"root:\n- |\n  a\nmodel: >-\n  gpt-5\n",
	} {
		if r, err := configOf(t, text); err != nil || r.values["model"] != "gpt-5" {
			t.Errorf("%q: %v, %v", text, r.values, err)
		}
	}
}
