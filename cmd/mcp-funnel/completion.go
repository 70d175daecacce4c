package main

import (
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

func (c *completion) Help() string {
	return `Examples:

  mcp-funnel completion bash > ~/.local/share/bash-completion/completions/mcp-funnel
  mcp-funnel completion zsh  > "${fpath[1]}/_mcp-funnel"
  mcp-funnel completion fish > ~/.config/fish/completions/mcp-funnel.fish
  mcp-funnel completion powershell >> $PROFILE`
}

// scripts are the completion scripts by shell. They call the program, which knows its tools, their arguments and the
// store. If the program prints nothing, the shell completes file names. They keep the program's order (observations are
// newest first) and show descriptions where the shell lists candidates.
var scripts = map[string]string{
	// Bash replaces only the text after the last of COMP_WORDBREAKS, which contain = and :. It has no descriptions:
	// they are part of a candidate where bash only lists them (?) or inserts their common beginning (! and @).
	"bash": `_mcp_funnel() {
  local i line
  COMPREPLY=()
  while IFS= read -r line; do # a substitution of words would expand * in descriptions
    COMPREPLY+=("$line")
  done < <("$1" __complete --breaks "$COMP_WORDBREAKS" -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  compopt -o nosort 2>/dev/null
  for i in "${!COMPREPLY[@]}"; do
    case ${#COMPREPLY[@]}:${COMP_TYPE:-9} in
      1:*|*:9|*:37|*:42) COMPREPLY[i]=${COMPREPLY[i]%%$'\t'*} ;;
      *) COMPREPLY[i]=${COMPREPLY[i]/$'\t'/  # } ;;
    esac
  done
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _mcp_funnel mcp-funnel
`,
	"zsh": `#compdef mcp-funnel
_mcp-funnel() {
  local -a found open shut shown
  local line
  found=("${(@f)$("$words[1]" __complete -- "${(j: :)${(@)words[1,CURRENT]}}" 2>/dev/null)}")
  found=(${found:#})
  for line in $found; do
    if [[ ${line%%$'\t'*} == *[=/] ]]; then open+=($line); else shut+=($line); fi
  done
  if (( $#found )); then
    shown=("${(@)open/$'\t'/  # }")
    (( $#open )) && compadd -V open -l -d shown -S '' -- ${open%%$'\t'*}
    shown=("${(@)shut/$'\t'/  # }")
    (( $#shut )) && compadd -V shut -l -d shown -- ${shut%%$'\t'*}
  else
    compset -P '*='
    _files
  fi
}
if [[ "$funcstack[1]" == _mcp-funnel ]]; then
  _mcp-funnel "$@"
else
  compdef _mcp-funnel mcp-funnel
fi
`,
	"fish": `function __mcp_funnel_complete
  set -l program (commandline -opc)[1]
  set -l found ($program __complete -- (commandline -cp | string collect) 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c mcp-funnel -f -k -a '(__mcp_funnel_complete)'
`,
	// Before PowerShell 7.3 an empty argument is not passed on, so the line is padded up to the cursor instead.
	"powershell": `Register-ArgumentCompleter -Native -CommandName mcp-funnel -ScriptBlock {
  param($word, $line, $cursor)
  $program = $line.CommandElements[0].ToString()
  & $program __complete -- $line.ToString().PadRight($cursor).Substring(0, $cursor) 2>$null | ForEach-Object {
    $name, $help = $_ -split "$([char]9)", 2
    if (-not $help) { $help = $name }
    [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $help)
  }
}
`,
}

// Run writes the script.
func (c *completion) Run(w *cli.Streams) error {
	_, err := fmt.Fprint(w.Out, scripts[c.Shell])
	return err
}

// shellWords splits a line as shells do, without expansion. The last word is the one being typed: "" after a blank.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case quote == c && quote != 0:
			quote = 0
		case c == '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ' ' || c == '\t' || c == '\n':
			if i > 0 && strings.IndexByte(" \t\n", line[i-1]) < 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteByte(c)
		}
	}
	return append(words, word.String())
}
