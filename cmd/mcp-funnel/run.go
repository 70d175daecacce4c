package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli/transcripts"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Exit codes.
const (
	done   = 0
	failed = 1
	usage  = 2
)

// commands is the command line: kong derives flags, environment variables and help from it.
type commands struct {
	cli.Settings
	ShowVersion versionFlag `name:"version" env:"-" help:"Print the version."`

	Serve          serve                  `cmd:"" default:"withargs" help:"Serve MCP on stdio (the default), or over HTTP with --http."`
	Call           call                   `cmd:"" help:"Call one tool in this process and print the answer as the model would see it."`
	Wrap           wrap                   `cmd:"" help:"Serve the tools of another MCP server: its large answers become receipts."`
	Upstream       upstreamCmd            `cmd:"" help:"List the servers that wrap has started, and approve changed tools."`
	Undo           undo                   `cmd:"" help:"Undo a change that edit, write, move or remove has made."`
	Keep           keep                   `cmd:"" help:"Keep standard input as an observation; print it whole if small, else its receipt."`
	View           viewCmd                `cmd:"" help:"Show people what agents saw: open a page on observations, sessions, investigations."`
	Export         exportCmd              `cmd:"" help:"Write an observation or a session as one HTML file that opens without a server."`
	Link           linkCmd                `cmd:"" help:"Print a URL that reads an observation without a token, or with --put stores one."`
	Observations   observationsCmd        `cmd:"" aliases:"obs" help:"List, show, print, verify, pin, prune and remove observations."`
	Moves          storeCmd               `cmd:"" name:"store" help:"Show where observations are kept, and copy them elsewhere."`
	Tokens         tokensCmd              `cmd:"" help:"Count tokens, and show what the policy would decide."`
	Stats          statsCmd               `cmd:"" help:"Show how many tokens were saved, per tool."`
	Context        transcripts.ContextCmd `cmd:"" help:"Show what fills the context of a client, from its transcript."`
	Compact        transcripts.Compact    `cmd:"" help:"Make a client's transcript fit a budget: outputs become pointers."`
	Usage          usageCmd               `cmd:"" help:"Tell the server how full the model's context is; a client's hook or status line runs it."`
	Hook           hookCmd                `cmd:"" help:"Replace a large output of a client's own tool by its receipt; Claude Code's PostToolUse hook runs it."`
	Check          check                  `cmd:"" help:"Check whether a JSON document is whole, and where it is cut or broken."`
	Join           joinCmd                `cmd:"" help:"Join the parts of a JSON document that was cut off, without guessing."`
	Generate       generate               `cmd:"" help:"Have an endpoint write a JSON document, and go on until it is whole."`
	Deliver        deliverCmd             `cmd:"" help:"Hand in a part of a document, as the tool deliver does."`
	Scan           scanCmd                `cmd:"" help:"Look at every file of a directory: kinds, languages, lines, sizes."`
	Investigate    investigateCmd         `cmd:"" help:"Investigate a directory through an endpoint, or by its files alone; print the report."`
	Investigations investigationsCmd      `cmd:"" help:"List, show, verify and remove investigations."`
	Ask            askCmd                 `cmd:"" help:"Answer a question over files: facts with lines, and what was not covered."`
	Chat           chatCmd                `cmd:"" help:"Answer questions over files, one a line."`
	Index          indexCmd               `cmd:"" help:"Show, update and remove the indexes that ask makes."`
	Install        install                `cmd:"" help:"Put this server into the configuration of a client, or take it out."`
	Doctor         doctor                 `cmd:"" help:"Check roots, store, tokenizer and worker on this machine."`
	Version        version                `cmd:"" help:"Print the version."`
	Completion     completion             `cmd:"" help:"Print a completion script for bash, zsh, fish or powershell."`
	Man            man                    `cmd:"" hidden:"" help:"Print the manual page, in the form that man reads."`
	Complete       complete               `cmd:"" name:"__complete" hidden:"" help:"Print completions for the cursor; the completion scripts call it."`
}

// run is the whole program without its process: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	if wantsJSON(args) {
		errw = jsonErrors{errw}
	}
	var c commands
	exited := -1
	args = withServe(args)
	parser, k, err := parse(&c, args, out, errw, &exited)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err != nil {
		var file cli.ConfigError
		if errors.As(err, &file) {
			// The error may quote the file.
			rows := strings.ReplaceAll(content.ClipBytes(file.Error(), cli.MaxMessage), "\n", "\n  ")
			_, _ = fmt.Fprintln(errw, "mcp-funnel:", content.Visible(rows, false))
			return wrongUsage(args, err)
		}
		message := withoutNegativeAdvice(strings.TrimSpace(err.Error()))
		cli.PrintMessage(errw, message)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil {
			_, _ = fmt.Fprintf(errw, "see: %s --help\n", strings.TrimSpace("mcp-funnel "+commandPath(parse.Context)))
		}
		return wrongUsage(args, err)
	}
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(&c.Settings, &cli.Streams{In: in, Out: out, Err: errw}, parser)
	var wrong cli.UsageError
	switch {
	case err == nil:
		return done
	case errors.Is(err, cli.ErrFailed):
		return failed
	case errors.Is(err, cli.ErrBadArguments):
		return usage
	case errors.As(err, &wrong):
		cli.PrintMessage(errw, err)
		return usage
	default:
		cli.PrintMessage(errw, err)
		return failed
	}
}

