package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
)

// roleKey is the variable that gives this test binary a role when a test starts it again.
const roleKey = "CONFORMANCE_ROLE"

// roles are the processes that tests start: clients to be killed, and the weak fixtures of controls.
var roles = map[string]func() error{
	"client":  clientRole,
	"fragile": fragileRole,
}

// play runs the role of this process, if it has one. TestMain calls it first.
func play() (played bool, code int) {
	role, ok := roles[os.Getenv(roleKey)]
	if !ok {
		return false, 0
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, 1
	}
	return true, 0
}

// clientRole starts the server named by its arguments, writes its process number to stderr, and forwards all input.
func clientRole() error {
	cmd := exec.Command(os.Args[1], os.Args[2:]...) //nolint:noctx // it is killed, or ends with its input
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, cmd.Process.Pid)
	go func() {
		_, _ = io.Copy(in, os.Stdin)
		_ = in.Close()
	}()
	_, _ = io.Copy(os.Stdout, out)
	return cmd.Wait()
}

// fragileRole is a naive server: it trusts its input.
func fragileRole() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			panic(err)
		}
		result := any(map[string]any{})
		if m.Method == "tools/call" {
			result = fragileCall(m.Params.Arguments)
		}
		if m.ID == nil {
			continue
		}
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", b)
	}
	return lines.Err()
}

func fragileCall(args map[string]any) any {
	text := func(s string, failed bool) any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": s}}, "isError": failed}
	}
	if pattern, ok := args["pattern"].(string); ok {
		regexp.MustCompile(pattern)
	}
	path, _ := args["path"].(string)
	if source, ok := args["source"].(string); ok {
		path = source
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return text(err.Error(), true)
	}
	return text(string(b), false)
}
