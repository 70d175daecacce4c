package backend

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCallHash(t *testing.T) {
	same := CallHash("grep", json.RawMessage(`{"a":1,"b":[9007199254740993,1e3]}`))
	if CallHash("grep", json.RawMessage(` { "b": [ 9007199254740993, 1e3 ], "a": 1 } `)) != same {
		t.Error("order and blanks change the hash of a call")
	}
	for name, other := range map[string]string{
		"another tool":      CallHash("jq", json.RawMessage(`{"a":1,"b":[9007199254740993,1e3]}`)),
		"another number":    CallHash("grep", json.RawMessage(`{"a":1,"b":[9007199254740992,1e3]}`)),
		"border moved":      CallHash("grep{", json.RawMessage(`"a":1,"b":[9007199254740993,1e3]}`)),
		"two values":        CallHash("grep", json.RawMessage(`{"a":1,"b":[9007199254740993,1e3]} 1`)),
		"nothing":           CallHash("grep", nil),
		"not JSON":          CallHash("grep", json.RawMessage(`{"a"`)),
		"deeper than taken": CallHash("grep", json.RawMessage(strings.Repeat("[", 20_000))),
	} {
		if other == same || len(other) != 64 {
			t.Errorf("%s: %s", name, other)
		}
	}
}
