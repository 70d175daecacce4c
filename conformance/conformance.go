// Package conformance holds what the whole product is held to: the rules of the house,
// transcripts of the wire, other people's programs run against the binary.
//
// It holds tests and their fixtures only, and nothing of the product imports it.
package conformance
