package worker

import (
	"bytes"
	"encoding/json"
	"errors"
)

// jobHeader is the first message a worker receives: headSize bytes, sent with the files.
type jobHeader struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory"`
	CPU    int64  `json:"cpu"` // seconds
	Files  int    `json:"files"`
}

const (
	headSize = 256 // bytes of an encoded header, padded with blanks: the worker's input follows
	maxFiles = 16  // files of a worker, at most
)

// encode returns the header as headSize bytes.
func (j jobHeader) encode() ([]byte, error) {
	b, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if len(b) > headSize || j.Files > maxFiles {
		return nil, errors.New("its name is too long, or its files are too many")
	}
	return append(b, bytes.Repeat([]byte{' '}, headSize-len(b))...), nil
}