// withoutNegativeAdvice removes kong's advice on how to write a negative number, because no flag of this program
// takes one.
func withoutNegativeAdvice(message string) string {
	message, advice, found := strings.Cut(message, "; perhaps try ")
	_, value, _ := strings.Cut(advice, "=")
	if _, err := strconv.ParseFloat(strings.Trim(value, `"?`), 64); found && err == nil {
		return message + "; it takes no number below 0"
	}
	if found {
		message += "; perhaps try " + advice
	}
	return message
}

// parse parses a command line. It first tries a grammar with the settings and the one command that the line seems to
// name: that of all commands takes a third of the start of a server, in time and memory. It tries that one if the first
// fails, for help and errors.
func parse(
	c *commands, args []string, out, errw io.Writer, exited *int,
) (parser *kong.Kong, k *kong.Context, err error) {
	if others := otherCommands(args); others != "" {
		none := func(kong.HelpOptions, *kong.Context) error { return errors.New("help needs all commands") }
		parser, err = newParser(c, out, errw, exited, kong.Help(none), kong.IgnoreFields(others))
		if err == nil {
			k, err = parser.Parse(args)
		}
		if err == nil || *exited >= 0 {
			return parser, k, err
		}
		*c = commands{}
	}
	if parser, err = newParser(c, out, errw, exited, kong.Help(printHelp)); err == nil {
		k, err = parser.Parse(args)
	}
	return parser, k, err
}

// otherCommands returns a pattern of the fields of [commands] that are neither serve, which is the default, nor the
// command that the line names; "" if its first word is neither such a name nor a path, or names a command that needs to
// know all of them. Where the value of a flag is the name of a command, that one is in the grammar besides.
func otherCommands(args []string) string {
	words, hidden := commandWords()
	if slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(hidden, arg) }) {
		return "" // completion and the manual page name all commands
	}
	names := slices.Sorted(maps.Keys(words))
	isName := func(arg string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return words[name] == arg })
	}
	at := slices.IndexFunc(args, isName)
	if at != 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") && !filepath.IsAbs(args[0]) {
		return ""
	}
	others := slices.DeleteFunc(names, func(name string) bool {
		return name == "Serve" || at >= 0 && words[name] == args[at]
	})
	return `^commands\.(` + strings.Join(append(others, "Complete", "Man"), "|") + `)$`
}

// commandWords returns the word of each command by the name of its field, and the words of hidden ones.
func commandWords() (words map[string]string, hidden []string) {
	words = map[string]string{}
	for field := range reflect.TypeFor[commands]().Fields() {
		word := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
		if _, isHidden := field.Tag.Lookup("hidden"); isHidden {
			hidden = append(hidden, word)
		} else if _, isCommand := field.Tag.Lookup("cmd"); isCommand {
			words[field.Name] = word
		}
	}
	return words, hidden
}

// withServe writes the default command before a line that names none and has directories after --, because kong would
// take the first of them for a command.
func withServe(args []string) []string {
	i := slices.Index(args, "--")
	words, hidden := commandWords()
	isCommand := func(arg string) bool {
		return slices.Contains(hidden, arg) || slices.Contains(slices.Collect(maps.Values(words)), arg)
	}
	if i < 0 || slices.ContainsFunc(args[:i], isCommand) {
		return args
	}
	return slices.Insert(slices.Clone(args), 0, "serve")
}

func newParser(c *commands, out, errw io.Writer, exited *int, more ...kong.Option) (*kong.Kong, error) {
	file := &cli.FileResolver{}
	parser, err := kong.New(c, append(more,
		kong.Name("mcp-funnel"),
		kong.Description(description),
		kong.Writers(out, errw),
		kong.Exit(func(code int) { *exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ValueFormatter(helpText),
		kong.DefaultEnvars("MCP_FUNNEL"),
		kong.Vars{"owner": observations.Local},
		kong.ExplicitGroups(cli.Groups),
		kong.Resolvers(file),
		kong.Bind(file),
	)...)
	if err != nil {
		return nil, err
	}
	// An empty variable counts as unset, and an option of a bundle that its client has left as it is: clients send them
	// for what their user has cleared or not set. A text and a list may be empty.
	for _, f := range parser.Model.Flags {
		for _, name := range f.Tag.Envs {
			kind, value := f.Target.Kind(), os.Getenv(name)
			mayBeEmpty := f.Enum == "" && (kind == reflect.String || kind == reflect.Slice)
			if value == "" && !mayBeEmpty || cli.IsUnsetOption(value) {
				_ = os.Unsetenv(name)
			}
		}
	}
	return parser, nil
}

// commandPath returns the words of the command as far as they were parsed.
func commandPath(k *kong.Context) string {
	var words []string
	for _, p := range k.Path {
		if p.Command != nil && p.Command.Name != "serve" {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}
