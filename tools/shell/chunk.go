package shell

import (
	"sync"
)

// chunk is output that was read at once. Its memory is used again after [job.pass].
type chunk struct {
	stderr bool
	data   []byte
}

var idleChunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

const (
	chunkSize  = 64 << 10
	chunkQueue = 64      // chunks that wait for the call
	pipeSize   = 1 << 20 // bytes that a pipe holds: fewer switches between command and server
)
