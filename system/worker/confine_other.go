//go:build !linux

package worker

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

func ownBinary() string {
	p, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return p
}

// confined is empty: on this system a worker keeps its rights.
type confined struct{}

func confine() (confined, error) { return confined{}, nil }

// limit ends this process soon after it exceeds its memory limit, since the kernel sets none here. A huge allocation
// can exceed the limit for some milliseconds. CPU time is not limited.
func (confined) limit(memory, _ int64) error {
	debug.SetMemoryLimit(memory - memory/8)
	debug.SetMaxStack(int(memory / 4))
	go func() {
		total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for range time.Tick(20 * time.Millisecond) {
			metrics.Read(total)
			if total[0].Value.Uint64()-total[1].Value.Uint64() > uint64(memory) {
				fmt.Fprintln(os.Stderr, "fatal error: out of memory")
				os.Exit(2)
			}
		}
	}()
	return nil
}

// machineMemory returns 0: the memory of this machine is unknown.
func machineMemory() int64 { return 0 }

func cgoLinked() bool { return false }

func outOfCPU(*os.ProcessState, time.Duration) bool { return false }

func probeLayers() []Layer {
	return []Layer{
		{"memory", true, "a watch inside the worker; one huge allocation gets past it for some milliseconds"},
		{"processor time", true, "the deadline, by the parent"},
		{"landlock", false, "not on this system"},
		{"system calls", false, "not on this system"},
	}
}
