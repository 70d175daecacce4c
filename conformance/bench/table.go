//go:build linux

package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/pelletier/go-toml/v2"
)

//go:embed rows.toml
var tableText []byte

// table is rows.toml: its comments say what the fields mean.
type table struct {
	Shell, Awk string
	Inputs     map[string]string
	Kinds      map[string]values
	Group      []values
	Growth     struct{ Rows []growth }
	Servers    []mcpServer
	rows       []values // of all groups, in the order of the page
}

// values are those of a row and of its group.
type values map[string]any

// row is a line of the table.
type row struct {
	Family, Name, Beside, Unit                    string
	Bar, Beyond, Size                             float64
	Noisy, Over, Timed, Served                    bool
	Cores, Rounds                                 int
	In, Ours, Peer, Same, After, Count            string // paths and shell
	Call, Method, Args, Flags, Server, PeerServer string
	Wire                                          []string
}

func (r row) id() string { return r.Family + "/" + r.Name }

// errSkipped says why a row cannot be measured on this machine; the page prints the cause.
type errSkipped struct{ cause string }

func (e errSkipped) Error() string { return e.cause }

// readTable returns the table with its rows, whose names are complete and whose sizes are those of the form.
func readTable(small bool) (t table, err error) {
	if err := toml.Unmarshal(tableText, &t); err != nil {
		return t, err
	}
	for _, group := range t.Group {
		kind, _ := group["kind"].(string)
		for _, own := range group["rows"].([]any) {
			v := values{"served": true, "in": ""}
			for _, more := range []values{t.Kinds[kind], group, own.(map[string]any)} {
				maps.Copy(v, more)
			}
			delete(v, "rows")
			if v["name"], err = (&bench{}).render(v["name"].(string), v); err != nil {
				return t, err
			}
			if size, ok := v["size"].(int64); ok && small {
				divisor, _ := v["small"].(int64)
				v["size"] = size / cmp.Or(divisor, 20)
			}
			if full, _ := v["full"].(bool); !full || !small {
				t.rows = append(t.rows, v)
			}
		}
	}
	return t, nil
}

// described returns the row without its commands.
func described(v values) (r row) {
	text, err := json.Marshal(v)
	if err = errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		panic(err) // the table is part of the program, and every test reads it
	}
	return r
}

// commands are the values of a row that name others.
var commands = strings.Fields("args flags ours peer same after server peerServer count")

// expand renders the strings of a row, makes its input and prepares it.
func (b *bench) expand(ctx context.Context, v values) (row, error) {
	r := described(v)
	v = maps.Clone(v)
	maps.Copy(v, values{"work": b.work, "bin": b.bin, "goroot": b.goroot})
	v["in"] = cmp.Or(fmt.Sprint(v["in"]), b.work)
	render := func(keys ...string) (err error) {
		for _, key := range keys {
			if text, ok := v[key].(string); ok && err == nil {
				v[key], err = b.render(text, v)
			}
		}
		return err
	}
	if err := render("in", "prepare"); err != nil {
		return r, err
	}
	if script, ok := v["prepare"].(string); ok {
		out, err := b.script(ctx, b.work, script)
		if err != nil {
			return r, fmt.Errorf("prepare: %w", err)
		}
		for line := range strings.Lines(out) {
			if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
				v[name] = value
			}
		}
	}
	plain := slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(key string) bool {
		return key == "in" || key == "prepare" || slices.Contains(commands, key)
	})
	if err := errors.Join(render(plain...), render(commands...)); err != nil {
		return r, err
	}
	return described(v), nil
}

// render executes a template with the values of a row.
func (b *bench) render(text string, v values) (string, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"file": b.file, "bench": b.goBenchmark, "base": filepath.Base, "sh": quoted, "repeat": strings.Repeat,
		"isSmall": func() bool { return b.small },
		// so that no input is truncated or evicted
		"limits": func() string { return "--max-observation 4GiB --quota 16GiB" },
		"funnel": func() string {
			return quoted(b.bin+"/mcp-funnel") + " --root . --store " + b.work + "/store --min-free 0 --call-timeout 10m"
		},
		"self": func() (string, error) {
			self, err := os.Executable()
			return quoted(self) + " -bin " + quoted(b.bin), err
		},
		"source": b.source,
		"json":   func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, map[string]any(v))
	return out.String(), err
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// source returns a tree of many files: Linux, or in the small form the Go commands.
func (b *bench) source() (string, error) {
	switch {
	case b.small:
		return filepath.Join(b.goroot, "src", "cmd"), nil
	case b.tree == "":
		return "", errSkipped{"linux-source-6.1 is not installed"}
	}
	return b.tree, nil
}

// goBenchmark returns the command of a benchmark of conformance/peers, which prints three results, or one of that many
// iterations.
func (b *bench) goBenchmark(name string, times ...int64) string {
	pattern := "^Benchmark" + strings.ReplaceAll(name, "/", "$/^") + "$"
	flags := "-test.benchtime 1x -test.count 3"
	if len(times) > 0 {
		flags = fmt.Sprintf("-test.benchtime %dx", times[0])
	}
	return fmt.Sprintf("%s -test.run '^$' %s -test.bench %s", quoted(b.bin+"/peers.test"), flags, quoted(pattern))
}

// file returns the path of an input, which is made if no earlier run has made it: a file of what its script prints, or
// if that is nothing the directory in which it ran.
func (b *bench) file(name string, size int64, seed ...int) (string, error) {
	v := values{"size": size, "seed": append(seed, 3)[0], "goroot": b.goroot}
	path := filepath.Join(b.cache, "inputs", fmt.Sprintf("%s-%d-%d", name, size, v["seed"]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	script, ok := b.table.Inputs[name]
	if !ok {
		return "", fmt.Errorf("no input %q", name)
	}
	script, err := b.render(script, v)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.work, "input-")
	if err != nil {
		return "", err
	}
	printed := dir + ".txt"
	if _, err := b.script(context.Background(), dir, "{ "+script+"\n} >"+printed); err != nil {
		return "", fmt.Errorf("input %s: %w", name, err)
	}
	if info, err := os.Stat(printed); err != nil || info.Size() > 0 {
		return path, errors.Join(err, os.Rename(printed, path))
	}
	return path, os.Rename(dir, path)
}

// script runs a shell script that is not timed, with the functions of the table, and returns what it prints.
func (b *bench) script(ctx context.Context, dir, text string, env ...string) (string, error) {
	if text == "" {
		return "", nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", b.table.Shell+text)
	cmd.Dir, cmd.Env = dir, slices.Concat(environment(), env, []string{"AWK=" + b.table.Awk})
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %.300s", err, errs.String())
	}
	return string(out), err
}

func environment() []string { return append(os.Environ(), "LC_ALL=C.UTF-8", "RIPGREP_CONFIG_PATH=") }
