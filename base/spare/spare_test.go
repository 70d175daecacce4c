package spare

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Whatever is called, each started value is claimed once or ended once, and no more than one is kept.
func TestEachIsUsedOnceOrEnded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"keep", "keep none", "fill a", "fill b", "fail", "claim a", "claim b", "wait", "idle",
		}), 30, 100).Draw(r, "steps")
		synctest.Test(t, func(t *testing.T) { check(t, steps) })
	})
}

func check(t *testing.T, steps []string) {
	var mu sync.Mutex
	kinds, uses := []string{}, map[int]int{}
	s := &Spare[string, int]{End: func(n int) {
		mu.Lock()
		defer mu.Unlock()
		uses[n]++
	}}
	start := func(kind string) func() (int, error) {
		return func() (int, error) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, kind)
			return len(kinds) - 1, nil
		}
	}
	for _, step := range steps {
		switch step {
		case "keep", "keep none":
			s.Keep(map[string]time.Duration{"keep": time.Minute}[step])
		case "fill a", "fill b":
			s.Fill(step[5:], start(step[5:]))
		case "fail":
			s.Fill("a", func() (int, error) { return 0, errors.New("no") })
		case "claim a", "claim b":
			if n, ok := s.Claim(step[6:]); ok {
				mu.Lock()
				if kinds[n] != step[6:] {
					t.Errorf("%v: %q instead of %q", steps, kinds[n], step)
				}
				uses[n]++
				mu.Unlock()
			}
		case "wait":
			time.Sleep(2 * time.Second)
		case "idle":
			time.Sleep(2 * time.Minute)
			if _, ok, starting := s.Peek(); ok || starting {
				t.Errorf("%v: one is kept for too long", steps)
			}
		}
		synctest.Wait()
		n, ok, _ := s.Peek()
		mu.Lock()
		for i := range kinds {
			if used := uses[i]; used > 1 || used == 0 != (ok && i == n) {
				t.Fatalf("%v: after %q, %d was used %d times", steps, step, i, used)
			}
		}
		mu.Unlock()
	}
	s.Keep(0)
	time.Sleep(2 * time.Second)
	synctest.Wait()
	for i := range kinds {
		if uses[i] != 1 {
			t.Errorf("%v: at the end, %d was used %d times", steps, i, uses[i])
		}
	}
}
