package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/cmd/internal/clientconfig"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

type install struct {
	Client string   `arg:"" enum:"claude-desktop,claude-code,cursor,vscode,windsurf,zed,codex,gemini,opencode" help:"One of ${enum}."`
	Scope  string   `env:"-" enum:"user,project,local" default:"user" placeholder:"SCOPE" help:"Whose configuration: user, or project, that of the current directory; for claude-code also local, that of the user for this directory."`
	File   string   `env:"-" placeholder:"FILE" help:"Configuration file in another place than the client documents."`
	Wrap   []string `env:"-" sep:"," placeholder:"NAME" help:"Also have this server start another one that is configured, and shorten its outputs; all: each of them; repeatable."`
	Hook   bool     `env:"-" help:"For claude-code: also add hooks that shorten the outputs of its own tools, and that list stored outputs after a compaction."`
	Remove bool     `env:"-" help:"Take the server and the hooks out; with --wrap, only the wrapping."`
	Yes    bool     `env:"-" help:"Write without asking."`
	Print  bool     `env:"-" help:"Only print what a configuration needs, to be put in by hand."`
}

func (install) Help() string {
	return `Examples:

  mcp-funnel --root ~/src/project install claude-desktop
  mcp-funnel install cursor --scope project --yes
  mcp-funnel install claude-code --remove

It shows the difference and asks. The file keeps its comments, order and layout; as it was, it stays beside the new
one with the suffix .before-mcp-funnel. Settings on the command line, such as --root, become those of the server.
With --remove a file that nobody else has changed gets back the bytes that it had.`
}

// startLimit is the time in which an installed server must list its tools.
const startLimit = 20 * time.Second

func (c *install) Run(ctx context.Context, s *cli.Settings, w *cli.Streams, k *kong.Context) error {
	client := clientconfig.ByName(c.Client)
	if c.Scope == "local" {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		if client = client.Local(dir); client == nil {
			return cli.Usagef("%s has no local scope", c.Client)
		}
	}
	if c.Hook && (c.Client != "claude-code" || c.File != "") {
		return cli.Usagef("--hook is for claude-code in its own places, not for --file")
	}
	if s.HTTP != "" {
		return cli.Usagef("install is for a server that the client starts; with --http it takes a URL instead")
	}
	paths := []string{cli.ExpandPath(c.File)}
	if c.File == "" && !c.Print {
		var err error
		if paths, err = c.find(client, w); err != nil {
			return err
		}
	}
	ch, err := c.change(client, s, k)
	if err != nil {
		return err
	}
	if _, by, err := ownChannel(); err == nil && by.transient && !c.Remove {
		cli.PrintMessage(w.Err, "the next update ("+by.name+") removes the path of this program: install it elsewhere "+
			"first, or write npx -y mcp-funnel or the command on your PATH in its place")
	}
	hook := clientconfig.Change{
		Self: ch.Self, Args: ch.Args, Hook: c.Hook || c.Remove && len(c.Wrap) == 0, Remove: c.Remove,
	}
	if c.Print {
		ch.Remove, ch.Server, ch.Wrap, hook.Hook, hook.Remove = false, true, nil, c.Hook, false
		block, err := client.Block(ch)
		settings, wrong := client.Block(hook)
		_, written := fmt.Fprint(w.Out, block, settings)
		return errors.Join(err, wrong, written)
	}
	type pending struct {
		*clientconfig.File
		clientconfig.Plan
	}
	var all []pending
	for i, path := range paths {
		f, err := clientconfig.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		p, err := client.Plan(f.Content, f.Backup, []clientconfig.Change{ch, hook}[i])
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, note := range p.Notes {
			cli.PrintMessage(w.Err, note)
		}
		if !p.Changed {
			continue
		}
		text, _ := s.Masker().String(clientconfig.Diff(f.Content, p.After))
		if _, err := fmt.Fprintf(w.Out, "%s\n%s", cli.InLine(path), content.Visible(text, true)); err != nil {
			return err
		}
		all = append(all, pending{f, p})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w.Out, "nothing to do")
		return err
	}
	if ok, err := c.confirmed(w); !ok || err != nil {
		return err
	}
	for _, f := range all {
		backup, err := f.Write(f.Plan)
		if err != nil {
			return err
		}
		text := "written: " + f.Path
		if f.After == nil {
			text = "removed, because there was none before: " + f.Path
		} else if backup != "" {
			text += "; as it was before: " + backup
		}
		if _, err := fmt.Fprintln(w.Out, cli.InLine(text)); err != nil {
			return err
		}
	}
	if c.Remove {
		return nil
	}
	return c.start(ctx, ch, w)
}

