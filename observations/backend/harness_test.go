package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// at is when the observations of these tests were made.
var at = time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

// value returns v. It panics if err is not nil.
func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
