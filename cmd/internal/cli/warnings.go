package cli

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// Warnings says which settings have no effect, or name something that is not there. Nothing is refused for them.
func (s *Settings) Warnings() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for setting, dirs := range map[string][]string{"--allow-read": s.AllowRead, "--allow-cache": s.AllowCache} {
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err != nil {
				add("%s %s: %s; commands run without it", setting, dir, cause(err))
			}
		}
	}
	for _, name := range s.KeepEnv {
		if _, set := os.LookupEnv(name); !set {
			add("--keep-env %s: the variable is not set; commands run without it", name)
		}
	}
	if slices.Contains(s.ToolsetNames(), shell.Toolset) && s.CallTimeout < s.Slice {
		add("--call-timeout %s is below --slice %s: a call of run answers within the shorter one",
			time.Duration(s.CallTimeout), time.Duration(s.Slice))
	}
	for setting, value := range map[string]string{
		"--token-file": s.TokenFile, "--session-key-file": s.SessionKeyFile, "--replica": s.Replica,
		"--oauth-issuer": s.OAuthIssuer,
	} {
		if value != "" && s.HTTP == "" {
			add("%s has no effect without --http", setting)
		}
	}
	slices.Sort(all)
	return all
}
