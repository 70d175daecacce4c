package cases

import "testing"

// Other servers: their names, addresses, results, and what they say against the protocol.
func TestServers(t *testing.T) {
	for _, name := range []string{
		"servers/late.py", "servers/variables.py", "servers/addresses.py", "servers/binary.py", "servers/embedded.py",
		"servers/progress.py", "servers/tasks.py", "servers/badjson.py", "servers/lists.py", "servers/question.py",
		"http/over_http.py", "install/install.py",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script(t, name)
		})
	}
}