// find returns the files of the client: that of its servers, and that of its hooks if it has one.
func (c *install) find(client *clientconfig.Client, w *cli.Streams) ([]string, error) {
	e := clientconfig.Environment{OS: runtime.GOOS, Getenv: os.Getenv}
	var err error
	if e.Home, err = os.UserHomeDir(); err == nil && c.Scope == "project" {
		e.Project, err = os.Getwd()
	}
	if err != nil {
		return nil, err
	}
	if e.Project != "" && !client.HasProjects() {
		return nil, cli.Usagef("%s has no configuration of a project", c.Client)
	}
	files, others, err := client.Find(e)
	if len(others) > 0 {
		cli.PrintMessage(w.Err, "not looked at: "+strings.Join(others, ", ")+"; --file names another file")
	}
	return files, err
}

// change returns what the command line asks for in the file of the servers.
func (c *install) change(client *clientconfig.Client, s *cli.Settings, k *kong.Context) (clientconfig.Change, error) {
	self, err := os.Executable()
	ch := clientconfig.Change{
		Self: self, Args: settingsGiven(k), Remove: c.Remove, Wrap: c.Wrap, Server: !c.Remove || len(c.Wrap) == 0,
	}
	given := slices.Contains(ch.Args, "--root") || slices.Contains(ch.Args, "--config")
	if err != nil || given || c.Remove || client.InProject && len(s.Root) == 0 {
		return ch, err
	}
	dirs := s.RootDirs()
	if client.Variable && c.Scope == "project" && len(s.Root) == 0 {
		dirs = []string{clientconfig.WorkspaceFolder}
	}
	for _, dir := range dirs {
		ch.Args = append(ch.Args, "--root", dir)
	}
	if len(dirs) == 0 {
		return ch, cli.Usagef("name a directory that the server may read: mcp-funnel --root DIR install %s", c.Client)
	}
	return ch, nil
}

// settingsGiven returns the settings of the command line as they were written, with absolute paths.
func settingsGiven(k *kong.Context) (words []string) {
	flags := slices.Concat(k.Model.Flags, k.Selected().Flags)
	for i := 0; i < len(k.Args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(k.Args[i], "--"), "=")
		at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == strings.TrimPrefix(name, "no-") })
		if at < 0 || !strings.HasPrefix(k.Args[i], "--") {
			continue
		}
		given := []string{k.Args[i]}
		if f := flags[at]; !f.IsBool() {
			if !joined {
				i++
				value = k.Args[i]
			}
			if f.PlaceHolder == "DIR" || f.PlaceHolder == "FILE" && (name != "shell" || strings.ContainsAny(value, `/\`)) {
				value = cli.ExpandPath(value)
			}
			given = []string{"--" + name, value}
		}
		if at < len(k.Model.Flags) { // and not a flag of install
			words = append(words, given...)
		}
	}
	return words
}

// confirmed asks whether to write.
func (c *install) confirmed(w *cli.Streams) (bool, error) {
	if c.Yes {
		return true, nil
	}
	if !cli.IsTerminal(w.In) {
		_, err := fmt.Fprintln(w.Out, "nothing is written; the same command with --yes writes this")
		return false, err
	}
	if _, err := fmt.Fprint(w.Out, "Write this? (y/N) "); err != nil {
		return false, err
	}
	if saysYes(w) {
		return true, nil
	}
	_, err := fmt.Fprintln(w.Out, "nothing is written")
	return false, errors.Join(err, cli.ErrFailed)
}

// start starts the server as the client will, and prints how many tools it has.
func (c *install) start(ctx context.Context, ch clientconfig.Change, w *cli.Streams) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	argv := []string{ch.Self}
	for _, word := range ch.Args {
		argv = append(argv, strings.ReplaceAll(word, clientconfig.WorkspaceFolder, dir))
	}
	n, err := clientconfig.CountTools(ctx, dir, argv)
	if err != nil {
		return fmt.Errorf("it is written, but the server does not start: %w", err)
	}
	_, err = fmt.Fprintf(w.Out, "the server starts and has %s; start %s again to use it\n",
		content.Plural(int64(n), "tool", "tools"), c.Client)
	return err
}
