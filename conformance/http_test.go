package conformance

import (
	"os/exec"
	"testing"
)

// testToken is what the product asks for in these tests.
const testToken = "0123456789abcdef0123456789abcdef"

// overHTTP starts the product over HTTP, with all its endpoints, and gives its address, "http://127.0.0.1:PORT".
func overHTTP(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"--http", "127.0.0.1:0", "--sse"}, args...)...) //nolint:noctx // ended by start
	cmd.Env = append(environment(t), "MCP_FUNNEL_TOKEN="+testToken)
	_, at := start(t, cmd, "serving MCP at ")
	return at[:len(at)-len("/mcp")]
}
