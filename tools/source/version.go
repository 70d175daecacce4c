package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of [Versions], in bytes.
const (
	maxVersion  = 1 << 20  // of one text
	maxVersions = 32 << 20 // of all
)

// hashChars is how many characters of a hash are shown.
const hashChars = 8

// Versions remembers texts of files as they were shown or written, by their hash, to say later what has changed. The
// hash is the beginning of the sha256 of a file's bytes, in hex. Safe for concurrent use; nil remembers nothing.
type Versions struct {
	texts *lru.Values[version, []byte]
	owner string
}

type version struct{ owner, path, hash string }

// NewVersions returns an empty memory.
func NewVersions() *Versions { return &Versions{texts: lru.New[version, []byte](maxVersions)} }

// Of returns the part of the memory that an owner sees.
func (v *Versions) Of(owner string) *Versions {
	if v == nil {
		return nil
	}
	return &Versions{v.texts, owner}
}

// Remember notes the text that a file had, by the sha256 of it in hex. Too long a text is not remembered.
func (v *Versions) Remember(path, sum string, text []byte) {
	if v != nil && len(text) <= maxVersion {
		v.texts.Put(version{v.owner, path, ShortHash(sum)}, text, len(text)+len(path))
	}
}

// Text returns the text that a file had under a hash.
func (v *Versions) Text(path, hash string) ([]byte, bool) {
	if v == nil || !IsHex(hash) {
		return nil, false
	}
	return v.texts.Get(version{v.owner, path, ShortHash(plainHash(hash))})
}

// ShortHash returns the part of a sha256 in hex that is shown.
func ShortHash(sum string) string { return sum[:min(hashChars, len(sum))] }

// IsHash reports whether a hash that a caller gives, of at least 8 characters, is that of a file with this sha256.
func IsHash(given, sum string) bool { return IsHex(given) && strings.HasPrefix(sum, plainHash(given)) }

func plainHash(given string) string {
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(given)), "sha256:")
}

// IsHex reports whether a hash that a caller gives can be one: at least 8 hexadecimal digits.
func IsHex(given string) bool {
	plain := plainHash(given)
	return len(plain) >= hashChars && strings.Trim(plain, "0123456789abcdef") == ""
}

// Hash returns the hash of a file below a root whose bytes are shown as they are, and remembers its text; "" for other
// sources, and if no [Versions] are remembered.
func (s Set) Hash(src *Source) string {
	f, ok := src.ReaderAt.(*os.File)
	path, below := s.File(src.Name)
	if s.Versions == nil || !ok || !below || src.converted != nil || src.packed != nil {
		return ""
	}
	var kept []byte
	sum := sha256.New()
	from := io.NewSectionReader(f, 0, src.Size)
	if src.Size <= maxVersion {
		kept = make([]byte, src.Size)
		if _, err := io.ReadFull(from, kept); err != nil {
			return ""
		}
		_, _ = sum.Write(kept)
	} else if _, err := io.Copy(sum, from); err != nil {
		return ""
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	if kept != nil {
		s.Versions.Remember(path, hash, kept)
	}
	return ShortHash(hash)
}

// Target resolves the name of a file below the roots that is to be changed, and may be missing: its root, its path below
// that, and the name as answers show it.
func (s Set) Target(name string) (root *tree.Root, rel, shown string, err error) {
	if place, _, err := s.namedPlace(name); err != nil || place != nil {
		return nil, "", "", fmt.Errorf("%s: it is no file below a root, and cannot be changed", content.ClipBytes(name, 200))
	}
	root, rel, shown, err = s.resolve(name)
	if err != nil {
		return nil, "", "", s.addAbsent(err)
	}
	rel = existing(root, strings.TrimSuffix(rel, "/"))
	if !exists(root, rel) { // its directory may have been named as it was shown
		rel = path.Join(existing(root, path.Dir(rel)), path.Base(rel))
	}
	return root, rel, shown, nil
}
