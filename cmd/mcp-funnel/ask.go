package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

type askCmd struct {
	Question []string `arg:"" help:"Question in plain words; several words need no quotes."`
	Path     string   `env:"-" placeholder:"PATH" help:"Directory, file, glob, obs:, obs:ID or inv:ID; all roots by default."`
	After    string   `env:"-" placeholder:"ans:ID" help:"The answer that this question follows."`
	Top      int      `env:"-" placeholder:"N" help:"How many passages to take facts from (default: 5)."`
	Timeout  cli.Age  `env:"-" placeholder:"TIME" help:"Answer within about this time, from what is indexed by then (default: the index is finished first)."`
	JSON     bool     `env:"-" name:"json" help:"Print JSON, with all facts and the whole coverage."`
}

func (c *askCmd) Help() string {
	return `Answers a question over files: the lines that answer it, and what was not covered.
A question about files (how many, which, when modified) gets the number or the
list. With --endpoint-url the endpoint's model answers, from what it looks up; what it
says and no file has is named. Where words find little, passages are also found by
their meaning, with a built-in table for English (--meaning off leaves it out), or,
for every question, with the model of --endpoint-embeddings. The exit code is 1 if
nothing was found.

The first question over files takes longer: it indexes all of them before it answers,
in a script too. A terminal shows a progress bar. Ctrl-C keeps what is indexed, and
the next question continues from there. --timeout answers sooner, and says how much
the index covers.

Examples:

  mcp-funnel ask when does the lease end
  mcp-funnel ask 'list all invoices of Nordwind' --path docs --json
  mcp-funnel ask how many pdf files are there`
}

// Run answers one question.
func (c *askCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	path := s.GrantNamed(c.Path)
	return withAsker(ctx, s, w, func(ctx context.Context, app *cli.App) error {
		r, err := answerTo(ctx, app, w, ask.Args{
			Question: strings.Join(c.Question, " "), Path: path, Top: c.Top, After: c.After,
		}, time.Duration(c.Timeout))
		if err != nil {
			return err
		}
		err = show(w, c.JSON, masked{s, r}, func() string { return printable(s, r.Text(app.Counter.Count)) })
		if err == nil && r.Nothing() {
			err = cli.ErrFailed
		}
		return err
	})
}

// withAsker opens the app for questions, with the endpoint if there is one.
func withAsker(ctx context.Context, s *cli.Settings, w *cli.Streams, do func(context.Context, *cli.App) error) error {
	return cli.Do(ctx, s, w, "ask", func(ctx context.Context, app *cli.App, _ *cli.Bar) error {
		if s.AsksModel() {
			if err := app.AskEndpoint(s); err != nil {
				return err
			}
		}
		return do(ctx, app)
	})
}

// answerTo answers a question by the tool ask, with a progress bar. The index is finished first, or made for limit.
func answerTo(
	ctx context.Context, app *cli.App, w *cli.Streams, a ask.Args, limit time.Duration,
) (*ask.Result, error) {
	args, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	bar := cli.NewBar(w.Err, "ask", time.Now())
	defer bar.End()
	type outcome struct {
		r   *ask.Result
		err error
	}
	done := make(chan outcome, 1)
	tool := app.Asker.Command(limit, func(r *ask.Result, err error) { done <- outcome{r, err} })
	_, err = app.Call(ctx, funnel.Request{Tool: tool, Args: args, Progress: bar.Progress})
	select {
	case o := <-done:
		return o.r, cmp.Or(o.err, err)
	case <-time.After(5 * time.Second): // a stopped call does not wait long for its tool; a panic gives no outcome
		return nil, cmp.Or(err, errors.New("ask gave no answer"))
	}
}

type chatCmd struct {
	Path string `env:"-" placeholder:"PATH" help:"Directory, file or glob; all roots by default."`
}

func (c *chatCmd) Help() string {
	return `Reads questions, one a line, and answers each; a short question continues the
one before. ".sources" prints the files of the last answer, ".coverage" what was
not covered, whole; ".quit" or the end of the input ends it.`
}

// Run answers questions until the input ends.
func (c *chatCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	path := s.GrantNamed(c.Path)
	return withAsker(ctx, s, w, func(ctx context.Context, app *cli.App) error {
		return answerLines(ctx, s, w, app, path)
	})
}

func answerLines(ctx context.Context, s *cli.Settings, w *cli.Streams, app *cli.App, path string) error {
	var last *ask.Result
	lines := bufio.NewScanner(w.In)
	lines.Buffer(nil, 1<<20)
	for ctx.Err() == nil {
		if cli.IsTerminal(w.In) {
			_, _ = fmt.Fprint(w.Err, "> ")
		}
		if !lines.Scan() {
			return lines.Err()
		}
		line := strings.TrimSpace(lines.Text())
		text := ""
		switch {
		case line == "":
			continue
		case line == ".quit":
			return nil
		case strings.HasPrefix(line, "."):
			text = lookBack(line, last)
		default:
			a := ask.Args{Question: line, Path: path}
			if last != nil {
				a.After = last.ID
			}
			r, err := answerTo(ctx, app, w, a, 0)
			if ctx.Err() != nil {
				return err
			}
			if err != nil {
				cli.PrintMessage(w.Err, err)
				continue
			}
			last, text = r, r.Text(app.Counter.Count)
		}
		if _, err := fmt.Fprint(w.Out, printable(s, text)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// lookBack answers a command on the last answer.
func lookBack(command string, last *ask.Result) string {
	if last == nil {
		return "no question was asked yet\n"
	}
	var b strings.Builder
	switch command {
	case ".sources":
		for _, f := range last.Facts {
			fmt.Fprintf(&b, "%s:%s: %s\n", content.VisibleLine(f.File), f.Lines, f.Text)
		}
		if len(last.Facts) == 0 {
			b.WriteString("no file gave a fact\n")
		}
	case ".coverage":
		for _, u := range last.Coverage.NotSearchable {
			fmt.Fprintf(&b, "not searchable: %s (%s)\n", content.VisibleLine(u.File), u.Reason)
		}
		for _, m := range last.Coverage.Missing {
			fmt.Fprintf(&b, "without a fact: %s\n", content.VisibleLine(m))
		}
		for _, w := range last.Coverage.Absent {
			fmt.Fprintf(&b, "no file has: %s\n", content.VisibleLine(w))
		}
		fmt.Fprintf(&b, "%d of %d files searched, %d with facts\n", last.Coverage.Searched, last.Coverage.Files,
			last.Coverage.WithFacts)
	default:
		b.WriteString("the commands are .sources, .coverage and .quit\n")
	}
	return b.String()
}
