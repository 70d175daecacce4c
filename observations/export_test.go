package observations

import (
	"encoding/hex"
	"hash"
)

// SHA256 is the hash, in hex, of what is kept so far.
func (r *Recording) SHA256() string {
	if len(r.buf) == 0 {
		return hex.EncodeToString(r.hash.Sum(nil))
	}
	h, err := r.hash.(hash.Cloner).Clone()
	if err != nil { // only where the hash is not Go's own
		return ""
	}
	h.Write(r.buf)
	return hex.EncodeToString(h.Sum(nil))
}
