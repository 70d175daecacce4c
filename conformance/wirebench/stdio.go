package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// link is a client's way to one server, of whatever transport.
type link interface {
	// ask sends one request and gives its answer, a JSON-RPC message.
	ask(request []byte) ([]byte, error)
	// askAll has all requests under way at once and waits for all answers.
	askAll(requests [][]byte) error
	// tell sends a notification.
	tell(message []byte) error
	// close ends the server.
	close() error
	pid() int
}

// stdio is a server as a child, spoken to over its pipes.
type stdio struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	line []byte // of the last answer; used again for the next
	errs bytes.Buffer
}

func startStdio(ctx context.Context, dir string, command []string) (link, error) {
	s := &stdio{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	s.cmd.Dir, s.cmd.Stderr = dir, &s.errs
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	return s, s.cmd.Start()
}

func (s *stdio) pid() int { return s.cmd.Process.Pid }

func (s *stdio) tell(message []byte) error {
	_, err := s.in.Write(append(bytes.Clone(message), '\n'))
	return err
}

func (s *stdio) ask(request []byte) ([]byte, error) {
	if err := s.tell(request); err != nil {
		return nil, err
	}
	return s.answer()
}

func (s *stdio) askAll(requests [][]byte) error {
	if err := s.tell(bytes.Join(requests, []byte("\n"))); err != nil {
		return err
	}
	for range requests {
		answer, err := s.answer()
		if err != nil {
			return err
		}
		if err := failed(answer); err != nil {
			return err
		}
	}
	return nil
}

// answer reads up to the next message that is one: notifications are passed over.
func (s *stdio) answer() ([]byte, error) {
	for {
		s.line = s.line[:0]
		for {
			part, err := s.out.ReadSlice('\n')
			s.line = append(s.line, part...)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, fmt.Errorf("%w: %s", err, s.errs.String())
			}
		}
		if !bytes.Contains(s.line[:min(len(s.line), 200)], []byte(`"method":`)) {
			return s.line, nil
		}
	}
}

// close gives a server that does not end with its input two seconds.
func (s *stdio) close() error {
	_ = s.in.Close()
	defer time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Signal(os.Interrupt) }).Stop()
	defer time.AfterFunc(4*time.Second, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.cmd.Wait() // how it ends is not measured
	return nil
}
