package httpserver

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// minToken and maxToken bound the length of a token, in bytes: 32 hexadecimal digits are 128 bits.
	minToken = 32
	maxToken = 512
	// maxTokenFile bounds a token file, in bytes, and maxTokens the number of its tokens.
	maxTokenFile = 1 << 20
	maxTokens    = 1000
)

var ownerShape = content.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkOwner(owner string) error {
	if !ownerShape().MatchString(owner) {
		return fmt.Errorf(
			"invalid identity %s; write 1 to 64 letters, digits, dots, dashes or underscores", jsonrpc.Quoted(owner),
		)
	}
	return nil
}

func checkToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf(
			"%d bytes are no token, which has %d to %d; make one with: openssl rand -hex 32",
			len(token), minToken, maxToken,
		)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("a token may contain only visible ASCII characters; make one with: openssl rand -hex 32")
	}
	return nil
}

// OneToken returns the Identities of a server with one token: its sender is [observations.Local].
func OneToken(token string) (map[string]string, error) {
	if err := checkToken(token); err != nil {
		return nil, err
	}
	return map[string]string{token: observations.Local}, nil
}

// ReadTokens reads a token file, which is one token or lines "identity: token"; it skips blank lines and lines that
// begin with #. Only the file's owner may have access to it. Errors name the line and never quote it.
func ReadTokens(path string) (map[string]string, error) {
	f, err := openSecret("token file", path, maxTokenFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	tokens, err := parseTokens(f)
	if err != nil {
		err = fmt.Errorf("token file %s: %w", jsonrpc.Echo(path), err)
	}
	return tokens, err
}

func parseTokens(r io.Reader) (map[string]string, error) {
	fail := func(format string, args ...any) (map[string]string, error) { return nil, fmt.Errorf(format, args...) }
	tokens := map[string]string{}
	var owners []string
	lines := bufio.NewScanner(io.LimitReader(r, maxTokenFile))
	n := 1
	for ; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		owner, token, several := strings.Cut(line, ":")
		if !several {
			owner, token = observations.Local, line
		}
		owner, token = strings.TrimSpace(owner), strings.TrimSpace(token)
		if !ownerShape().MatchString(owner) { // not quoted: it may be half of a token that contains a colon
			return fail(
				"line %d: invalid identity before the colon; write 1 to 64 letters, digits, dots, dashes or underscores",
				n,
			)
		}
		if several && strings.EqualFold(owner, observations.Local) {
			return fail("line %d: the identity %s is that of the operator's own observations; choose another name", n, owner)
		}
		if err := checkToken(token); err != nil {
			return fail("line %d: %w", n, err)
		}
		if _, twice := tokens[token]; twice {
			return fail("line %d: duplicate token; give each identity its own", n)
		}
		// Names that differ only in case would be the same on some file systems, and to most readers.
		if slices.ContainsFunc(owners, func(o string) bool { return strings.EqualFold(o, owner) }) {
			return fail("line %d: duplicate identity; remove one", n)
		}
		if len(owners) == maxTokens {
			return fail("more than %d tokens; remove some", maxTokens)
		}
		owners = append(owners, owner)
		tokens[token] = owner
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fail("line %d: over 64 KiB; write a token", n)
	} else if err != nil {
		return fail("%w", err)
	}
	if len(tokens) == 0 {
		return fail("it has no token in it; make one with: openssl rand -hex 32")
	}
	return tokens, nil
}

// openSecret opens a regular file of at most max bytes to which only its owner has access. Errors begin with what.
func openSecret(what, path string, max int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|osfile.Nonblock, 0) // opening a FIFO would wait for a writer
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() > max:
		err = fmt.Errorf("%d bytes; it may have at most %d", info.Size(), max)
	default:
		err = checkPrivate(info)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s %s: %w", what, jsonrpc.Echo(path), err)
	}
	return f, nil
}

// minKey and maxKey bound the length of a session key, in bytes.
const (
	minKey = 32
	maxKey = 4 << 10
)

// ReadSessionKey reads the file of --session-key-file: at least 32 random bytes, of which each counts. Only the file's
// owner may have access to it.
func ReadSessionKey(path string) ([]byte, error) {
	const what = "session key file"
	f, err := openSecret(what, path, maxKey)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	key, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, jsonrpc.Echo(path), err)
	}
	return key, nil
}

func checkKey(key []byte) error {
	if len(key) < minKey || bytes.Count(key, key[:1]) == len(key) {
		return fmt.Errorf("%d bytes; a key has at least %d random ones: openssl rand -out FILE 32", len(key), minKey)
	}
	return nil
}

// KeepSessionKey returns the session key that all replicas with these records share. The first one makes it.
func KeepSessionKey(r records.Store) ([]byte, error) {
	k := records.Key{Kind: records.Secret, Name: "session-key"}
	key, err := records.Once(r, k, func() []byte { return []byte(rand.Text() + rand.Text()) })
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return nil, fmt.Errorf("the session key, %s: %w", r.Where(k), err)
	}
	return key, nil
}

func ownToken() records.Key { return records.Key{Kind: records.Secret, Name: "http-token"} }

// TokenPath returns the path of a store's own token, whether the file exists or not.
func TokenPath(store string) string { return records.InDir(store).Where(ownToken()) }

// KeepToken returns the own token of a server, as [ReadTokens] does, and where it is kept. It creates a random one if
// there is none yet.
func KeepToken(r records.Store) (tokens map[string]string, where string, err error) {
	where = r.Where(ownToken())
	b, err := records.Once(r, ownToken(), func() []byte { return []byte(rand.Text() + rand.Text() + "\n") })
	if err == nil {
		tokens, err = parseTokens(bytes.NewReader(b))
	}
	if err != nil {
		err = fmt.Errorf("the token in %s: %w", where, err)
	}
	return tokens, where, err
}
