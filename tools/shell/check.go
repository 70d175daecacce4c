package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Try runs a command that does nothing, contained as the options ask for. The error says what would make it work.
func (s *Shell) Try() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing was written to it
	p, err := sandbox.Start(sandbox.Spec{
		Args: []string{s.options.Shell, "-c", "exit 0"}, Dir: "/", Env: s.environment(nil, nil), Mode: s.options.Mode,
		Net: s.options.AllowNet, Memory: s.options.Memory, Processes: s.options.Processes,
	}, null, null)
	if err != nil {
		return s.explainStart(err)
	}
	status, err := p.Wait()
	if err == nil && status.Exit != 0 {
		err = fmt.Errorf("%s ended with exit code %d", s.options.Shell, status.Exit)
	}
	return err
}

// explainStart returns the error of a command that could not be started, with what to do.
func (s *Shell) explainStart(err error) error {
	var lacks *sandbox.Unavailable
	switch {
	case errors.As(err, &lacks):
		return fmt.Errorf(
			"commands cannot be contained here: %s: %s; needed: %s; the operator can also choose --sandbox best-effort or off",
			lacks.Layer, content.ClipBytes(lacks.Cause.Error(), 200), sandbox.Remedy(lacks.Layer))
	case errors.Is(err, sandbox.ErrNotFound):
		return fmt.Errorf("the shell %w; choose another with --shell", err)
	}
	return fmt.Errorf("the command could not be started: %w", err)
}

// Unreachable returns the directories of PATH that commands cannot see, and of the others the links to programs that
// they cannot see.
func (s *Shell) Unreachable(roots []string) (dirs, programs []string) {
	if s.options.Mode == sandbox.Off {
		return nil, nil
	}
	granted := slices.Concat(sandbox.SystemDirs, s.options.AllowRead, roots)
	reachable := func(real string) bool {
		return slices.ContainsFunc(granted, func(g string) bool { return within(g, real) })
	}
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(real) || seen[real] {
			continue
		}
		seen[real] = true
		if !reachable(real) {
			dirs = append(dirs, dir)
			continue
		}
		entries, _ := os.ReadDir(real)
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			path := filepath.Join(real, e.Name())
			if to, err := filepath.EvalSymlinks(path); err == nil && !reachable(to) {
				programs = append(programs, path)
			}
		}
	}
	return dirs, programs
}
