//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// wireFigures are what wirebench has measured in one run of its own, by server.
type wireFigures struct {
	err     error
	servers map[string]wireServer
}

// wireServer is written by wirebench -figures: medians over its rounds, times in nanoseconds, memory in bytes.
type wireServer struct {
	Name, Version    string
	Initialize       time.Duration
	EchoP50, EchoP99 time.Duration
	ReadP50, ReadP99 time.Duration
	Idle             int64
}

func wireRows(b *bench) []row {
	start := func(s wireServer) time.Duration { return s.Initialize }
	const product, bare = "mcp-funnel", "its transport alone"
	return []row{
		{family: "wire", name: "start → initialize, beside go-sdk", bar: 10, beyond: 4, unit: "ms", figures: b.onWire(product, "go-sdk", start)},
		{family: "wire", name: "start → initialize, beside an empty mcp-go", bar: 10, beyond: 8, unit: "ms", figures: b.onWire(product, "mcp-go", start)},
		{family: "wire", name: "start → initialize, beside node", bar: 10, beyond: 258, unit: "ms", figures: b.onWire(product, "server-filesystem", start)},
		{family: "wire", name: "idle memory, beside go-sdk", bar: 20, unit: "MB", figures: b.idle},
		{family: "wire", name: "tools/call p50: read 1 kB, beside go-sdk", bar: 110, beyond: 70, unit: "µs", figures: b.onWire(product, "go-sdk", func(s wireServer) time.Duration { return s.ReadP50 })},
		{family: "wire", name: "tools/call p99: read 1 kB, beside go-sdk", bar: 400, beyond: 470, unit: "µs", noisy: true, figures: b.onWire(product, "go-sdk", func(s wireServer) time.Duration { return s.ReadP99 })},
		{family: "wire", name: "tools/call p50: echo by the transport alone, beside go-sdk", bar: 110, beyond: 70, unit: "µs", figures: b.onWire(bare, "go-sdk", func(s wireServer) time.Duration { return s.EchoP50 })},
		{family: "wire", name: "tools/call p99: echo by the transport alone, beside go-sdk", bar: 400, beyond: 470, unit: "µs", noisy: true, figures: b.onWire(bare, "go-sdk", func(s wireServer) time.Duration { return s.EchoP99 })},
	}
}

func (b *bench) onWire(ours, peer string, of func(wireServer) time.Duration) func(context.Context) (result, error) {
	return func(ctx context.Context) (got result, err error) {
		a, c, err := b.twoServers(ctx, ours, peer)
		if err != nil {
			return got, err
		}
		got.ours, got.peer = []time.Duration{of(a)}, []time.Duration{of(c)}
		got.note = fmt.Sprintf("%s %s", c.Name, c.Version)
		got.oursPeak, got.otherPeak = a.Idle, c.Idle
		return got, nil
	}
}

func (b *bench) idle(ctx context.Context) (got result, err error) {
	a, c, err := b.twoServers(ctx, "mcp-funnel", "go-sdk")
	got.value, got.other = float64(a.Idle)/(1<<20), float64(c.Idle)/(1<<20)
	got.oursPeak, got.otherPeak = a.Idle, c.Idle
	got.note = fmt.Sprintf("%s %s", c.Name, c.Version)
	return got, err
}

func (b *bench) twoServers(ctx context.Context, ours, peer string) (a, c wireServer, err error) {
	if b.wire == nil {
		b.wire = b.measureWire(ctx)
	}
	if b.wire.err != nil {
		return a, c, b.wire.err
	}
	a, known := b.wire.servers[ours]
	if !known {
		return a, c, fmt.Errorf("wirebench has no %s", ours)
	}
	if c, known = b.wire.servers[peer]; !known {
		return a, c, errSkipped{peer + " was not measured: node_modules are not given"}
	}
	return a, c, nil
}

// measureWire runs wirebench once for all rows, over stdio. A comparison made again asks for it anew.
func (b *bench) measureWire(ctx context.Context) *wireFigures {
	file := filepath.Join(b.work, "wire.json")
	rounds := b.rounds
	if b.small {
		rounds = 2 // each is five hundred calls
	}
	args := []string{"-bin", b.bin, "-rounds", fmt.Sprint(rounds), "-figures", file, "-only", `^(mcp-funnel|its transport alone|go-sdk|mcp-go|server-filesystem)$`}
	if b.npm != "" {
		args = append(args, "-npm", b.npm)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "wirebench"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return &wireFigures{err: fmt.Errorf("wirebench: %w: %.500s", err, out)}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return &wireFigures{err: err}
	}
	var all []wireServer
	if err := json.Unmarshal(text, &all); err != nil {
		return &wireFigures{err: err}
	}
	f := &wireFigures{servers: map[string]wireServer{}}
	for _, s := range all {
		f.servers[s.Name] = s
	}
	return f
}
