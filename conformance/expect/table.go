package expect

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
)

// Table reads a file of cases: a case a line, its fields separated by tabs, in the order of the fields of T, which are
// exported. Empty lines and those that begin with # are skipped. In a string, a number or a boolean, \n, \t, \r, \xNN
// and \uNNNN stand for one byte or character, and \\ for a backslash. All other fields are JSON, or empty.
func Table[T any](t TB, path string) (cases []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	Must(t, err)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var c T
		fields, into := strings.Split(line, "\t"), reflect.ValueOf(&c).Elem()
		MustEqual(t, len(fields), into.NumField(), "%s:%d: fields", path, number)
		for i, field := range fields {
			Must(t, set(into.Field(i), field), "%s:%d: field %d", path, number, i+1)
		}
		cases = append(cases, c)
	}
	return cases
}

// set sets a field of a case from its text.
func set(into reflect.Value, text string) error {
	switch kind := into.Kind(); {
	case kind != reflect.Slice && kind != reflect.Map && kind != reflect.Struct:
	case text == "":
		return nil
	case into.Type() != reflect.TypeFor[[]byte]():
		return json.Unmarshal([]byte(text), into.Addr().Interface())
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		return err
	}
	switch into.Kind() {
	case reflect.Slice:
		into.SetBytes([]byte(text))
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		into.SetBool(text == "true")
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		into.SetFloat(f)
		return err
	default:
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 0, 64)
		into.SetInt(n)
		return err
	}
	return nil
}
