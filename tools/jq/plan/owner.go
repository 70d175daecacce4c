package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// owner knows which arrays and objects of the value of a reduce or foreach nobody else holds: those that it has copied
// itself. They are changed in place, all others are copied first.
type owner struct {
	root any // the value; owned only if held is not nil
	held held
	text *strings.Builder // of the text that was built last
}

// held are the arrays and objects that are owned inside one that is, by key or index; nil: that one is not owned.
type held map[any]held

// set stores that an element or member is owned, or with nil that it is not.
func (h held) set(key any, inner held) {
	if inner == nil {
		delete(h, key)
	} else {
		h[key] = inner
	}
}

// Names of functions and variables in rewritten filters. No filter can have names with a space.
const (
	ownerName, putName, addName, leaveName = " owner", " put", " add", " leave"
	ownerVar, pathVar, valueVar, rowVar    = "$ owner", "$ path", "$ value", "$ row"
)

// ownerFunctions are the functions of rewritten filters.
func ownerFunctions() []gojq.CompilerOption {
	return []gojq.CompilerOption{
		gojq.WithFunction(ownerName, 0, 0, func(any, []any) any { return &owner{} }),
		gojq.WithFunction(putName, 3, 3, func(v any, args []any) any { return args[0].(*owner).put(v, args[1], args[2]) }),
		gojq.WithFunction(addName, 3, 3, func(v any, args []any) any { return args[0].(*owner).add(v, args[1], args[2]) }),
		gojq.WithFunction(leaveName, 1, 1, func(v any, args []any) any { return args[0].(*owner).leave(v) }),
	}
}

// leave returns v, which the filter may keep: if it is an array or object, nothing is owned any more.
func (o *owner) leave(v any) any {
	switch v.(type) {
	case []any, map[string]any:
		*o = owner{text: o.text}
	}
	return v
}

// put is setpath(path; n) on v.
func (o *owner) put(v, path, n any) any {
	keys, ok := path.([]any)
	if _, fits := at(v, keys); !fits || !ok {
		*o = owner{text: o.text}
		return gojqs(setpath, v, path, n)
	}
	return o.change(v, keys, func(_ any, h *held) any {
		*h = nil
		return n
	})
}

// gojqs returns what gojq gives for a filter of $path and $n, or its error.
func gojqs(filter func() *gojq.Code, v, path, n any) any {
	w, _ := filter().Run(v, path, n).Next()
	return w
}

var (
	setpath = sync.OnceValue(func() *gojq.Code { return mustCompile("setpath($path; $n)") })
	sum     = sync.OnceValue(func() *gojq.Code { return mustCompile("getpath($path) + $n") })
)

func mustCompile(filter string) *gojq.Code {
	q, err := gojq.Parse(filter)
	if err != nil {
		panic(err)
	}
	code, err := gojq.Compile(q, gojq.WithVariables([]string{"$path", "$n"}))
	if err != nil {
		panic(err)
	}
	return code
}

// at returns the value at a path of names and numbers; ok is false if nothing can be put there.
func at(v any, path []any) (_ any, ok bool) {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok && v != nil {
				return nil, false
			}
			v = m[key]
		default:
			i, isNumber := gojq.ToInt(key)
			a, ok := v.([]any)
			if !isNumber || !ok && v != nil || i < -len(a) || i > len(a)+maxGap {
				return nil, false
			}
			if i < 0 {
				i += len(a)
			}
			if v = nil; i < len(a) {
				v = a[i]
			}
		}
	}
	return v, true
}

// maxGap is how many nulls a put may add before its value. gojq bounds the index of an array, and so its own gaps.
const maxGap = 1000

// add adds n to the value at a path of v.
func (o *owner) add(v, path, n any) any {
	keys, isPath := path.([]any)
	if old, ok := at(v, keys); !ok || !isPath || !grows(old, n) {
		all := gojqs(sum, v, path, n)
		if _, failed := all.(error); failed {
			return all
		}
		return o.put(v, path, all)
	}
	return o.change(v, keys, func(v any, h *held) any {
		switch n := n.(type) {
		case string:
			*h = nil
			s, _ := v.(string)
			return o.concat(s, n)
		case map[string]any:
			m := ownedObject(v, h)
			for k, w := range n {
				m[k] = w
				delete(*h, k)
			}
			return m
		default:
			more, _ := n.([]any)
			return append(ownedArray(v, h), more...)
		}
	})
}

// grows reports whether two values are both arrays, objects or texts, which may grow in place.
func grows(v, n any) (ok bool) {
	switch n.(type) {
	case []any:
		_, ok = v.([]any)
	case map[string]any:
		_, ok = v.(map[string]any)
	case string:
		_, ok = v.(string)
	}
	return ok
}

// concat returns s + n. Only the end of a text is written if s is the last text that it returned.
func (o *owner) concat(s, n string) string {
	if o.text == nil || o.text.Len() != len(s) || o.text.String() != s {
		o.text = &strings.Builder{}
		o.text.WriteString(s)
	}
	o.text.WriteString(n)
	return o.text.String()
}

// change calls to with the value at a path of v, and puts its result there. It copies arrays and objects on the path
// that are not owned.
func (o *owner) change(v any, path []any, to func(any, *held) any) any {
	if o.held == nil || !same(o.root, v) {
		o.held = nil
	}
	o.root = changed(v, path, &o.held, to)
	return o.root
}

// same reports whether two values are the same array or object in memory.
func same(v, w any) bool {
	switch v := v.(type) {
	case map[string]any:
		w, ok := w.(map[string]any)
		return ok && reflect.ValueOf(v).Pointer() == reflect.ValueOf(w).Pointer()
	case []any:
		w, ok := w.([]any)
		return ok && len(v) == len(w) && len(v) > 0 && &v[0] == &w[0]
	}
	return false
}

func changed(v any, path []any, h *held, to func(any, *held) any) any {
	if len(path) == 0 {
		return to(v, h)
	}
	switch key := path[0].(type) {
	case string:
		m := ownedObject(v, h)
		inner := (*h)[key]
		m[key] = changed(m[key], path[1:], &inner, to)
		(*h).set(key, inner)
		return m
	default:
		a := ownedArray(v, h)
		i, _ := gojq.ToInt(key)
		if i < 0 {
			i += len(a)
		}
		for len(a) <= i {
			a = append(a, nil)
		}
		inner := (*h)[i]
		a[i] = changed(a[i], path[1:], &inner, to)
		(*h).set(i, inner)
		return a
	}
}

// ownedObject returns the object v if h says that it is owned, else a copy.
func ownedObject(v any, h *held) map[string]any {
	m, _ := v.(map[string]any)
	if *h == nil {
		*h = held{}
		if m = maps.Clone(m); m == nil {
			m = map[string]any{}
		}
	}
	return m
}

// ownedArray returns the array v if h says that it is owned, else a copy.
func ownedArray(v any, h *held) []any {
	a, _ := v.([]any)
	if *h == nil {
		*h = held{}
		a = append(make([]any, 0, len(a)+1), slices.Clip(a)...)
	}
	return a
}
