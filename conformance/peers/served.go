//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// served is a contestant that asks one tool of a server over stdio. The server runs before and after: its start is not
// part of the time, the protocol is.
type served struct {
	words  []string
	pinned bool
	tool   string
	args   map[string]any

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}`

func (s *served) once(ctx context.Context, _ bool) (got sample, err error) {
	if s.cmd == nil {
		if err := s.start(ctx); err != nil {
			return got, err
		}
	}
	params, err := json.Marshal(map[string]any{"name": s.tool, "arguments": s.args})
	if err != nil {
		return got, err
	}
	began := time.Now()
	got.said, err = s.ask("tools/call", string(params))
	got.took = time.Since(began)
	return got, err
}

func (s *served) start(ctx context.Context) (err error) {
	words := s.words
	if s.pinned {
		words = append([]string{"taskset", "-c", firstCore()}, words...)
	}
	s.cmd = exec.CommandContext(ctx, words[0], words[1:]...)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if _, err := s.ask("initialize", hello); err != nil {
		return err
	}
	_, err = io.WriteString(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return err
}

// ask gives the text of the answer.
func (s *served) ask(method, params string) (string, error) {
	s.id++
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", s.id, method, params); err != nil {
		return "", err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return "", fmt.Errorf("the server: %w", err)
		}
		var m struct {
			ID     int
			Method string
			Error  any
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return "", err
		}
		if m.Method != "" || m.ID != s.id {
			continue
		}
		var text []string
		for _, c := range m.Result.Content {
			text = append(text, c.Text)
		}
		if m.Error != nil || m.Result.IsError {
			return "", fmt.Errorf("%s failed: %v %.300s", method, m.Error, strings.Join(text, "\n"))
		}
		return strings.Join(text, "\n"), nil
	}
}

// close ends the server with its input.
func (s *served) close() {
	if s.cmd == nil {
		return
	}
	_ = s.in.Close()
	defer time.AfterFunc(4*time.Second, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.cmd.Wait() // how it ends is not measured
}
