package main

import (
	"strings"
	"testing"
)

// Arguments that are not taken are wrong usage; a tool that says no has failed.
func TestCallExitCodes(t *testing.T) {
	for _, k := range []struct {
		args []string
		code int
	}{
		{[]string{"find"}, done},
		{[]string{"nosuch"}, usage},
		{[]string{"slice", "nosuch=1"}, usage},
		{[]string{"slice", "--json", "nosuch=1"}, usage},
		{[]string{"slice"}, usage},
		{[]string{"slice", `{"source":1}`}, usage},
		{[]string{"slice", `{"source"`}, usage},
		{[]string{"read", "path=nosuch"}, failed},
		{[]string{"read", "path=nosuch", "--json"}, failed},
	} {
		if code, out, complaints := try(t, append([]string{"call"}, k.args...)...); code != k.code || code != done && out+complaints == "" {
			t.Errorf("%v: code %d: %s%s", k.args, code, out, complaints)
		}
	}
}

func TestCallHelpNamesTheArguments(t *testing.T) {
	if _, out, _ := try(t, "call", "--help"); !strings.Contains(out, "  search   pattern* ") || !strings.Contains(out, "  slice    source* ") {
		t.Errorf("of all: %s", out)
	}
	if _, out, _ := try(t, "call", "slice", "--help"); !strings.Contains(out, "Arguments of slice:\n  source (required)\n") || strings.Contains(out, "ignore_case") {
		t.Errorf("of one: %s", out)
	}
}

// What a help page shows can be pasted.
func TestHelpOfObservationsCanBePasted(t *testing.T) {
	for _, words := range [][]string{{"observations"}, {"obs"}, {"observations", "list"}} {
		if _, out, _ := try(t, append(words, "--help")...); !strings.Contains(out, "mcp-funnel observations") || strings.Contains(out, "(obs)") {
			t.Errorf("%v: %s", words, out)
		}
	}
}
