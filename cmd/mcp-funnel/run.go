package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// Exit codes.
const (
	done   = 0
	failed = 1
	usage  = 2
)

// errFailed ends a command with code 1 where its output has said why.
var errFailed = errors.New("failed")

// errWrongWords is errFailed where the words were wrong: code 2.
var errWrongWords = errors.New("wrong usage")

// usageError is a mistake in the command's words: exit code 2.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// commands is the command line: kong derives flags, environment variables and help from it.
type commands struct {
	Settings
	Told versionFlag `name:"version" env:"-" help:"Print the version."`

	Serve        serve           `cmd:"" default:"withargs" help:"Serve MCP on stdio (the default), or over HTTP with --http."`
	Call         call            `cmd:"" help:"Make one tool call in this process and print what the model would be shown."`
	Keep         keep            `cmd:"" help:"Keep standard input as an observation; print it whole where small, else its receipt."`
	Observations observationsCmd `cmd:"" aliases:"obs" help:"List, show, print, verify, pin, prune and remove what was kept."`
	Tokens       tokensCmd       `cmd:"" help:"Count tokens, and say what the policy would decide."`
	Doctor       doctor          `cmd:"" help:"Check roots, store, tokenizer and worker on this machine."`
	Version      version         `cmd:"" help:"Print the version."`
	Completion   completion      `cmd:"" help:"Print a completion script for bash, zsh or fish."`
	Complete     complete        `cmd:"" name:"__complete" hidden:"" help:"What may stand at the cursor: the completion scripts ask it."`
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	var c commands
	exited := -1
	parser, err := newParser(&c, out, errw, &exited)
	if err != nil {
		complain(errw, err)
		return usage
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err != nil {
		var file configError
		if errors.As(err, &file) {
			rows := strings.ReplaceAll(content.ClipBytes(file.Error(), maxComplaint), "\n", "\n  ") // it may show some of the file
			_, _ = fmt.Fprintln(errw, "mcp-funnel:", content.Visible(rows, false))
			return usage
		}
		said := withoutWorseAdvice(strings.TrimSpace(err.Error()))
		if strings.Contains(said, `expected "<tool>`) {
			said += "; the tools are " + strings.Join(names(toolNames()), ", ")
		}
		complain(errw, said)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil {
			_, _ = fmt.Fprintf(errw, "see: %s --help\n", strings.TrimSpace("mcp-funnel "+commandPath(parse.Context)))
		}
		return usage
	}
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(&c.Settings, &streams{in, out, errw}, parser)
	var wrong usageError
	switch {
	case err == nil:
		return done
	case errors.Is(err, errFailed):
		return failed
	case errors.Is(err, errWrongWords):
		return usage
	case errors.As(err, &wrong):
		complain(errw, err)
		return usage
	default:
		complain(errw, err)
		return failed
	}
}

// withoutWorseAdvice leaves out how a number below 0 might be written so that it is taken for a value: none of ours takes one.
func withoutWorseAdvice(said string) string {
	said, advice, found := strings.Cut(said, "; perhaps try ")
	_, value, _ := strings.Cut(advice, "=")
	if _, err := strconv.ParseFloat(strings.Trim(value, `"?`), 64); found && err == nil {
		return said + "; it takes no number below 0"
	}
	if found {
		said += "; perhaps try " + advice
	}
	return said
}

func newParser(c *commands, out, errw io.Writer, exited *int) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("mcp-funnel"),
		kong.Description(description),
		kong.Writers(out, errw),
		kong.Exit(func(code int) { *exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ValueFormatter(helpText),
		kong.Help(printHelp),
		kong.DefaultEnvars("MCP_FUNNEL"),
		kong.ExplicitGroups(groups),
		kong.Resolvers(&fileResolver{path: configPath}),
	)
}

// maxComplaint bounds what is said at once on standard error, in bytes: an error repeats what was given, however long.
const maxComplaint = 1_500

// complain says something in one line on standard error; where that cannot be written there is nobody to tell.
func complain(errw io.Writer, what any) {
	_, _ = fmt.Fprintln(errw, "mcp-funnel:", content.ClipBytes(inLine(fmt.Sprint(what)), maxComplaint))
}

// commandPath is the command as far as it was understood.
func commandPath(k *kong.Context) string {
	var words []string
	for _, p := range k.Path {
		if p.Command != nil && p.Command.Name != "serve" {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}

// fileOf is the file behind a stream, or nil.
func fileOf(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}
