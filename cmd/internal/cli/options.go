package cli

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/tools/deliver"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/tools/write"
)

// Options are the options of the packages that settings configure. The tag `to` of a setting names the field that it
// fills; "!" before the name stores the negated value.
type Options struct {
	Limits funnel.Limits
	Policy funnel.Policy
	Store  observations.Options

	Bucket   remote.BucketOptions // of a store that is not a directory, as are the next two
	Database database.Options
	Cache    observations.Options

	JQ    jq.Options
	Shell shell.Options
	Write write.Options

	Deliver  deliver.Options
	Endpoint chat.Options
	Server   server.Options
	HTTP     httpserver.Options
	OAuth    oauth.Options
}

// fields yields every setting.
func (s *Settings) fields() iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		all := reflect.ValueOf(s).Elem()
		for _, field := range reflect.VisibleFields(all.Type()) {
			if !field.Anonymous && !yield(field, all.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

// Options returns the options that the settings describe. Fields without a setting keep their zero value.
func (s *Settings) Options() Options {
	var o Options
	for field, value := range s.fields() {
		path, ok := field.Tag.Lookup("to")
		if !ok {
			continue
		}
		path, negated := strings.CutPrefix(path, "!")
		target := reflect.ValueOf(&o).Elem()
		for name := range strings.SplitSeq(path, ".") {
			if target = target.FieldByName(name); !target.IsValid() {
				panic(fmt.Sprintf("setting %s: options has no field %s", field.Name, path))
			}
		}
		if !value.CanConvert(target.Type()) {
			panic(fmt.Sprintf("setting %s: a %s cannot fill %s", field.Name, value.Type(), path))
		}
		value = value.Convert(target.Type())
		switch {
		case negated:
			target.SetBool(!value.Bool())
		case value.IsZero() && field.Tag.Get("zero") == "none":
			target.SetInt(-1) // to the store 0 is the default, and a negative limit is none
		default:
			target.Set(value)
		}
	}
	return o
}

// checkMinima returns an error for the first setting below its tag `min`. To the packages 0 means the default,
// which is not what the operator wrote.
func checkMinima(settings []*kong.Flag) error {
	for _, f := range settings {
		if !f.Tag.Has("min") {
			continue
		}
		lowest, wrong := f.Tag.GetInt("min")
		if wrong != nil {
			panic(fmt.Sprintf("setting %s: min: %v", f.Name, wrong))
		}
		switch of := f.Target.Type(); {
		case f.Target.Int() >= lowest:
		case of == reflect.TypeFor[size]() && lowest > 1:
			return fmt.Errorf("--%s must be %s or more", f.Name, BytesText(lowest))
		case of != reflect.TypeFor[int](): // a size or a time span
			return fmt.Errorf("--%s must be more than 0", f.Name)
		default:
			return fmt.Errorf("--%s must be %d or more, not %d", f.Name, lowest, f.Target.Int())
		}
	}
	return nil
}
