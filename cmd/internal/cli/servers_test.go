package cli

import (
	"strings"
	"testing"
)

// TestFirstMissingVariable names several variables that are not set: the error names the same one each time.
func TestFirstMissingVariable(t *testing.T) {
	for kind, block := range map[string]string{
		"headers": "url: http://127.0.0.1/\n    headers: {a: \"${NOT_A}\", b: \"${NOT_B}\", c: \"${NOT_C}\", d: \"${NOT_D}\"}",
		"env":     "command: x\n    env: {a: \"${NOT_A}\", b: \"${NOT_B}\", c: \"${NOT_C}\", d: \"${NOT_D}\"}",
	} {
		for range 30 {
			_, err := configOf(t, "upstreams:\n  one:\n    "+block+"\n")
			if err == nil || !strings.Contains(err.Error(), kind+": a: the variable NOT_A is not set") {
				t.Errorf("%s: %v", kind, err)
				break
			}
		}
	}
}
