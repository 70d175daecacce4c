package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// call is one tools/call that every round repeats.
type call struct {
	tool string
	args map[string]any
	size int // the answer has at least as many bytes
}

func (c call) request(id int) []byte {
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": c.tool, "arguments": c.args},
	})
	if err != nil {
		panic(err) // plain maps of strings
	}
	return b
}

// contestant is one server, and what every round measured of it.
type contestant struct {
	name, version   string
	start           func(context.Context) (link, error)
	echo, read, big call        // without a tool: there is none for it
	against         *contestant // the yardstick of its ratios; nil: it is one

	initialize, large []time.Duration
	echoP50, echoP99  []time.Duration
	readP50, readP99  []time.Duration
	perSecond         []float64
	idle              []int64 // bytes
	answered          int     // bytes of the large answer
}

const (
	calls      = 500 // of one kind, one after the other, a round
	bursts     = 20
	atOnce     = 32
	largeCalls = 3
	settle     = 300 * time.Millisecond // after initialize, before memory is read
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"wirebench","version":"1"}}}`

// measure starts the server, asks it everything once more, and ends it.
func (c *contestant) measure(ctx context.Context) (err error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	began := time.Now()
	l, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	answer, err := l.ask([]byte(hello))
	took := time.Since(began)
	if err := errors.Join(err, failed(answer)); err != nil {
		return err
	}
	c.initialize = append(c.initialize, took)
	if err := l.tell([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return err
	}
	time.Sleep(settle)
	rss, err := residentBytes(l.pid())
	if err != nil {
		return err
	}
	c.idle = append(c.idle, rss)
	if c.echo.tool != "" {
		p50, p99, err := repeat(l, c.echo)
		if err != nil {
			return err
		}
		c.echoP50, c.echoP99 = append(c.echoP50, p50), append(c.echoP99, p99)
	}
	p50, p99, err := repeat(l, c.read)
	if err != nil {
		return err
	}
	c.readP50, c.readP99 = append(c.readP50, p50), append(c.readP99, p99)
	rate, err := burst(l, c.read)
	if err != nil {
		return err
	}
	c.perSecond = append(c.perSecond, rate)
	return c.measureLarge(l)
}

func (c *contestant) measureLarge(l link) error {
	for i := range largeCalls {
		request := c.big.request(i + 1)
		began := time.Now()
		answer, err := l.ask(request)
		took := time.Since(began)
		if err := errors.Join(err, failed(answer)); err != nil {
			return err
		}
		if len(answer) < c.big.size {
			return fmt.Errorf("the large answer has %d bytes, want %d", len(answer), c.big.size)
		}
		c.large, c.answered = append(c.large, took), len(answer)
	}
	return nil
}

// repeat makes one call over and over.
func repeat(l link, what call) (p50, p99 time.Duration, err error) {
	took := make([]time.Duration, calls)
	for i := range took {
		request := what.request(i + 1)
		began := time.Now()
		answer, err := l.ask(request)
		took[i] = time.Since(began)
		if err := errors.Join(err, failed(answer)); err != nil {
			return 0, 0, err
		}
	}
	return quantile(took, 0.5), quantile(took, 0.99), nil
}

// burst has many calls under way at once; the answer is calls a second.
func burst(l link, what call) (float64, error) {
	requests := make([][]byte, atOnce)
	for i := range requests {
		requests[i] = what.request(i + 1)
	}
	began := time.Now()
	for range bursts {
		if err := l.askAll(requests); err != nil {
			return 0, err
		}
	}
	return bursts * atOnce / time.Since(began).Seconds(), nil
}

// failed says whether an answer is an error, without reading all of a large one.
func failed(answer []byte) error {
	edge := answer
	if len(answer) > 4096 {
		edge = append(append([]byte(nil), answer[:2048]...), answer[len(answer)-2048:]...)
	} else if len(answer) > 0 && !json.Valid(answer) {
		return fmt.Errorf("not JSON: %.200q", answer)
	}
	if bytes.Contains(edge, []byte(`"isError":true`)) || !bytes.Contains(edge, []byte(`"result":`)) {
		return fmt.Errorf("failed: %.300q", edge)
	}
	return nil
}

// residentBytes is a process's memory as Linux counts it.
func residentBytes(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	field, _, ok := strings.Cut(strings.TrimSpace(rest), " kB")
	kilobytes, err := strconv.ParseInt(field, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("no VmRSS for process %d", pid)
	}
	return kilobytes << 10, nil
}
