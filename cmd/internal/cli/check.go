package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/session/hook"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// AfterApply checks the settings; kong calls it once all of them are known. Every command thus refuses settings
// with which the funnel could not work.
func (s *Settings) AfterApply(k *kong.Context, file *FileResolver) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "store" && s.Store == "" {
			return errors.New("--store is empty: name a directory, or leave it out for the default one")
		}
	}
	if len(file.Servers) == 0 && !strings.HasPrefix(k.Command(), "wrap") { // the tools of others are not known yet
		if err := s.checkTools(); err != nil {
			return err
		}
	}
	s.TokenRoots = file.TokenRoots
	if !strings.HasPrefix(k.Command(), "store copy") { // which names its stores itself
		if err := s.checkStore(); err != nil {
			return err
		}
	}
	return s.check(k.Model.Flags)
}

// check is AfterApply without what depends on how the settings were given.
func (s *Settings) check(settings []*kong.Flag) error {
	given := len(s.Root) > 0
	var err error
	if s.Root, err = expandRoots(s.Root); err != nil {
		return err
	}
	// --root="$UNSET" must not grant the current directory instead. An empty variable counts as unset.
	if text, set := os.LookupEnv(variablePrefix + "ROOT"); given && len(s.Root) == 0 && (!set || text != "") {
		return errors.New("--root is empty: name a directory, or leave it out for the current one")
	}
	for _, path := range []*string{&s.Config, &s.Store, &s.Cache, &s.TokenFile, &s.SessionKeyFile} {
		if *path != "" && (path != &s.Store || !s.IsRemote()) {
			*path = ExpandPath(*path)
		}
	}
	for _, dirs := range []*[]string{&s.AllowCache, &s.AllowRead, &s.AllowWrite} { // an empty one is not the current one
		*dirs = slices.DeleteFunc(*dirs, func(dir string) bool { return dir == "" })
		for i, dir := range *dirs {
			(*dirs)[i] = ExpandPath(dir)
		}
	}
	for setting, path := range map[string]string{"--token-file": s.TokenFile, "--session-key-file": s.SessionKeyFile} {
		if fi, err := os.Stat(path); path != "" && err == nil && fi.IsDir() {
			return fmt.Errorf("%s %s is a directory: name the file in it", setting, path)
		}
	}
	if s.HTTP+s.Replica != "" && !replicaShape().MatchString(s.ReplicaName()) {
		return fmt.Errorf("--replica %.60q: write 1 to 64 letters, digits, dots, dashes or underscores", s.ReplicaName())
	}
	for _, name := range s.KeepEnv {
		if name, _, valued := strings.Cut(name, "="); valued {
			return fmt.Errorf("--keep-env takes the name of a variable: write --keep-env %.60s, and set it for the server",
				name)
		}
	}
	for _, name := range s.Toolsets {
		if name != allToolsets && !slices.Contains(server.Toolsets, name) {
			return fmt.Errorf("--toolsets: there is no toolset %.60q; there are %s and %s",
				name, strings.Join(server.Toolsets, ", "), allToolsets)
		}
	}
	if len(s.OAuthIssuer)+len(s.OAuthAudience)+len(s.OAuthScope) > 0 || s.TokenRoots != nil {
		if _, err := oauth.New(s.Options().OAuth); err != nil {
			return err
		}
	}
	if s.Extraction == "model" && !s.AsksModel() {
		return errors.New("--extraction model needs a model: add --endpoint-url")
	}
	if err := checkMinima(settings); err != nil {
		return err
	}
	o := s.Options()
	perTool, err := s.toolLimits()
	if err != nil {
		return err
	}
	_, err = funnel.New(funnel.Options{
		Counter: tokens.New(tokens.O200k), Policy: o.Policy, Limits: o.Limits, Tools: perTool,
		Mask: s.Masker(), Redact: s.RedactStore,
	})
	return err
}

// checkTools refuses limits of tools that do not exist.
func (s *Settings) checkTools() error {
	all := toolNames(server.Catalog(server.Parts{Toolsets: server.Toolsets})) // of toolsets that are not offered, too
	perTool, err := s.toolLimits()
	for _, name := range slices.Sorted(maps.Keys(perTool)) {
		if slices.Contains(all, name) || hook.Replaces(name) {
			continue
		}
		setting := "--tool-limit"
		if perTool[name].Uncut {
			setting = "--uncut"
		}
		return fmt.Errorf("%s: there is no tool %.60q; there are %s", setting, name, strings.Join(all, ", "))
	}
	return err
}

// toolLimits returns the limits of single tools.
func (s *Settings) toolLimits() (map[string]funnel.ToolLimits, error) {
	out := map[string]funnel.ToolLimits{}
	if len(s.Uncut)+len(s.ToolLimit) == 0 {
		return out, nil
	}
	for _, name := range s.Uncut {
		out[name] = funnel.ToolLimits{Uncut: true}
	}
	for _, text := range s.ToolLimit {
		text = strings.TrimSpace(text) // "a, b" in the variable
		left, value, _ := strings.Cut(text, "=")
		tool, limit, named := strings.Cut(left, ".")
		n, err := strconv.Atoi(value)
		if !named || err != nil {
			return nil, fmt.Errorf("--tool-limit: %.60q is not a limit; write run.receipt-tokens=1200", text)
		}
		t := out[tool]
		if err := t.Limits.Set(limit, n); err != nil {
			return nil, fmt.Errorf("--tool-limit: %w", err)
		}
		out[tool] = t
	}
	return out, nil
}
