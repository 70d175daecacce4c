// Package cli has what the commands of mcp-funnel share: the settings with their configuration file and variables, the
// parts that are made from them, and how commands read, print and fail.
package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// ErrFailed ends a command with code 1 when its output has already said why.
var ErrFailed = errors.New("failed")

// ErrBadArguments is ErrFailed for wrong arguments: code 2.
var ErrBadArguments = errors.New("wrong usage")

// UsageError is a mistake on the command line; it ends the program with code 2.
type UsageError struct{ error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer // standard output and error
}

// MaxMessage bounds one message on standard error, in bytes: an error may quote an argument of any length.
const MaxMessage = 1_500

// PrintMessage prints one line on standard error. A write error is ignored: there is nowhere to report it.
func PrintMessage(errw io.Writer, what any) {
	_, _ = fmt.Fprintln(errw, "mcp-funnel:", content.ClipBytes(InLine(fmt.Sprint(what)), MaxMessage))
}
