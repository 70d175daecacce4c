package storefs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A file that is replaced by another while it is opened is opened: the one or the other.
func TestReplacedFilesOpen(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	const name = "sidecar"
	put := func() error {
		fresh := filepath.Join(root.Name(), "new")
		if err := os.WriteFile(fresh, []byte("whole"), 0o600); err != nil {
			return err
		}
		return os.Rename(fresh, filepath.Join(root.Name(), name))
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	disk := &FS{root: root}
	stop := make(chan struct{})
	var racer sync.WaitGroup
	racer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := put(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	defer racer.Wait()
	defer close(stop)
	for range 20_000 {
		if b, _, err := disk.Read(name, 100); err != nil || string(b) != "whole" {
			t.Fatalf("%q, %v", b, err)
		}
	}
}
