package server

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

const (
	// minToken is how long a token must be, in bytes: 128 bits in hexadecimal.
	minToken = 32
	maxToken = 512
	// maxTokenFile bounds a token file, in bytes, and maxTokens what it holds.
	maxTokenFile = 1 << 20
	maxTokens    = 1000
)

var ownerShape = content.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkOwner(owner string) error {
	if !ownerShape().MatchString(owner) {
		return fmt.Errorf("the identity %s is not taken; write 1 to 64 letters, digits, dots, dashes and underscores", quoted(owner))
	}
	return nil
}

func checkToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf("%d bytes, a token has %d to %d; make one with: openssl rand -hex 32", len(token), minToken, maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("a token has visible ASCII characters only; make one with: openssl rand -hex 32")
	}
	return nil
}

// OneToken is the identity of a server that has one token: whoever sends it is [observations.Local].
func OneToken(token string) (map[string]string, error) {
	if err := checkToken(token); err != nil {
		return nil, err
	}
	return map[string]string{token: observations.Local}, nil
}

// ReadTokens reads a token file: one token, or lines "identity: token"; blank lines and lines that begin with #
// are passed over. The file must be for its owner alone. Errors name lines, and hold nothing of the file.
func ReadTokens(path string) (map[string]string, error) {
	fail := func(format string, args ...any) (map[string]string, error) {
		return nil, fmt.Errorf("token file %s: %w", echo(path), fmt.Errorf(format, args...))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0) // a FIFO would make us wait for a writer
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return fail("%w", err)
	case !info.Mode().IsRegular():
		return fail("it is not a regular file")
	case info.Size() > maxTokenFile:
		return fail("%d bytes, at most %d are read", info.Size(), maxTokenFile)
	}
	if err := private(info); err != nil {
		return fail("%w", err)
	}
	tokens := map[string]string{}
	var owners []string
	lines := bufio.NewScanner(io.LimitReader(f, maxTokenFile))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		owner, token, several := strings.Cut(line, ":")
		if !several {
			owner, token = observations.Local, line
		}
		owner, token = strings.TrimSpace(owner), strings.TrimSpace(token)
		if !ownerShape().MatchString(owner) { // not quoted: it may be the half of a token with a colon in it
			return fail("line %d: before the colon stands the identity: 1 to 64 letters, digits, dots, dashes and underscores", n)
		}
		if err := checkToken(token); err != nil {
			return fail("line %d: %w", n, err)
		}
		if _, twice := tokens[token]; twice {
			return fail("line %d: this token stands there twice; each identity needs its own", n)
		}
		for _, o := range owners {
			// Two names that differ in case alone would be one on some disks, and to most readers.
			if strings.EqualFold(o, owner) {
				return fail("line %d: this identity stands there twice", n)
			}
		}
		if len(owners) == maxTokens {
			return fail("over %d tokens", maxTokens)
		}
		owners = append(owners, owner)
		tokens[token] = owner
	}
	if err := lines.Err(); err != nil {
		return fail("%w", err)
	}
	if len(tokens) == 0 {
		return fail("there is no token in it; write one with: openssl rand -hex 32")
	}
	return tokens, nil
}

// TokenPath is where a store's own token is kept, made or not.
func TokenPath(store string) string { return filepath.Join(store, "state", "http-token") }

// KeepToken names the file of the store's own token, made where there is none yet.
func KeepToken(store string) (path string, err error) {
	path = TokenPath(store)
	root, err := os.OpenRoot(filepath.Join(store, "state"))
	if err != nil {
		return "", fmt.Errorf("keep a token: %w", err)
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat("http-token"); err == nil {
		return path, nil
	}
	// Written whole and then named: of two servers that start at once, the second finds the first one's.
	tmp := "http-token." + rand.Text()
	defer func() { _ = root.Remove(tmp) }()
	if err := root.WriteFile(tmp, []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep a token: %w", err)
	}
	if err := root.Link(tmp, "http-token"); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep a token: %w", err)
	}
	return path, nil
}
