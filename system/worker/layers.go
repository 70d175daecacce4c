package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Layers starts a worker that tries forbidden operations, and reports which of them failed. The result is cached.
func Layers() []Layer {
	isolate()
	return slices.Clone(layers)
}

// probe is the name of the worker behind [Layers].
const probe = "probe"

var (
	probing  sync.Once
	isolated bool
	layers   []Layer
)

// isolate reports whether workers can have their own namespaces. It tries once: some systems refuse namespaces, and a
// program linked with cgo hangs as the first process of a new process namespace.
func isolate() bool {
	probing.Do(func() {
		var why error
		switch {
		case attributes(true) == nil:
			why = errors.New("not on this system")
		case cgoLinked():
			why = errors.New("this program is linked with cgo; build it with CGO_ENABLED=0")
		default:
			layers, why = runProbe(true)
		}
		first := Layer{"namespaces", true, "its own user, process, network, IPC, mount and host name namespaces"}
		if isolated = why == nil; !isolated {
			first = Layer{"namespaces", false, why.Error()}
			if layers, why = runProbe(false); why != nil {
				layers = []Layer{{"worker", false, why.Error()}}
			}
		}
		layers = append([]Layer{first}, layers...)
	})
	return isolated
}

// runProbe runs the probe worker and returns its layers.
func runProbe(isolated bool) ([]Layer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out bytes.Buffer
	if !ready.Load() {
		return nil, errors.New("worker.Main was not called first thing in main")
	}
	if err := run(ctx, Spec{Name: probe, Output: 64 << 10}, &out, isolated); err != nil {
		return nil, err
	}
	var found []Layer
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return nil, err
	}
	return found, nil
}

// answerProbe is the worker behind [Layers].
func answerProbe(_ context.Context, _ io.Reader, _ []*os.File, out io.Writer) error {
	return json.NewEncoder(out).Encode(probeLayers())
}
