package tools

import "reflect"

// Text is an argument that is a text, given as a string, or as any JSON value: then it is the text of that value as the
// client wrote it. Models that write a JSON document as an argument often forget to quote it.
type Text string

// textKind is the kind of a [Text] argument in messages.
const textKind = "text"

var textType = reflect.TypeFor[Text]()
