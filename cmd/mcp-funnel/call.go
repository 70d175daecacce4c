package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type call struct {
	Tool string   `arg:"" optional:"" help:"Name of the tool; without it, print what the tools do."`
	Args []string `arg:"" optional:"" placeholder:"KEY=VALUE" help:"Arguments: KEY=VALUE …, or one JSON object. A word without = is the required argument of a tool that has only one."`
	JSON bool     `env:"-" name:"json" help:"Print the whole answer as JSON: blocks, receipts, failed."`
}

func (c *call) Help() string {
	return `Examples:

  mcp-funnel call read README.md
  mcp-funnel call search pattern=TODO path=src
  mcp-funnel call jq source=obs:k3v9q2m7x4ab filter='group_by(.file)|length' slurp=true
  mcp-funnel call slice '{"source":"go.mod","lines":"1-5"}'`
}

func (c *call) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if c.Tool == "" {
		_, err := io.WriteString(w.Out, overview(s))
		return err
	}
	if c.Tool == "run" { // a command ends with this process: there is no later call that could continue it
		s.Slice = max(s.Slice, s.RunTimeout+cli.Age(30*time.Second))
		s.CallTimeout = max(s.CallTimeout, s.RunTimeout+cli.Age(time.Minute))
	}
	return cli.Do(ctx, s, w, c.Tool, func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		t, err := app.Tool(c.Tool)
		if err != nil {
			return err
		}
		args, err := arguments(t, c.Args)
		if err != nil {
			return err
		}
		_, err = callTool(ctx, s, w, app, bar, funnel.Request{Tool: t, Args: args}, c.JSON)
		if errors.Is(err, cli.ErrFailed) && t.Check(args) != nil {
			return cli.ErrBadArguments
		}
		return err
	})
}

// callTool calls a tool within the time limit of a call, and prints its answer.
func callTool(
	ctx context.Context, s *cli.Settings, w *cli.Streams, app *cli.App, bar *cli.Bar, r funnel.Request, asJSON bool,
) (funnel.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.CallTimeout))
	defer cancel()
	r.Progress = bar.Progress
	a, err := app.Call(ctx, r)
	if err != nil {
		return a, err
	}
	bar.End()
	return a, print(w, a, asJSON)
}

// arguments parses one JSON object, or KEY=VALUE words whose values are read by the type that the tool's schema
// gives them. A word without = is the value of the only required argument.
func arguments(t tools.Tool, words []string) (json.RawMessage, error) {
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		return json.RawMessage(words[0]), nil
	}
	schema := schemaOf(t)
	args := map[string]json.RawMessage{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			given := func(name string) bool {
				_, bare := args[name]
				return bare ||
					slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") })
			}
			var err error
			if key, err = schema.bareWord(t.Name, word, given); err != nil {
				return nil, err
			}
			value = word
		}
		p, known := schema.Properties[key]
		raw := json.RawMessage(value)
		// A value of another type is passed as a string, so that the tool's own error names it.
		list := known && p.Type == "" && len(p.AnyOf) < 3 // one string or several: as a JSON array, or KEY= given several times
		if !known || p.Type == "string" || p.Type == "" && !list || !json.Valid(raw) || list && json.Unmarshal(raw, new([]string)) != nil {
			raw, _ = json.Marshal(value)
		}
		if before, twice := args[key]; twice && !list {
			return nil, cli.Usagef("%s= is given twice", key)
		} else if twice {
			raw = appendStrings(before, raw)
		}
		args[key] = raw
	}
	return json.Marshal(args)
}

// bareWord returns the argument whose value is a word without =: the only required one, unless it is given
// otherwise. Its error names the argument that was probably meant.
func (s toolSchema) bareWord(tool, word string, given func(name string) bool) (string, error) {
	key := s.onlyRequired()
	if key != "" && !given(key) {
		return key, nil
	}
	meant := func(name string) error { return cli.Usagef("%.60q is not KEY=VALUE; write %s", word, name) }
	if p, known := s.Properties[word]; known && p.Type == "boolean" {
		return "", meant(word + "=true")
	} else if known {
		return "", meant(word + "=VALUE")
	}
	for _, name := range s.Required {
		if !given(name) {
			return "", meant(fmt.Sprintf("%s=%.60s (%s requires %s)", name, word, tool, strings.Join(s.Required, " and ")))
		}
	}
	if key != "" {
		return "", cli.Usagef("%.60q is not KEY=VALUE, and %s= is given already; arguments of %s: %s", word, key, tool,
			strings.Join(s.names, ", "))
	}
	if slices.Contains(s.names, "path") {
		return "", meant(fmt.Sprintf("path=%.60s; arguments of %s: %s", word, tool, strings.Join(s.names, ", ")))
	}
	return "", meant("one of " + strings.Join(s.names, "=, ") + "=")
}

// onlyRequired returns the name of the required argument if there is only one, else "".
func (s toolSchema) onlyRequired() string {
	if len(s.Required) != 1 {
		return ""
	}
	return s.Required[0]
}

// appendStrings returns the strings of both values, each a string or an array of strings, as one array.
func appendStrings(a, b json.RawMessage) json.RawMessage {
	var all, more tools.Strings
	_ = json.Unmarshal(a, &all) // both were checked or written here
	_ = json.Unmarshal(b, &more)
	raw, _ := json.Marshal(append(all, more...))
	return raw
}
