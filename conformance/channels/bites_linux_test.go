package channels

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// recorder notes what a check reports, instead of failing its test.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Error(about ...any)                 { r.said += fmt.Sprintln(about...) }
func (r *recorder) Errorf(format string, about ...any) { r.said += fmt.Sprintf(format+"\n", about...) }
func (r *recorder) Fatal(about ...any)                 { r.Error(about...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, about ...any) { r.Errorf(format, about...); runtime.Goexit() }

// The control of all channels: a server that prints a line of its own, ends with an error or does not start is found.
func TestFirstReceiptBites(t *testing.T) {
	t.Parallel()
	server := one(t, dist(t), "mcp-funnel_linux_"+runtime.GOARCH+"*/mcp-funnel")
	root := t.TempDir()
	writeLines(t, root)
	for script, want := range map[string]string{
		`exec "$0" "$@"`:                  "",
		`echo started; exec "$0" "$@"`:    `no message, or an error: "started\n"`,
		`"$0" "$@"; echo`:                 `no message, or an error: "\n"`,
		`"$0" "$@"; printf bye`:           `no message, or an error: "bye"`,
		`"$0" "$@"; exit 3`:               "exit status 3",
		`echo lost >&2; exit 3`:           "no answer to initialize: EOF, exit status 3\nlost",
		`echo '{"jsonrpc":"2.0","id":1}'`: "no message, or an error",
	} {
		cmd := exec.Command("sh", "-c", script, server, "serve", root)
		cmd.Env = []string{"HOME=" + filepath.Join(t.TempDir(), "home")}
		said := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			firstReceipt(said, cmd, root)
		}()
		<-done
		if want == "" {
			expect.Equal(t, said.said, "", script)
		} else {
			expect.Has(t, said.said, want, script)
		}
	}
}
