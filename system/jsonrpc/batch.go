package jsonrpc

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBatch is the maximum number of messages in one batch.
const maxBatch = 100

// IsBatch reports whether message starts as a JSON array.
func IsBatch(message []byte) bool {
	start := bytes.TrimLeft(message, whiteSpace)
	return len(start) > 0 && start[0] == '['
}

// SplitBatch splits a JSON array into its elements, which are slices of message. It returns a fault if the array is
// empty or holds more than 100 messages. It accepts duplicate keys and invalid UTF-8: [Parse] checks each element.
func SplitBatch(message []byte) ([]json.RawMessage, *Fault) {
	d := jsontext.NewDecoder(bytes.NewBuffer(message), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, parseFault(err)
	}
	var elements []json.RawMessage
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, parseFault(err)
		}
		end := int(d.InputOffset())
		elements = append(elements, message[end-len(value):end:end])
		if len(elements) > maxBatch {
			return nil, BadRequest("a batch may hold at most %d messages; send several batches", maxBatch)
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, parseFault(err)
	}
	if err := checkEnd(d); err != nil {
		return nil, parseFault(err)
	}
	if len(elements) == 0 {
		return nil, BadRequest("the batch is empty")
	}
	return elements, nil
}
