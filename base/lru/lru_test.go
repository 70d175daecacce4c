package lru

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The cache agrees with a list searched from its end, whatever is put and requested.
func TestKeepsWhatWasUsedLast(t *testing.T) {
	type kept struct{ key, value, weight int }
	rapid.Check(t, func(t *rapid.T) {
		const most = 10
		v := New[int, int](most)
		var model []kept // the last used at the end
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 6).Draw(t, "key")
			at := slices.IndexFunc(model, func(k kept) bool { return k.key == key })
			if rapid.Bool().Draw(t, "get") {
				got, ok := v.Get(key)
				if ok != (at >= 0) || ok && got != model[at].value {
					t.Fatalf("%d: %d, %v; the model has %v", key, got, ok, model)
				}
				if ok {
					used := model[at]
					model = append(slices.Delete(model, at, at+1), used)
				}
				continue
			}
			weight := rapid.IntRange(0, most+1).Draw(t, "weight")
			v.Put(key, i, weight)
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			}
			if weight > most {
				continue
			}
			model = append(model, kept{key, i, weight})
			for sum(model, func(k kept) int { return k.weight }) > most {
				model = model[1:]
			}
		}
		if v.size != sum(model, func(k kept) int { return k.weight }) || len(v.byKey) != len(model) ||
			v.order.Len() != len(model) {
			t.Fatalf("it holds %d values of weight %d, the model %v", len(v.byKey), v.size, model)
		}
	})
}

func sum[T any](all []T, of func(T) int) (n int) {
	for _, one := range all {
		n += of(one)
	}
	return n
}

func TestManyAtOnce(t *testing.T) {
	v := New[int, int](50)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				v.Put((i*7+g)%90, i, 1+i%5)
				if got, ok := v.Get(i % 90); ok && got > 2000 {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
	if v.size > 50 || v.size == 0 {
		t.Errorf("weight %d", v.size)
	}
}
