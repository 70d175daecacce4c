package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// New derives the schema from the argument struct, and wrong arguments become one error that names the valid ones.
func ExampleNew() {
	type args struct {
		Name string `json:"name" help:"Whom to greet."`
		Loud bool   `json:"loud,omitempty" help:"Use capitals. Default: false."`
	}
	greet := tools.New(tools.Tool{Name: "greet", Title: "Greet", Description: "Greets someone."},
		func(_ context.Context, a args, _ tools.Input, out tools.Output) error {
			_, err := fmt.Fprintf(out, "hello %s\n", a.Name)
			return err
		})
	fmt.Println(string(greet.Schema))
	fmt.Println(greet.Check(json.RawMessage(`{"nmae":"Ann"}`)))
	// Output:
	// {"type":"object","properties":{"name":{"type":"string"},"loud":{"type":"boolean"}},"required":["name"]}
	// unknown argument "nmae" (did you mean "name"?); valid arguments: name (required), loud
}
